"""Requests that are carried out at the same time: so many slots, of which slow clients give up theirs for others.

A client that sends its file, or reads one, byte by byte holds its slot as long as it likes. Limits of each tenant do
not help where one person has several namespaces. So when somebody waits and all slots are taken, one is cut off that
waits for its client and is slow or has been there for long: of the tenant with the most slots the slowest. Uploads and
downloads continue where they stopped. Who waits is let in by the number of slots that its tenant has.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from paddlecloud.kube.clock import Clock

SLOW = 1 << 20
"""Bytes a second."""
PATIENCE, LONG = 5.0, 60.0
"""Seconds that a slot is held at least, and those after which one that is not slow may be given up, too."""
AGAIN = 1.0
"""Seconds after which those that wait look for slow ones once more."""


class HeldSlot:
    def __init__(self, tenant: str, cut: Callable[[], object], clock: Clock) -> None:
        self.tenant, self._cut, self._clock = tenant, cut, clock
        self._began = 0.0
        self._moved = 0
        self._asks = False
        self.is_cut = False

    def begin(self) -> None:
        self._began = self._clock.monotonic()

    @contextmanager
    def of_client(self) -> Iterator[None]:
        """While the client has to send something, or to read it."""
        self._asks = True
        try:
            yield
        finally:
            self._asks = False

    def moved(self, size: int) -> None:
        self._moved += size

    @property
    def rate(self) -> float:
        return self._moved / max(self._clock.monotonic() - self._began, 0.001)

    @property
    def may_be_cut(self) -> bool:
        held = self._clock.monotonic() - self._began
        return self._asks and not self.is_cut and (held >= LONG or (held >= PATIENCE and self.rate < SLOW))

    def cut(self) -> None:
        self.is_cut = True
        self._cut()


class Slots:
    def __init__(self, most: int, clock: Clock) -> None:
        self._most, self._clock = most, clock
        self._held: set[HeldSlot] = set()
        self._waiting: dict[HeldSlot, asyncio.Future[None]] = {}  # in the order in which they came

    @asynccontextmanager
    async def slot(self, tenant: str, cut: Callable[[], object]) -> AsyncIterator[HeldSlot]:
        """`cut` ends the connection to the client."""
        slot = HeldSlot(tenant, cut, self._clock)
        if len(self._held) < self._most:
            self._give(slot)
        else:
            await self._turn(slot)
        try:
            yield slot
        finally:
            self._leave(slot)

    async def _turn(self, slot: HeldSlot) -> None:
        turn = self._waiting[slot] = asyncio.get_running_loop().create_future()
        try:
            while not turn.done():
                self._make_room()
                await asyncio.wait({turn}, timeout=AGAIN)
        except BaseException:
            if self._waiting.pop(slot, None) is None:
                self._leave(slot)
            raise

    def _give(self, slot: HeldSlot) -> None:
        slot.begin()
        self._held.add(slot)

    def _leave(self, slot: HeldSlot) -> None:
        """It goes to somebody who waits, so nobody who comes in between takes it."""
        self._held.discard(slot)
        if self._waiting:
            held = self._by_tenant()
            first = min(self._waiting, key=lambda each: held[each.tenant])
            self._give(first)
            self._waiting.pop(first).set_result(None)

    def _make_room(self) -> None:
        """One slot for each that waits, and none for a tenant that has as many as the one that would lose it."""
        held = self._by_tenant()
        candidates = [slot for slot in self._held if slot.may_be_cut]
        ending = sum(slot.is_cut for slot in self._held)
        for waiting in list(self._waiting)[ending:]:
            candidates.sort(key=lambda each: (held[each.tenant], -each.rate))
            if not candidates or held[candidates[-1].tenant] <= held[waiting.tenant]:
                continue
            chosen = candidates.pop()
            held[chosen.tenant] -= 1
            chosen.cut()

    def _by_tenant(self) -> Counter[str]:
        return Counter(slot.tenant for slot in self._held)
