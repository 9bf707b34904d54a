"""Versions of the gateways' table, and which of them each process has acknowledged."""

from __future__ import annotations

import math
from collections.abc import Iterable

from paddlecloud.kube.clock import Clock

LATE = 5.0
"""Seconds without an acknowledgement after which a process is not waited for: it hangs."""


class Acknowledgements:
    """Of the processes that are connected, by their numbers. `version` is the one of the last change."""

    def __init__(self, clock: Clock) -> None:
        self.version = 0
        self._clock = clock
        self._applied: dict[int, float] = {}
        self._behind: dict[int, float] = {}  # since when a process has made no progress towards `version`

    def next_version(self) -> int:
        """A change is about to be sent to all processes."""
        self.version += 1
        for number, applied in self._applied.items():
            if applied < self.version:
                self._behind.setdefault(number, self._clock.monotonic())
        return self.version

    def connected(self, number: int, *, listening: bool | None) -> None:
        """A process gets the whole table of the present version. None: one of an earlier release, which does not
        acknowledge and is not waited for. One that is not `listening` yet listens only after it has that table."""
        self.disconnected(number)
        if listening is None:
            self._applied[number] = math.inf
        elif listening:
            self._applied[number] = -1
            self._behind[number] = self._clock.monotonic()
        else:
            self._applied[number] = self.version

    def received(self, number: int, version: int) -> None:
        self._applied[number] = version
        self._behind.pop(number, None)
        if version < self.version:
            self._behind[number] = self._clock.monotonic()

    def disconnected(self, number: int) -> None:
        self._applied.pop(number, None)
        self._behind.pop(number, None)

    def reached(self, version: int, numbers: Iterable[int]) -> bool:
        """Whether these processes have applied `version`: at least one of them, and all that are not late."""
        known = [number for number in numbers if number in self._applied]
        missing = [number for number in known if self._applied[number] < version]
        return len(missing) < len(known) and all(map(self._is_late, missing))

    def _is_late(self, number: int) -> bool:
        since = self._behind.get(number)
        return since is not None and self._clock.monotonic() - since >= LATE
