"""Checks that no event starts: leftovers of deleted pods, tokens that expire, full disks, too many processes."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Collection

from paddlecloud.local.kubelet.node import disk
from paddlecloud.local.kubelet.node.process_counts import ProcessCounts, machine_tasks, pod_tasks
from paddlecloud.local.kubelet.pod.services import NodeServices
from paddlecloud.local.kubelet.pod.worker import PodWorker

PERIOD = 10.0
LONG_ROUNDS = 6
PROCESS_COUNT_PERIOD = 1.0


class PeriodicChecks:
    """`workers` are the pods of the moment; `tidy` clears away what none of them owns any more."""

    def __init__(
        self,
        machine: NodeServices,
        *,
        workers: Callable[[], Collection[PodWorker]],
        tidy: Callable[[], Awaitable[None]],
    ) -> None:
        self._machine = machine
        self._workers = workers
        self._tidy = tidy
        self._process_counts = ProcessCounts(machine.pids_limit)

    async def run(self) -> None:
        await asyncio.gather(self._look_after(), self._watch_process_counts())

    async def _look_after(self) -> None:
        for round_ in itertools.count():
            if round_ % LONG_ROUNDS == 0:
                await self._tidy()
                for worker in self._workers():
                    worker.objects_changed()
            for worker in [worker for worker in self._workers() if disk.has_limits(worker.pod)]:
                if excess := await asyncio.to_thread(disk.over_limit, worker.pod, worker.paths):
                    worker.evict(excess)
            await self._machine.clock.sleep(PERIOD)

    async def _watch_process_counts(self) -> None:
        while True:
            await self._machine.clock.sleep(PROCESS_COUNT_PERIOD)
            if self._process_counts.alarming(machine_tasks()):
                await self._count_pods()

    async def _count_pods(self) -> None:
        calm = True
        for worker in list(self._workers()):
            if worker.shim and (
                excess := self._process_counts.verdict(await asyncio.to_thread(pod_tasks, worker.shim))
            ):
                worker.evict(excess)
                calm = False
        if calm:
            self._process_counts.calmed(machine_tasks())
