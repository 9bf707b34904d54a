"""The scheduler on a load, in a time of its own: the same state, the same decisions, no cluster and no waiting.

Time jumps from event to event (a job arrives, a job ends) and a round is decided at each. Whoever is made to leave goes
back into the queue and starts over, as a job without checkpoints does.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from paddlecloud.kube.quantity import Amount
from paddlecloud.kube.resource import PODGROUPS, Object

from .attempt import Why
from .decide import decide
from .scores import DEFAULT, Policy
from .shape import Resources
from .snapshot import Pod
from .state import State
from .traces import Job

NAMESPACE = "simulation"
ROUNDS_AT_ONCE = 50
"""Rounds at one moment before time goes on: a bound for policies that would take turns for ever."""


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
    evictions: int = 0
    waited: float = 0.0
    """Until it first started."""


@dataclass(frozen=True, slots=True)
class Waits:
    """How long the jobs of one queue waited for their first start."""

    jobs: int
    mean: float
    median: float
    p95: float
    longest: float

    @staticmethod
    def of(waits: Sequence[float]) -> Waits:
        if not waits:
            return Waits(0, 0.0, 0.0, 0.0, 0.0)
        ordered = sorted(waits)
        last = len(ordered) - 1
        return Waits(
            len(ordered),
            sum(ordered) / len(ordered),
            ordered[len(ordered) // 2],
            ordered[min(last, int(len(ordered) * 0.95))],
            ordered[-1],
        )


@dataclass(slots=True)
class Report:
    makespan: float = 0.0
    finished: int = 0
    evictions: int = 0
    rounds: int = 0
    by_queue: dict[str, Waits] = field(default_factory=dict)
    by_class: dict[str, Waits] = field(default_factory=dict)
    utilisation: dict[str, float] = field(default_factory=dict)
    """The part of each resource that was used, over the whole time."""
    unfinished: list[tuple[str, str]] = field(default_factory=list)
    """(job, why it never started or ended)."""


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
        self._events: list[tuple[float, int, str, str, int]] = []  # (when, order, kind, job, attempt)
        self._order = itertools.count()
        self._runs: dict[str, _Run] = {}
        self._run_of: dict[str, str] = {}  # pod uid → job
        self._why: dict[str, Why] = {}
        self._used: dict[str, Amount] = {}
        self._area: dict[str, float] = {}
        self._report = Report()
        for queue in queues:
            self._state.on_queue(None, queue)
        for node in nodes:
            self._state.on_node(None, node)
        for pod in running:
            self._state.on_pod(None, pod)
        for job in jobs:
            self._runs[job.name] = _Run(job, *_objects(job))
            self._push(job.arrival, "arrive", job.name, 0)

    def run(self, *, until: float = float("inf")) -> Report:
        now = 0.0
        while self._events and self._events[0][0] <= until:
            at = self._events[0][0]
            self._account(at - now)
            now = at
            while self._events and self._events[0][0] <= now + self._tick:
                _, _, kind, name, attempt = heapq.heappop(self._events)
                self._arrive(name) if kind == "arrive" else self._end(name, attempt, now)
            self._decide(now)
        return self._finish(now)

    def _push(self, when: float, kind: str, name: str, attempt: int) -> None:
        heapq.heappush(self._events, (when, next(self._order), kind, name, attempt))

    # Events

    def _arrive(self, name: str) -> None:
        run = self._runs[name]
        if run.group is not None:
            self._state.on_group(None, run.group)
        for pod in run.pods:
            self._run_of[pod["metadata"]["uid"]] = name
            self._state.on_pod(None, pod)

    def _end(self, name: str, attempt: int, now: float) -> None:
        run = self._runs[name]
        if run.attempt != attempt or run.started is None:
            return  # it was made to leave in between
        run.ended = now
        self._report.finished += 1
        for pod in run.pods:
            self._leave(pod)
        run.placed.clear()
        if run.group is not None:
            self._state.on_group(run.group, None)

    def _leave(self, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        if uid in self._runs[self._run_of[uid]].placed:
            self._use(uid, -1)
        self._state.on_pod(pod, None)

    def _use(self, uid: str, sign: int) -> None:
        run = self._runs[self._run_of[uid]]
        for name, text in run.job.requests.items():
            self._used[name] = self._used.get(name, 0) + sign * _amount(text)

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
                    self._why[self._run_of.get(unit.pods[0].uid, "")] = refused.why
            for pod, node in result.placements:
                self._place(pod, node, now)
            gone = {self._run_of[e.pod.uid] for e in result.evictions if e.pod.uid in self._run_of}
            for name in gone:
                self._evict(name)
            if not gone:
                return

    def _place(self, pod: Pod, node: str, now: float) -> None:
        self._state.assume(pod, node)
        run = self._runs[self._run_of[pod.uid]]
        run.placed.add(pod.uid)
        self._use(pod.uid, 1)
        if run.started is None and len(run.placed) >= run.job.least:
            run.started = now
            if not run.attempt:
                run.waited = now - run.job.arrival
            self._push(now + run.job.runtime, "end", run.job.name, run.attempt)

    def _evict(self, name: str) -> None:
        """All pods of the job leave and wait again."""
        run = self._runs[name]
        self._report.evictions += 1
        for pod in run.pods:
            self._leave(pod)
        run.placed.clear()
        run.started = None
        run.attempt += 1
        for pod in run.pods:
            self._state.on_pod(None, pod)

    # Figures

    def _account(self, seconds: float) -> None:
        for name, amount in self._used.items():
            self._area[name] = self._area.get(name, 0.0) + amount * seconds

    def _finish(self, now: float) -> Report:
        report = self._report
        report.makespan = now
        queues: dict[str, list[float]] = {}
        classes: dict[str, list[float]] = {}
        for name, run in self._runs.items():
            if run.started is None and run.ended is None:
                why = self._why.get(name)
                report.unfinished.append((name, why.message if why else "it had not arrived"))
                continue
            queues.setdefault(run.job.queue or "default", []).append(run.waited)
            if run.job.kind:
                classes.setdefault(run.job.kind, []).append(run.waited)
            if run.ended is None:
                report.unfinished.append((name, "it was still running"))
        report.by_queue = {name: Waits.of(waits) for name, waits in sorted(queues.items())}
        report.by_class = {name: Waits.of(waits) for name, waits in sorted(classes.items())}
        capacity: Resources = self._state.capacity()
        for name, area in sorted(self._area.items()):
            if now and capacity.get(name):
                report.utilisation[name] = area / (capacity[name] * now)
        return report


def _amount(text: str) -> Amount:
    from paddlecloud.kube.quantity import parse

    return parse(text)


def _objects(job: Job) -> tuple[Object | None, list[Object]]:
    created = f"{job.arrival:020.6f}"
    annotations = {"scheduling.volcano.sh/queue-name": job.queue} if job.queue else {}
    group: Object | None = None
    if job.pods > 1:
        annotations["scheduling.k8s.io/group-name"] = job.name
        group = {
            "apiVersion": PODGROUPS.api_version,
            "kind": PODGROUPS.kind,
            "metadata": {"name": job.name, "namespace": NAMESPACE, "creationTimestamp": created},
            "spec": {"minMember": job.least, **({"queue": job.queue} if job.queue else {})},
        }
    pods = []
    for number in range(job.pods):
        name = f"{job.name}-{number}"
        pods.append(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": name,
                    "namespace": NAMESPACE,
                    "uid": name,
                    "annotations": annotations,
                    "creationTimestamp": created,
                },
                "spec": {
                    "priority": job.priority,
                    "containers": [{"name": "main", "resources": {"requests": dict(job.requests)}}],
                },
                "status": {"phase": "Pending"},
            }
        )
    return group, pods
