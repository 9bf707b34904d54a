"""The state of the embedded platform: one append-only revision log in SQLite and its newest values in memory.

In the order that reads best, each knowing only those above it:

    record       one object: its bytes, and the little that filters look at
    log          the table on disk: append, replay, compact
    state        the newest record at every address: a fold over the log
    watch        changes on their way to one reader, who is never waited for
    disk_thread  the thread that waits for the disk
    store        all of it together: optimistic writes, group commit, what watchers resume from
"""
