"""The scheduler on a load, in simulated time: the same state, the same decisions, no cluster and no waiting.

Time jumps from event to event (a job arrives, a job ends) and a round is decided at each. A pod that is evicted goes
back into the queue and starts over, as a job without checkpoints does.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from paddlecloud.kube.resource import Object
from paddlecloud.local.scheduler.decision.attempt import Why
from paddlecloud.local.scheduler.decision.decide import decide
from paddlecloud.local.scheduler.decision.scores import DEFAULT, Policy
from paddlecloud.local.scheduler.simulation.job_objects import objects_of
from paddlecloud.local.scheduler.simulation.report import Report, Usage, Waits
from paddlecloud.local.scheduler.simulation.traces import Job
from paddlecloud.local.scheduler.state.snapshot import Pod
from paddlecloud.local.scheduler.state.state import State

ROUNDS_AT_ONCE = 50
"""Rounds at one moment before time goes on: a bound for policies that would take turns for ever."""

Happening = Callable[[float], None]
"""What an event does; called with the time at which it is observed."""


@dataclass(slots=True)
class _Run:
    """A job under way."""

    job: Job
    group: Object | None
    pods: list[Object]
    placed: set[str] = field(default_factory=set)
    started: float | None = None
    ended: float | None = None
    attempt: int = 0
    waited: float = 0.0
    """Until it first started."""
    why: Why | None = None
    """The last refusal."""


class Simulation:
    def __init__(
        self,
        nodes: Iterable[Object],
        jobs: Iterable[Job],
        *,
        queues: Iterable[Object] = (),
        running: Iterable[Object] = (),
        policy: Policy = DEFAULT,
        tick: float = 0.0,
    ) -> None:
        """`running` are pods that stay for ever. Events less than `tick` seconds apart are taken together."""
        self._policy = policy
        self._tick = tick
        self._state = State()
        self._events: list[tuple[float, int, Happening]] = []
        self._order = itertools.count()
        self._runs: list[_Run] = []
        self._run_of: dict[str, _Run] = {}  # by pod uid, from its arrival on
        self._usage = Usage()
        self._report = Report()
        for queue in queues:
            self._state.on_queue(None, queue)
        for node in nodes:
            self._state.on_node(None, node)
        for pod in running:
            self._state.on_pod(None, pod)
        for job in jobs:
            run = _Run(job, *objects_of(job))
            self._runs.append(run)
            self._at(job.arrival, self._arrival_of(run))

    def run(self, *, until: float = float("inf")) -> Report:
        now = 0.0
        while self._events and self._events[0][0] <= until:
            at = self._events[0][0]
            self._usage.pass_time(at - now)
            now = at
            while self._events and self._events[0][0] <= now + self._tick:
                _, _, happen = heapq.heappop(self._events)
                happen(now)
            self._decide(now)
        return self._finish(now)

    # Events

    def _at(self, when: float, happening: Happening) -> None:
        heapq.heappush(self._events, (when, next(self._order), happening))

    def _arrival_of(self, run: _Run) -> Happening:
        def arrive(_: float) -> None:
            if run.group is not None:
                self._state.on_group(None, run.group)
            for pod in run.pods:
                self._run_of[pod["metadata"]["uid"]] = run
                self._state.on_pod(None, pod)

        return arrive

    def _end_of(self, run: _Run) -> Happening:
        attempt = run.attempt

        def end(now: float) -> None:
            if run.attempt != attempt:
                return  # it was made to leave in between
            run.ended = now
            self._report.finished += 1
            self._leave(run)
            if run.group is not None:
                self._state.on_group(run.group, None)

        return end

    def _leave(self, run: _Run) -> None:
        for pod in run.pods:
            if pod["metadata"]["uid"] in run.placed:
                self._usage.give_back(run.job.requests)
            self._state.on_pod(pod, None)
        run.placed.clear()

    # Rounds

    def _decide(self, now: float) -> None:
        for _ in range(ROUNDS_AT_ONCE):
            lanes = self._state.due()
            if not lanes:
                return
            self._report.rounds += 1
            policy = replace(self._policy, start=self._report.rounds * self._policy.sample)
            result = decide(self._state.snapshot(), lanes, policy=policy)
            for refused in result.refused:
                self._state.refused(refused.lane)
                for unit in refused.units:
                    if run := self._run_of.get(unit.pods[0].uid):
                        run.why = refused.why
            for pod, node in result.placements:
                self._place(pod, node, now)
            leaving = {run.job.name: run for e in result.evictions if (run := self._run_of.get(e.pod.uid))}
            for run in leaving.values():
                self._evict(run)
            if not leaving:
                return

    def _place(self, pod: Pod, node: str, now: float) -> None:
        self._state.assume(pod, node)
        run = self._run_of[pod.uid]
        run.placed.add(pod.uid)
        self._usage.take(run.job.requests)
        if run.started is None and len(run.placed) >= run.job.least:
            run.started = now
            if not run.attempt:
                run.waited = now - run.job.arrival
            self._at(now + run.job.runtime, self._end_of(run))

    def _evict(self, run: _Run) -> None:
        """All pods of the job leave and wait again."""
        self._report.evictions += 1
        self._leave(run)
        run.started = None
        run.attempt += 1
        for pod in run.pods:
            self._state.on_pod(None, pod)

    # Figures

    def _finish(self, now: float) -> Report:
        report = self._report
        queues: dict[str, list[float]] = {}
        classes: dict[str, list[float]] = {}
        for run in self._runs:
            job = run.job
            if run.started is None:
                report.unfinished.append((job.name, run.why.message if run.why else "it had not arrived"))
                continue
            queues.setdefault(job.queue or "default", []).append(run.waited)
            if job.kind:
                classes.setdefault(job.kind, []).append(run.waited)
            if run.ended is None:
                report.unfinished.append((job.name, "it was still running"))
        report.makespan = now
        report.by_queue = Waits.by(queues)
        report.by_class = Waits.by(classes)
        report.utilisation = self._usage.utilisation(self._state.capacity(), now)
        return report
