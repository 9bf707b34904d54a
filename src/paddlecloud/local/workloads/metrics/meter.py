"""CPU rates out of readings: nothing runs in the background, a rate is the difference to an earlier question.

Who asks first waits a moment for the second reading; who asks again soon gets the rate since the last reading kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from paddlecloud.kube.clock import Clock
from paddlecloud.local.kubelet.node.usage import Usage

GLANCE = 1.0  # seconds between two readings when there is no earlier one: a step of training is within
SHORTEST = 0.2  # a rate over less is noise
LONGEST = 60.0  # and over more is history
RENEW = 15.0  # how long a reading stays the one that later ones are compared to

Read = Callable[[str], Mapping[str, Usage]]
"""Pod uid → usage by container."""


class Rate(NamedTuple):
    cores: float
    memory: int
    window: float


class _Reading(NamedTuple):
    at: float
    cpu: float


class Meter:
    def __init__(self, read: Read, clock: Clock) -> None:
        self._read = read
        self._clock = clock
        self._kept: dict[tuple[str, str], _Reading] = {}

    async def measure(self, uids: Iterable[str]) -> dict[str, dict[str, Rate]]:
        """By pod and container; containers that do not run are left out."""
        uids = list(uids)
        first = await self._look(uids)
        if any(self._base(key) is None for key in first):
            now = self._clock.monotonic()
            for key, usage in first.items():
                if self._base(key) is None:
                    self._kept[key] = _Reading(now, usage.cpu_seconds)
            await self._clock.sleep(GLANCE)
            first = await self._look(uids)
        now = self._clock.monotonic()
        rates: dict[str, dict[str, Rate]] = {uid: {} for uid in uids}
        for (uid, container), usage in first.items():
            # One that began between the two readings has nothing to be compared to yet.
            base = self._kept.setdefault((uid, container), _Reading(now, usage.cpu_seconds))
            window = max(now - base.at, SHORTEST)
            # A container that was restarted begins to count anew.
            cores = max(0.0, usage.cpu_seconds - base.cpu) / window
            rates[uid][container] = Rate(cores, usage.memory_bytes, window)
            if window >= RENEW:
                self._kept[(uid, container)] = _Reading(now, usage.cpu_seconds)
        self._forget(now)
        return rates

    async def _look(self, uids: list[str]) -> dict[tuple[str, str], Usage]:
        def read_all() -> dict[tuple[str, str], Usage]:
            return {(uid, name): usage for uid in uids for name, usage in self._read(uid).items()}

        return await asyncio.to_thread(read_all)

    def _base(self, key: tuple[str, str]) -> _Reading | None:
        kept = self._kept.get(key)
        age = self._clock.monotonic() - kept.at if kept else 0.0
        return kept if kept is not None and SHORTEST <= age <= LONGEST else None

    def _forget(self, now: float) -> None:
        self._kept = {key: reading for key, reading in self._kept.items() if now - reading.at <= LONGEST}
