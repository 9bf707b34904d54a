"""The scheduler's edge: caches in, bindings and explanations out. What goes where is decided in `decide`."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import replace

from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import Clock, SystemClock
from paddlecloud.kube.informer import Handler
from paddlecloud.kube.resource import Object
from paddlecloud.local.scheduler.controller.group_status_writer import GroupStatusWriter
from paddlecloud.local.scheduler.controller.pod_events import PodEvents
from paddlecloud.local.scheduler.controller.watches import Watches
from paddlecloud.local.scheduler.controller.writer import Writer
from paddlecloud.local.scheduler.decision.decide import Round, decide
from paddlecloud.local.scheduler.decision.scores import DEFAULT, Policy
from paddlecloud.local.scheduler.state.state import State
from paddlecloud.local.scheduler.state.units import Unit

log = logging.getLogger(__name__)

LONGEST_PAUSE = 0.1
"""Seconds. After a round the scheduler rests as long as the round took, up to this: others need the processor too."""

REPORTED_AT_ONCE = 200
"""Units of all lanes whose reason for waiting is written in one round: more could not be written before the next."""


class Scheduler:
    """`run` works until cancelled."""

    def __init__(
        self, client: Client, watches: Watches, *, clock: Clock | None = None, policy: Policy = DEFAULT
    ) -> None:
        clock = clock or SystemClock()
        self.watches = watches
        self.state = State()
        self._policy = policy
        self._rounds = 0
        self._writer = Writer(client, clock)
        self._pod_events = PodEvents(client, clock, still_waits=self.state.waiting.__contains__)
        self._group_status = GroupStatusWriter(client, clock, self.state, self.watches)
        self._wake = asyncio.Event()
        for informer, handler in (
            (self.watches.priority_classes, self.state.on_priority_class),
            (self.watches.groups, self.state.on_group),
            (self.watches.coscheduling_groups, self.state.on_group),
            (self.watches.queues, self.state.on_queue),
            (self.watches.budgets, self.state.on_budget),
            (self.watches.nodes, self.state.on_node),
            (self.watches.pods, self.state.on_pod),
        ):
            informer.on_change(self._waking(handler))

    def _waking(self, handler: Handler) -> Handler:
        def handle(old: Object | None, new: Object | None) -> None:
            handler(old, new)
            self._wake.set()

        return handle

    async def run(self) -> None:
        tasks = [asyncio.ensure_future(self._pod_events.run()), asyncio.ensure_future(self._group_status.run())]
        try:
            await self.watches.synced()
            while True:
                await self._wake.wait()
                await asyncio.sleep(0)  # let the rest of a burst arrive: a gang is best seen whole
                self._wake.clear()
                began = time.perf_counter()
                self.round()
                await asyncio.sleep(min(LONGEST_PAUSE, time.perf_counter() - began))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._writer.close()

    def round(self) -> None:
        lanes = self.state.due()
        if lanes:
            self._rounds += 1
            policy = replace(self._policy, start=self._rounds * self._policy.sample)
            self._carry_out(decide(self.state.snapshot(), lanes, policy=policy))
        self._group_status.poke()

    def _carry_out(self, result: Round) -> None:
        each = max(1, REPORTED_AT_ONCE // max(1, len(result.refused)))
        for refused in result.refused:
            self.state.refused(refused.lane)
            for unit in self._reported_now(refused.units, each):
                self._write_reason(unit, refused.why.code, refused.why.message)
                self._pod_events.refuse(unit, refused.why)
        for pod, node in result.placements:
            self.state.assume(pod, node)
            self._pod_events.forget(pod.uid)
            self._writer.bind(pod, node, failed=lambda uid=pod.uid: self._unbound(uid))  # type: ignore[misc]
        for eviction in result.evictions:
            uid = eviction.pod.uid
            self.state.evicted(uid)
            self._writer.evict(eviction, failed=lambda uid=uid: self._spared(uid))  # type: ignore[misc]
        for pod, node in result.nominations:
            if pod.nominated != node:
                self.state.nominate(pod.uid, node)
                self._writer.nominate(pod, node)

    def _reported_now(self, units: Sequence[Unit], most: int) -> Sequence[Unit]:
        """Those units of a long lane whose reason is written next."""
        if len(units) <= most:
            return units
        start = self._rounds * most % len(units)
        return units[start : start + most]

    def _write_reason(self, unit: Unit, code: str, message: str) -> None:
        if unit.gang is None:
            return
        group = self.state.groups.get(unit.gang.key)
        if group is not None and (group.why, group.code) != (message, code):
            group.why, group.code = message, code
            self.state.touched.add(unit.gang.key)

    def _unbound(self, uid: str) -> None:
        self.state.give_up(uid)
        self._wake.set()

    def _spared(self, uid: str) -> None:
        self.state.spared(uid)
        self._wake.set()
