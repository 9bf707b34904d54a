"""How many connections Services, and pods behind the API, may have through the control plane.

Each is two descriptors of the process, for as long as its client or its pod likes, and pods may never close theirs. So
their number is bounded: without descriptors the API server could accept nobody.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

log = logging.getLogger(__name__)

DESCRIPTORS = 2
"""Of one connection: to the client and to the pod."""


class Connections:
    """All together have `most`, those to pods of one namespace half of that."""

    def __init__(self, most: int) -> None:
        self._most = max(2, most)
        self._of: Counter[str] = Counter()
        self._full: set[str] = set()

    @contextmanager
    def place(self, namespace: str) -> Iterator[bool]:
        """Holds a place while the context is open; yields whether there was one."""
        if self._of[namespace] >= self._most // 2 or self._of.total() >= self._most:
            self._report(namespace)
            yield False
            return
        self._of[namespace] += 1
        try:
            yield True
        finally:
            self._of[namespace] -= 1
            if not self._of[namespace]:
                del self._of[namespace]
                self._full.discard(namespace)

    def _report(self, namespace: str) -> None:
        """Once, until it has had no connection for a moment: somebody may try again and again."""
        if namespace not in self._full:
            self._full.add(namespace)
            log.warning(
                "connections to pods of namespace %s are refused: one has at most %d at a time, all have %d; pdc up "
                "with a higher limit of open files (ulimit -n) allows more",
                namespace,
                self._most // 2,
                self._most,
            )
