"""How many connections Services, and pods behind the API, may have through the control plane.

Each is two descriptors of the process, for as long as its client or its pod likes, and pods may never close theirs. So
their number is bounded: without descriptors the API server could accept nobody.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from paddlecloud.kube.resource import Key

log = logging.getLogger(__name__)

DESCRIPTORS = 2
"""Of one connection: to the client and to the pod."""


class Connections:
    """All together have `most`, one Service or pod half of that."""

    def __init__(self, most: int) -> None:
        self._most = max(2, most)
        self._of: Counter[Key] = Counter()
        self._full: set[Key] = set()

    @contextmanager
    def place(self, target: Key) -> Iterator[bool]:
        """Holds a place while the context is open; yields whether there was one."""
        if self._of[target] >= self._most // 2 or self._of.total() >= self._most:
            self._report(target)
            yield False
            return
        self._of[target] += 1
        try:
            yield True
        finally:
            self._of[target] -= 1
            if not self._of[target]:
                del self._of[target]
                self._full.discard(target)

    def _report(self, target: Key) -> None:
        """Once, until it has had no connection for a moment: somebody may try again and again."""
        if target not in self._full:
            self._full.add(target)
            log.warning(
                "connections to %s are refused: one Service or pod has at most %d at a time, all have %d; pdc up with "
                "a higher limit of open files (ulimit -n) allows more",
                target,
                self._most // 2,
                self._most,
            )
