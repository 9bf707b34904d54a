"""Writes the status of PodGroups and Queues: at once when a phase changes, counts once they have settled."""

from __future__ import annotations

import asyncio
import heapq
import logging

from paddlecloud.kube import errors
from paddlecloud.kube.client import PATCH_TYPES, Client
from paddlecloud.kube.clock import Clock, sleep_until_set
from paddlecloud.kube.rate_limit import RateLimit
from paddlecloud.kube.resource import COSCHEDULING_PODGROUPS, PODGROUPS, QUEUES, Key, Object
from paddlecloud.local.scheduler.controller.group_status import queue_status, status_of
from paddlecloud.local.scheduler.controller.watches import Watches
from paddlecloud.local.scheduler.decision.gang_admission import Obstacles, obstacles
from paddlecloud.local.scheduler.state.membership import Group
from paddlecloud.local.scheduler.state.snapshot import COSCHEDULING, Gang, GroupKey
from paddlecloud.local.scheduler.state.state import State

log = logging.getLogger(__name__)

SETTLE = 1.0
"""Seconds after which a change is written that nobody waits for: numbers, reasons, and the phase Running. Volcano too
writes once a second. A gang that is over by then was worth one write."""
SOON = 0.3
"""The same for a group that is let in before it has pods, when many are: most will have theirs by then."""
LET_IN_BURST, LET_IN_RATE = 50.0, 20.0
REFRESH = 30.0
"""Seconds after which new words for the same reason are written: numbers change with every round."""
WORDS_BURST, WORDS_RATE = 50.0, 10.0
WORDS_AGAIN = 1.0
"""Seconds after which texts that the rate limit held back are tried again."""
QUEUES_EVERY = 3.0
CONCURRENCY = 32


class GroupStatusWriter:
    """`poke` after every round; `run` writes until cancelled."""

    def __init__(self, client: Client, clock: Clock, state: State, watches: Watches) -> None:
        self._client = client
        self._clock = clock
        self._state = state
        self._watches = watches
        self._wake = asyncio.Event()
        self._since: dict[GroupKey, float] = {}  # numbers waiting to settle
        self._at: dict[GroupKey, float] = {}  # when to look at them again
        self._later: list[tuple[float, GroupKey]] = []  # the same as a heap; what is no more in `_at` is void
        self._written: dict[GroupKey, Object] = {}  # our last words, until the cache has them
        self._undecided: set[GroupKey] = set()
        self._queues_at = 0.0
        self._words = RateLimit(clock, burst=WORDS_BURST, rate=WORDS_RATE)
        self._let_in = RateLimit(clock, burst=LET_IN_BURST, rate=LET_IN_RATE)

    def poke(self) -> None:
        self._wake.set()

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            wait = await self._pass()
            if wait is not None:
                # a new phase, which wakes it, does not wait for numbers to settle
                await sleep_until_set(self._wake, wait, self._clock)
                self._wake.set()

    async def _pass(self) -> float | None:
        """Write what is due; seconds until something else is."""
        now = self._clock.monotonic()
        due: list[tuple[GroupKey, Object]] = []
        for key in self._state.touched | self._undecided | self._due(now):
            group = self._state.groups.get(key)
            if group is None or group.source is None or group.gang is None:
                self._settle(key)
                continue
            status, old = self._status(group, group.gang), self._known(key, group)
            if status == old:
                self._settle(key, undecided=status["phase"] == "Pending")
                continue
            fresh = key not in self._since
            wait = self._since.setdefault(key, now) + _patience(status, old, started=bool(group.phases)) - now
            if fresh and 0 < wait <= SOON and self._let_in.take():
                wait = 0.0
            if wait <= 0 and _only_words(status, old) and not self._words.take():
                wait = WORDS_AGAIN
            if wait > 0:  # looked at again then, or when it changes
                self._state.touched.discard(key)
                self._look_again(key, now + wait)
                continue
            self._settle(key, undecided=status["phase"] == "Pending")
            due.append((key, status))
        limit = asyncio.Semaphore(CONCURRENCY)
        await asyncio.gather(*(self._write(limit, key, status) for key, status in due))
        soonest = max(0.0, self._later[0][0] - now) if self._later else None
        wait = self._queues_at - now
        if wait <= 0:
            self._queues_at = now + QUEUES_EVERY
            await self._report_queues()
        elif due and self._state.queues():
            soonest = wait if soonest is None else min(wait, soonest)
        return soonest

    def _look_again(self, key: GroupKey, when: float) -> None:
        if self._at.get(key, float("inf")) > when:
            self._at[key] = when
            heapq.heappush(self._later, (when, key))

    def _due(self, now: float) -> set[GroupKey]:
        """Those whose time has come: looking at all that wait in every round would cost as much as there are."""
        found = set()
        while self._later and self._later[0][0] <= now:
            when, key = heapq.heappop(self._later)
            if self._at.get(key) == when:
                del self._at[key]
                found.add(key)
        return found

    def _settle(self, key: GroupKey, *, undecided: bool = False) -> None:
        """Nothing is left to write; a group that waits to be queued is tried again at every change."""
        self._state.touched.discard(key)
        self._since.pop(key, None)
        self._at.pop(key, None)
        (self._undecided.add if undecided else self._undecided.discard)(key)

    def _known(self, key: GroupKey, group: Group) -> Object:
        shown: Object = (group.source or {}).get("status") or {}
        written = self._written.get(key)
        if written is not None and written == shown:
            del self._written[key]
        return self._written.get(key, shown)

    def _status(self, group: Group, gang: Gang) -> Object:
        old: Object = (group.source or {}).get("status") or {}
        undecided = not group.phases and old.get("phase") in (None, "", "Pending")
        return status_of(
            gang,
            group.counts,
            old=old,
            waiting=len(group.waiting),
            why=group.why if group.waiting else "",
            code=group.code,
            shortage=self._shortage(gang) if undecided else {},
            now=self._clock.now(),
        )

    def _shortage(self, gang: Gang) -> Obstacles:
        """What keeps a group from being queued: nobody should make pods that could only wait."""
        state = self._state
        return obstacles(gang, state.queues(), free=state.free_for(gang.priority or 0), have=state.capacity())

    async def _write(self, limit: asyncio.Semaphore, key: GroupKey, status: Object) -> None:
        resource = COSCHEDULING_PODGROUPS if key.api == COSCHEDULING else PODGROUPS
        self._written[key] = status
        group = self._state.groups.get(key)
        old: Object = ((group.source if group else None) or {}).get("status") or {}
        gone = {name: None for name in old if name not in status}
        async with limit:
            try:
                await self._client.raw(  # nobody reads the answer: the group comes by the watch
                    "PATCH",
                    resource.path(key.namespace, key.name, "status"),
                    query={"fieldValidation": "Ignore"},
                    body={"status": {**gone, **status}},
                    content_type=PATCH_TYPES["merge"],
                )
            except errors.NotFound:
                self._written.pop(key, None)  # deleted in the meantime
            except errors.ApiError as error:
                log.warning("the status of PodGroup %s could not be written: %s", key.name, error)
                self._written.pop(key, None)
                self._state.touched.add(key)

    async def _report_queues(self) -> None:
        if not self._state.queues():
            return
        phases: dict[str, list[str]] = {}
        for group in self._state.groups.values():
            if group.gang is not None and group.source is not None:
                phase = str((group.source.get("status") or {}).get("phase") or "Pending")
                phases.setdefault(group.gang.queue, []).append(phase)
        for name in self._state.queues():
            obj = self._watches.queues.cache.get(Key("", name))
            if obj is None:
                continue
            old: Object = obj.get("status") or {}
            status = queue_status(phases.get(name, ()), self._state.allocated(name), old=old)
            if status == old:
                continue
            change = {"status": {**status, "allocated": _replacing(old.get("allocated"), status["allocated"])}}
            try:
                await self._client.patch(QUEUES, name, change, subresource="status")
            except errors.ApiError as error:
                log.debug("the status of queue %s was not written: %s", name, error)


def _patience(status: Object, old: Object, *, started: bool) -> float:
    """Seconds a change may wait. `started` says that the group has pods, so that nobody waits to make them."""
    phase = status["phase"]
    if _only_words(status, old):
        return REFRESH
    if phase == old.get("phase") or phase == "Running" or (phase == "Inqueue" and started):
        return SETTLE
    return SOON if phase == "Inqueue" else 0.0


def _only_words(status: Object, old: Object) -> bool:
    """Whether all that changed is how a condition that was there already is worded."""

    def rest(body: Object) -> Object:
        kinds = [(c.get("type"), c.get("status"), c.get("reason")) for c in body.get("conditions") or ()]
        return {**body, "conditions": kinds}

    return rest(status) == rest(old)


def _replacing(old: Object | None, new: Object) -> Object:
    """A merge patch that leaves nothing of `old` behind."""
    return {**dict.fromkeys(old or {}), **new}
