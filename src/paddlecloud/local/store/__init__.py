"""The state of the embedded platform: one append-only revision log in SQLite and its newest values in memory."""
