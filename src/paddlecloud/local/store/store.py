"""The store: newest objects in memory, every write in the log before it is acknowledged or seen.

Writes are decided in the event loop against the *latest* state, which includes writes still on their way to disk, so
they never conflict with each other by accident. They are committed in groups: all writes of one round of the loop,
and in durable mode all that came while the group before was on its way to the disk. Only when a group is committed do
readers and watchers see it and callers get their answer. Nothing that was read can therefore be lost by a crash (with
`durable`, not even by a power cut).

The commit itself is done in the event loop: it writes to the page cache, which costs less than handing it to a thread.
Whatever waits for the disk (syncing, checkpoints, compaction) is done beside the loop, and writes gather meanwhile.
Syncing one write costs as much as syncing ten, and about as much as all else the store does for a write. So in durable
mode, while several writers are at work, a group waits a moment for the next of them; a lone writer never waits.

Invariants
- `revision` is the newest committed revision; it never goes back.
- While `_busy` nobody touches the log but the thread beside the loop.
- `_latest` holds exactly the addresses with a write in flight; None there means a deletion in flight.
- If a group fails, all writes in flight fail with it (later ones may have been decided on top of it) and `_latest` is
  emptied: memory again equals disk, and the next write starts from there.
"""

from __future__ import annotations

import asyncio
import functools
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from paddlecloud.kube import errors
from paddlecloud.kube.resource import Object
from paddlecloud.local.store.disk_thread import DiskThread, Then, Work
from paddlecloud.local.store.log import Op, RevisionLog, Row, StorageError
from paddlecloud.local.store.recent import RecentChanges
from paddlecloud.local.store.record import ObjectAddress, Record, check_size, encode
from paddlecloud.local.store.state import Records, State
from paddlecloud.local.store.watch import Change, Watch

GATHER = 0.001  # seconds that a durable write waits for others, where there were some a moment ago
RETAIN = 20_000  # revisions of history kept in the table before compaction takes them
RETAIN_BYTES = 256 * 1024 * 1024  # written since the last compaction, before the next one keeps the last of them only
HISTORY_BYTES = 32 * 1024 * 1024  # read from the table at once, in the event loop; what is older must be listed again
LEAST_BYTES = 4096  # that a row counts as: reading ten thousand small ones takes its time as well

Changes = list[Change]


class _Write(NamedTuple):
    """One write on its way: the row for the log, the same as readers will see it, and who waits for it."""

    row: Row
    record: Record
    done: asyncio.Future[Record]


class Store:
    def __init__(self, path: Path, *, durable: bool = False, retain: int = RETAIN) -> None:
        self._log = RevisionLog(path, durable=durable)
        self._durable = durable
        self._retain = retain
        # What is committed
        self._state = State()
        for row in self._log.replay():
            self._state.take(row.op, Record(ObjectAddress.from_key(row.key), row.rev, row.value))
        self.revision = self._log.head
        # What is on its way
        self._allocated = self.revision  # the last revision given out; the difference is in flight
        self._latest: dict[ObjectAddress, tuple[int, Record | None]] = {}
        self._queue: list[_Write] = []  # decided, and not yet appended to the log
        self._due = False  # a flush will come
        self._company = False  # durable writes have been coming together
        # Who has the log
        self._disk_thread = DiskThread()
        self._busy = False
        self._waiting: list[asyncio.Future[None]] = []  # for the log to be free
        # Watchers
        self._recent = RecentChanges()
        self._last_part = 0  # the revision from which on a compaction for bytes keeps all; 0 while that is far
        self._watches: dict[str, set[Watch]] = {}
        self._listeners: list[Callable[[Change], None]] = []
        self.dropped_watchers = 0

    # Reading -----------------------------------------------------------------------------------------------------

    @property
    def compacted(self) -> int:
        """Revisions up to this one are history no longer kept."""
        return self._log.compacted

    def get(self, address: ObjectAddress) -> Record | None:
        """The committed state."""
        return self._state.get(address)

    def latest(self, address: ObjectAddress) -> Record | None:
        """The state a write must be decided on: committed, or on its way."""
        on_its_way = self._latest.get(address)  # in one step: threads that judge large objects ask, too
        return self._state.get(address) if on_its_way is None else on_its_way[1]

    def in_flight(self, collection: str) -> list[Record]:
        """Objects as writes that are on their way leave them."""
        found = (record for _, record in self._latest.values() if record is not None)
        return [record for record in found if record.address.collection == collection]

    def list(self, collection: str, namespace: str | None = None) -> list[Record]:
        """Committed objects, by namespace and then name."""
        return self._state.list(collection, namespace)

    def list_at(self, collection: str, namespace: str | None, revision: int) -> Records:
        """As `list`, at an earlier moment: what was committed since is undone. Raises `Expired` for what is too old."""
        self.check_revision(revision)
        found = {record.address: record for record in self.list(collection, namespace)}
        for change in reversed(self._changes_of(collection, namespace, since=revision)):
            if change.previous is None:
                found.pop(change.record.address, None)
            else:
                found[change.record.address] = change.previous
        return [record for _, record in sorted(found.items())]

    def check_revision(self, revision: int) -> None:
        """Refuse a revision whose history is no longer there, or that has not happened yet."""
        if revision > self.revision:
            why = f"Too large resource version: {revision}, current: {self.revision}"
            raise errors.Timeout(why, retry_after=1)
        if revision < self._log.compacted:
            raise errors.Expired(f"too old resource version: {revision} ({self._log.compacted})")

    def collections(self) -> Iterable[str]:
        return self._state.collections()

    def count(self, collection: str, namespace: str | None = None) -> int:
        return self._state.count(collection, namespace)

    # Writing -----------------------------------------------------------------------------------------------------

    # Plain functions that return a future, not coroutines: check and enqueueing happen before anything else can run.

    def put(
        self, address: ObjectAddress, obj: Object, *, expect: int, largest: int = sys.maxsize
    ) -> asyncio.Future[Record]:
        """Create (`expect` 0) or replace the object whose revision is `expect`. Sets metadata.resourceVersion.

        An object of more than `largest` bytes is refused.
        """
        return self._write(address, obj, expect=expect, op=Op.UPDATE if expect else Op.CREATE, largest=largest)

    def delete(self, address: ObjectAddress, obj: Object, *, expect: int) -> asyncio.Future[Record]:
        """Remove the object; `obj` is the last state that watchers will be shown."""
        return self._write(address, obj, expect=expect, op=Op.DELETE)

    def _write(
        self, address: ObjectAddress, obj: Object, *, expect: int, op: Op, largest: int = sys.maxsize
    ) -> asyncio.Future[Record]:
        current = self.latest(address)
        if (current.rev if current else 0) != expect:
            group, _, plural = address.collection.partition("/")
            if op is Op.CREATE:
                raise errors.already_exists(plural, address.name, group=group)
            raise errors.conflict(plural, address.name, group=group)
        rev = self._allocated + 1
        obj["metadata"]["resourceVersion"] = str(rev)
        record = Record(address, rev, encode(obj))
        check_size(record.value, largest)
        self._allocated = rev
        prev = expect or self._tombstone(address)
        write = _Write(
            Row(rev, address.key(), prev, op, record.value),
            record,
            asyncio.get_running_loop().create_future(),
        )
        self._latest[address] = (rev, None if op is Op.DELETE else record)
        self._queue.append(write)
        if not self._due and not self._busy:
            self._flush_soon()
        return write.done

    def _flush_soon(self) -> None:
        """At the end of this round of the loop, or a moment later where more is to be expected."""
        self._due = True
        loop = asyncio.get_running_loop()
        if self._company:
            loop.call_later(GATHER, self._flush)
        else:
            loop.call_soon(self._flush)

    def _tombstone(self, address: ObjectAddress) -> int:
        """The deletion that a new object of the same name follows, so that compaction drops it in time."""
        pending = self._latest.get(address)
        return pending[0] if pending else self._state.tombstone(address)

    def _flush(self) -> None:
        self._due = False
        if self._busy or not self._queue:
            return
        group, self._queue = self._queue, []
        self._company = self._durable and len(group) > 1
        try:
            self._log.append([write.row for write in group])
        except StorageError as error:
            self._fail(group, error)
            return
        if self._durable:
            self._on_disk_thread(self._log.sync, functools.partial(self._synced, group))
        else:
            self._commit(group)
            self._tidy()

    def _synced(self, group: Sequence[_Write], error: StorageError | None) -> None:
        if error is None:
            self._commit(group)
            self._tidy()
            return
        self._log.retract(group[0].row.rev)
        self._fail([*group, *self._queue], error)

    def _tidy(self) -> None:
        """Upkeep that a commit made due. It only saves space: where it fails it is tried again after a later commit."""
        many, large = self.revision - self._log.compacted > 2 * self._retain, self._log.gathered > RETAIN_BYTES
        if self._log.gathered > RETAIN_BYTES - RETAIN_BYTES // 8 and not self._last_part:
            self._last_part = self.revision
        if many or large:
            upto = min(self._last_part, self._recent.first) - 1 if large else self.revision - self._retain
            self._last_part = 0
            self._on_disk_thread(
                functools.partial(self._log.compact, upto), lambda _: self._forget(self._log.compacted)
            )
        elif self._log.wants_checkpoint:
            self._on_disk_thread(self._log.checkpoint, lambda _: None)

    def _on_disk_thread(self, work: Work, then: Then) -> None:
        """Have the log to itself in the thread; writes that come meanwhile gather."""
        self._busy = True

        def done(error: StorageError | None) -> None:
            self._busy = False
            then(error)
            if self._queue and not self._busy and not self._due:
                self._company = self._durable
                self._flush_soon()
            if not self._busy:
                waiting, self._waiting = self._waiting, []
                for waiter in waiting:
                    if not waiter.done():
                        waiter.set_result(None)

        self._disk_thread.run(work, done)

    async def _free(self) -> None:
        """Wait until nothing is queued or beside the loop."""
        while self._busy or self._queue:
            if not self._busy:
                self._flush()
                continue
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            await waiter

    def _commit(self, group: Iterable[_Write]) -> None:
        for row, record, done in group:
            change = Change(row.op, record, self._state.take(row.op, record))
            self.revision = row.rev
            if self._latest.get(record.address, (0, None))[0] == row.rev:
                del self._latest[record.address]
            self._recent.append(change)
            for listener in self._listeners:
                listener(change)
            for watch in self._watches.get(record.address.collection, ()):
                self.dropped_watchers += watch.offer(change)
            if not done.done():  # the caller may have gone away; the write stands all the same
                done.set_result(record)

    def _fail(self, writes: Iterable[_Write], error: StorageError) -> None:
        """All writes in flight fail together: later ones may have been decided on top of the first."""
        self._queue = []
        self._latest.clear()
        self._allocated = self.revision
        for write in writes:
            if not write.done.done():
                write.done.set_exception(errors.ServiceUnavailable(f"nothing was changed: {error}", retry_after=1))

    def subscribe(self, listener: Callable[[Change], None]) -> None:
        """Call `listener` with every commit, before its writer gets an answer: for indexes that must never lag behind.

        A listener only takes notes; it must not raise and must not write.
        """
        self._listeners.append(listener)

    # Watching ----------------------------------------------------------------------------------------------------

    def watch(self, collection: str, namespace: str | None, *, since: int) -> Watch:
        """Changes after revision `since`. Raises `Expired` when that history has been compacted away."""
        if since < self._log.compacted:
            raise errors.Expired(f"too old resource version: {since} ({self._log.compacted})")
        watch = Watch(collection, namespace, self._changes_of(collection, namespace, since=since))
        self._watches.setdefault(collection, set()).add(watch)
        return watch

    @property
    def watchers(self) -> int:
        return sum(len(watches) for watches in self._watches.values())

    def unwatch(self, watch: Watch) -> None:
        watches = self._watches.get(watch.collection, set())
        watches.discard(watch)
        watch.release()

    def _changes_of(self, collection: str, namespace: str | None, *, since: int) -> Changes:
        if since >= self.revision:
            return []
        recent = self._recent.since(since)
        if recent is None:
            return self._changes_in_table(collection, namespace, since=since)
        return [
            change
            for change in recent
            if change.record.address.collection == collection
            and (namespace is None or change.record.address.namespace == namespace)
        ]

    def _changes_in_table(self, collection: str, namespace: str | None, *, since: int) -> Changes:
        """Raises `Expired` for more than can be read while others wait: they can be had by a list as well."""
        within = f"{collection}/" if namespace is None else f"{collection}/{namespace}/"
        known: dict[int, Row] = {}
        changes = []
        room = HISTORY_BYTES
        for row in self._log.since(since, upto=self.revision, within=within):
            before = known.get(row.prev)
            if before is None and row.prev:
                before = self._log.row(row.prev)
                room -= len(before.value) if before else 0
            room -= max(LEAST_BYTES, len(row.value))
            if room < 0:
                raise errors.Expired(f"too old resource version: {since}; too much has changed since then")
            known[row.rev] = row
            address = ObjectAddress.from_key(row.key)
            previous = Record(address, before.rev, before.value) if before and before.op != Op.DELETE else None
            changes.append(Change(row.op, Record(address, row.rev, row.value), previous))
        return changes

    # Upkeep ------------------------------------------------------------------------------------------------------

    async def compact(self, upto: int) -> None:
        """Drop history up to `upto`; watchers older than that must list again."""
        await self._free()
        upto = min(upto, self.revision)
        self._on_disk_thread(functools.partial(self._log.compact, upto), lambda _: self._forget(self._log.compacted))
        await self._free()

    def _forget(self, upto: int) -> None:
        self._state.forget(upto)
        self._recent.forget(upto)

    async def close(self) -> None:
        """Finish what is queued, end all watches, close the file."""
        await self._free()
        for watches in self._watches.values():
            for watch in watches:
                watch.close()
        self._disk_thread.close()
        self._log.close()
