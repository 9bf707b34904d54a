"""What we wrote and have not yet seen come back.

A cache lags behind the server. Whoever decides on a cache that does not hold yesterday's writes would make them again:
at best wasted requests, at worst two pods where one was wanted. So each write is noted under the owner it was made for,
crossed out when the informer shows it, and no new decision is taken for an owner while one is open.

Notes expire: a write can be undone by others before we ever see it, and waiting for it for ever would be worse than
deciding on old news.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple

from paddlecloud.kube.cache import version_of
from paddlecloud.kube.clock import Clock, SystemClock
from paddlecloud.kube.resource import Key, Object


class Ref(NamedTuple):
    """One object of one kind, whatever its incarnation."""

    api_version: str
    kind: str
    namespace: str
    name: str


def ref_of(obj: Object) -> Ref:
    meta = obj["metadata"]
    return Ref(obj["apiVersion"], obj["kind"], meta.get("namespace", ""), meta["name"])


@dataclass(slots=True)
class _Note:
    """One open expectation; exactly one of the three questions is asked of what the informer shows."""

    expires: float
    gone: str | None = None  # this uid is deleted or being deleted
    version: int | None = None  # the object is at least this new

    def met(self, new: Object | None) -> bool:
        if self.gone is not None:
            return new is None or new["metadata"].get("uid") != self.gone or "deletionTimestamp" in new["metadata"]
        if new is None:
            return self.version is not None  # an updated object that vanished will not come back at that version
        shown = version_of(new)
        return self.version is None or shown is None or shown >= self.version


class Expectations:
    """Invariant: an owner is in `_open` only while it has at least one note."""

    def __init__(self, *, clock: Clock | None = None, ttl: float = 30.0) -> None:
        self._clock = clock or SystemClock()
        self._ttl = ttl
        self._open: dict[Hashable, dict[Ref, _Note]] = {}

    # Before or after a write

    def expect_created(self, owner: Key, ref: Ref) -> None:
        """Note before the request leaves: the informer may be faster than the answer."""
        self._note(owner, ref, _Note(self._expiry()))

    def expect_deleted(self, owner: Key, ref: Ref, uid: str) -> None:
        self._note(owner, ref, _Note(self._expiry(), gone=uid))

    def expect_version(self, owner: Key, written: Object, cached: Object | None) -> None:
        """Note after an update was answered with `written`, unless `cached` shows it already."""
        note = _Note(self._expiry(), version=version_of(written))
        if note.version is not None and not (cached is not None and note.met(cached)):
            self._note(owner, ref_of(written), note)

    def drop(self, owner: Key, ref: Ref) -> None:
        """The write failed: nothing will come."""
        notes = self._open.get(owner)
        if notes is not None:
            notes.pop(ref, None)
            if not notes:
                del self._open[owner]

    # From informers

    def observe(self, owner: Key, old: Object | None, new: Object | None) -> None:
        """Cross out what this change answers."""
        obj = new if new is not None else old
        if obj is None or owner not in self._open:
            return
        ref = ref_of(obj)
        note = self._open[owner].get(ref)
        if note is not None and note.met(new):
            self.drop(owner, ref)

    # Before a decision

    def pending(self, owner: Key) -> float | None:
        """None when a decision may be taken, else after how many seconds to look again at the latest."""
        notes = self._open.get(owner)
        if notes is None:
            return None
        now = self._clock.monotonic()
        live = {ref: note for ref, note in notes.items() if note.expires > now}
        if not live:
            del self._open[owner]
            return None
        self._open[owner] = live
        return min(note.expires for note in live.values()) - now

    def satisfied(self, owner: Key) -> bool:
        return self.pending(owner) is None

    def forget(self, owner: Key) -> None:
        """The owner is gone."""
        self._open.pop(owner, None)

    def _expiry(self) -> float:
        return self._clock.monotonic() + self._ttl

    def _note(self, owner: Key, ref: Ref, note: _Note) -> None:
        self._open.setdefault(owner, {})[ref] = note
