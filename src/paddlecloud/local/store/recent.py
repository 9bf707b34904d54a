"""The newest changes in memory, for watchers that resume. Bounded in number and in bytes: one object of megabytes that
somebody updates again and again must not fill the memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from paddlecloud.local.store.watch import Change

MOST = 4096
MOST_BYTES = 16 * 1024 * 1024
"""So many changes of ordinary objects take less; keeping this much costs about 25 MB. Older ones are in the table."""


class RecentChanges:
    def __init__(self) -> None:
        self._changes: deque[Change] = deque()
        self._bytes = 0

    def append(self, change: Change) -> None:
        self._changes.append(change)
        self._bytes += change.size
        while len(self._changes) > MOST or (self._bytes > MOST_BYTES and len(self._changes) > 1):
            self._drop_first()

    def forget(self, upto: int) -> None:
        """History up to `upto` was compacted."""
        while self._changes and self._changes[0].rev <= upto:
            self._drop_first()

    def since(self, rev: int) -> Iterator[Change] | None:
        """All changes after `rev`; None if not all of them are here."""
        if not self._changes or self._changes[0].rev > rev + 1:
            return None
        return (change for change in self._changes if change.rev > rev)

    @property
    def first(self) -> int:
        """The oldest revision that is here; 0 if none is."""
        return self._changes[0].rev if self._changes else 0

    def _drop_first(self) -> None:
        self._bytes -= self._changes.popleft().size
