"""What we wrote and have not yet seen come back.

A cache lags behind the server. A controller that decides on a cache without its own last writes would make them
again: at best wasted requests, at worst two pods where one was wanted. So each write is noted under the owner it was
made for, crossed out when the informer shows it, and no decision is taken for an owner while a note is open.

Notes expire: a write can be undone by others before we ever see it, and waiting for it for ever would be worse than
deciding on old news.
"""

from __future__ import annotations

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
    """Open until the informer shows version `wanted`, or that the incarnation `doomed` is going or gone.

    `wanted` is unknown until the server has answered; `shown` remembers what came meanwhile, for informers may be
    faster than answers.
    """

    expires: float
    doomed: str | None = None
    wanted: int | None = None
    shown: int = 0

    def show(self, new: Object | None) -> bool:
        """Take in a change; True when the note is settled."""
        if self.doomed is not None:
            return new is None or new["metadata"].get("uid") != self.doomed or "deletionTimestamp" in new["metadata"]
        if new is not None:
            self.shown = max(self.shown, version_of(new) or 0)
        return self.wanted is not None and self.shown >= self.wanted


class Expectations:
    """For each write: `expect` or `expect_deleted`, send it, then `answered` (except deletions) or `drop`.

    Invariant: an owner is in `_open` only while it has at least one note.
    """

    def __init__(self, *, clock: Clock | None = None, ttl: float = 30.0) -> None:
        self._clock = clock or SystemClock()
        self._ttl = ttl
        self._open: dict[Key, dict[Ref, _Note]] = {}

    def expect(self, owner: Key, ref: Ref, *, seen: str | None = None) -> None:
        """A creation or change is about to be sent. `seen` is the resourceVersion the decision was based on: a write
        that changes nothing is answered with it and will never be shown again."""
        shown = int(seen) if seen and seen.isdecimal() else 0
        self._open.setdefault(owner, {})[ref] = _Note(self._expiry(), shown=shown)

    def expect_deleted(self, owner: Key, ref: Ref, uid: str) -> None:
        """The deletion of this incarnation is about to be sent."""
        self._open.setdefault(owner, {})[ref] = _Note(self._expiry(), doomed=uid)

    def answered(self, owner: Key, written: Object) -> None:
        """The server did it; now we know which version to wait for."""
        ref = ref_of(written)
        note = self._open.get(owner, {}).get(ref)
        if note is None:
            return
        note.wanted = version_of(written)
        if note.wanted is None or note.shown >= note.wanted:
            self.drop(owner, ref)

    def drop(self, owner: Key, ref: Ref) -> None:
        """The write failed or was not needed: nothing will come."""
        notes = self._open.get(owner, {})
        notes.pop(ref, None)
        if not notes:
            self._open.pop(owner, None)

    def observe(self, owner: Key, old: Object | None, new: Object | None) -> None:
        """The informer shows a change of an object of this owner (or of the owner itself)."""
        obj = new if new is not None else old
        if obj is None or owner not in self._open:
            return
        ref = ref_of(obj)
        note = self._open[owner].get(ref)
        if note is not None and note.show(new):
            self.drop(owner, ref)

    def pending(self, owner: Key) -> float | None:
        """None when a decision may be taken, else the seconds after which to look again at the latest."""
        now = self._clock.monotonic()
        live = {ref: note for ref, note in self._open.get(owner, {}).items() if note.expires > now}
        if not live:
            self._open.pop(owner, None)
            return None
        self._open[owner] = live
        return max(note.expires for note in live.values()) - now

    def forget(self, owner: Key) -> None:
        """The owner is gone."""
        self._open.pop(owner, None)

    def _expiry(self) -> float:
        return self._clock.monotonic() + self._ttl
