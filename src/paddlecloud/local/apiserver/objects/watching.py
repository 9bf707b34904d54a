"""watch: a stream of changes as one client asked to see them, filtered, in its shape, with bookmarks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable

from paddlecloud.kube.clock import Clock
from paddlecloud.kube.errors import ApiError
from paddlecloud.kube.resource import Object
from paddlecloud.kube.timeslice import TimeSlice
from paddlecloud.local.apiserver.http.negotiation import encode
from paddlecloud.local.apiserver.objects.large import LARGE
from paddlecloud.local.apiserver.objects.selection import Filter
from paddlecloud.local.apiserver.registry import KindInfo
from paddlecloud.local.store.log import Op
from paddlecloud.local.store.record import Record
from paddlecloud.local.store.store import Store
from paddlecloud.local.store.watch import Change

BOOKMARK_EVERY = 30.0
DEFAULT_TIMEOUT = 1800.0
PIECE = 1024 * 1024
"""Bytes that are sent at once. The rest is rendered when the client has read them."""

Render = Callable[[Record], bytes]
_PLAIN = {Op.CREATE: "ADDED", Op.UPDATE: "MODIFIED", Op.DELETE: "DELETED"}


class Turns:
    """Shared by all watches: large events are rendered and sent one by one, and others are served in between. For a
    thousand watches of one object of a megabyte it would otherwise be a single round of the event loop."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def take(self) -> None:
        async with self._lock:
            await asyncio.sleep(0)


def classify(change: Change, chosen: Filter) -> tuple[str, Record] | None:
    """The event a filtered watcher sees: leaving the selection is a deletion, entering it an addition."""
    if chosen.trivial:
        return _PLAIN[change.op], change.record
    before = change.previous is not None and chosen.matches(change.previous)
    if change.op is Op.DELETE:
        return ("DELETED", change.record) if before else None
    after = chosen.matches(change.record)
    if after:
        return ("MODIFIED" if before else "ADDED", change.record)
    return ("DELETED", change.record) if before else None


async def stream(
    store: Store,
    info: KindInfo,
    namespace: str | None,
    *,
    since: int | None,
    chosen: Filter,
    render: Render,
    bookmarks: bool,
    initial_events_end: bool,
    timeout: float | None,
    clock: Clock,
    turns: Turns,
) -> AsyncIterator[bytes]:
    """Frames of the watch. `since` None starts with the present state as ADDED events."""
    collection = info.collection
    start = store.revision if since is None else since
    present = store.list(collection, namespace) if since is None else []
    try:
        watch = store.watch(collection, namespace, since=start)
    except ApiError as error:  # too much has happened since then
        yield _error(error)
        return
    deadline = clock.monotonic() + (timeout or DEFAULT_TIMEOUT)
    next_bookmark = clock.monotonic() + BOOKMARK_EVERY
    try:
        # An empty first frame lets the edge send its headers at once: clients wait for them.
        yield b""
        async for frames in _frames((("ADDED", record) for record in present if chosen.matches(record)), render, turns):
            yield frames
        if initial_events_end:
            yield _bookmark(info, start, initial=True)
        while True:
            now = clock.monotonic()
            if now >= deadline:
                return
            batch = await watch.next_batch(min(deadline, next_bookmark) - now)
            if batch is None:
                if bookmarks and clock.monotonic() >= next_bookmark:
                    next_bookmark = clock.monotonic() + BOOKMARK_EVERY
                    yield _bookmark(info, store.revision)
                elif not bookmarks:
                    next_bookmark = deadline
                continue
            if not batch:  # cut off for being slow, or the server stops: the client resumes from what it has
                return
            events = (classify(change, chosen) for change in batch)
            async for frames in _frames((event for event in events if event), render, turns):
                yield frames
    except ApiError as error:
        yield _error(error)
    finally:
        store.unwatch(watch)


async def _frames(events: Iterable[tuple[str, Record]], render: Render, turns: Turns) -> AsyncIterator[bytes]:
    """Small ones are joined."""
    slice_, found, size = TimeSlice(), list[bytes](), 0
    for kind, record in events:
        if len(record.value) > LARGE:
            await turns.take()
        found.append(_frame(kind, render(record)))
        size += len(found[-1])
        if size >= PIECE:
            yield b"".join(found)
            found, size = [], 0
        await slice_.checkpoint()
    if found:
        yield b"".join(found)


def _frame(kind: str, body: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (kind.encode(), body)


def _error(error: ApiError) -> bytes:
    return _frame("ERROR", encode(error.status()))


def _bookmark(info: KindInfo, revision: int, *, initial: bool = False) -> bytes:
    meta: Object = {"resourceVersion": str(revision), "creationTimestamp": None}
    if initial:
        meta["annotations"] = {"k8s.io/initial-events-end": "true"}
    return _frame("BOOKMARK", encode({"kind": info.kind, "apiVersion": info.resource.api_version, "metadata": meta}))
