"""Startup, readiness and liveness probes of the containers of one pod.

`ProbeState` is the counting rule, pure; `Prober` asks on schedule and pokes the worker when a state changes. Until a
startup or readiness probe has succeeded once, it is also asked between its scheduled times, at growing distances and
without counting failures: a server is ready when it answers, not up to ten seconds later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from paddlecloud.kube.clock import Clock
from paddlecloud.kube.resource import Object
from paddlecloud.local.kubelet.pod.handlers import HandlerTarget, Result, ask
from paddlecloud.local.kubelet.pod.pod_state import RUNNING, ContainerRun, all_containers, reported

EAGER_FIRST, EAGER_FACTOR = 0.05, 1.6


@dataclass(slots=True)
class ProbeState:
    """Turns single results into a state that changes only after enough of the same in a row."""

    failure_threshold: int
    success_threshold: int
    value: bool | None = None
    """None: nothing decided yet."""
    _same: int = 0
    _last: bool | None = None

    def record(self, ok: bool) -> bool:
        """Count a result; True when the state changed."""
        self._same = self._same + 1 if ok == self._last else 1
        self._last = ok
        if self._same < (self.success_threshold if ok else self.failure_threshold) or self.value == ok:
            return False
        self.value = ok
        return True


@dataclass(slots=True)
class _Watched:
    """The probes of one run of one container."""

    attempt: int
    tasks: list[asyncio.Task[None]] = field(default_factory=list)
    started: bool = True
    ready: bool = True
    unhealthy: str = ""
    grace: float | None = None


class Prober:
    """`sync` follows the runs of the containers; the three mappings are what `Observed` takes."""

    def __init__(self, clock: Clock, *, target: Callable[[Object], HandlerTarget], changed: Callable[[], None]) -> None:
        self._clock = clock
        self._target = target
        self._changed = changed
        self._watched: dict[str, _Watched] = {}
        self.last_failure: dict[str, str] = {}

    def sync(self, pod: Object, runs: Mapping[str, ContainerRun]) -> None:
        for container in all_containers(pod):
            name = container["name"]
            run = runs.get(name)
            known = self._watched.get(name)
            alive = run is not None and run.phase == RUNNING
            if known is not None and (run is None or not alive or known.attempt != run.attempt):
                self._end(name)
                known = None
            if known is None and run is not None and alive and _has_probe(container):
                self._begin(pod, container, run)

    def _begin(self, pod: Object, container: Object, run: ContainerRun) -> None:
        """A kubelet that comes back starts from what was published: a pod that serves must not blink."""
        known = reported(pod, container["name"])
        same = known.get("restartCount") == run.attempt and "running" in (known.get("state") or {})
        watched = _Watched(
            run.attempt,
            started=not container.get("startupProbe") or (same and bool(known.get("started"))),
            ready=not container.get("readinessProbe") or (same and bool(known.get("ready"))),
        )
        self._watched[container["name"]] = watched
        name = container["name"]
        watched.tasks.append(asyncio.create_task(self._watch(container, watched, run), name=f"probes of {name}"))

    async def _watch(self, container: Object, watched: _Watched, run: ContainerRun) -> None:
        began = run.started or self._clock.now()
        if (probe := container.get("startupProbe")) and not watched.started:
            await self._until_started(container, probe, watched, began)
        loops = []
        if probe := container.get("readinessProbe"):
            loops.append(
                self._follow(container, probe, began, eager=True, apply=lambda ok, _: self._set_ready(watched, ok))
            )
        if probe := container.get("livenessProbe"):
            loops.append(
                self._follow(
                    container,
                    probe,
                    began,
                    eager=False,
                    apply=lambda ok, why: None if ok else self._set_unhealthy(container, watched, "liveness", why),
                )
            )
        await asyncio.gather(*loops)

    async def _until_started(self, container: Object, probe: Object, watched: _Watched, began: float) -> None:
        started = asyncio.Event()

        def apply(ok: bool, why: str) -> None:
            if ok:
                watched.started = True
                self._changed()
            else:
                self._set_unhealthy(container, watched, "startup", why)
            started.set()

        follow = asyncio.ensure_future(self._follow(container, probe, began, eager=True, apply=apply))
        try:
            await started.wait()
        finally:
            follow.cancel()
        if not watched.started:
            await asyncio.Event().wait()  # it is being stopped; the worker ends this task with the run

    async def _follow(
        self, container: Object, probe: Object, began: float, *, eager: bool, apply: Callable[[bool, str], None]
    ) -> None:
        period = float(probe.get("periodSeconds") or 10)
        timeout = float(probe.get("timeoutSeconds") or 1)
        state = ProbeState(int(probe.get("failureThreshold") or 3), int(probe.get("successThreshold") or 1))
        due = max(self._clock.now(), began + float(probe.get("initialDelaySeconds") or 0))
        pause = EAGER_FIRST
        while True:
            await self._clock.sleep(max(0.0, due - self._clock.now()))
            result = await ask(probe, self._target(container), timeout=timeout)
            self._note(container, result)
            if state.record(result.ok):
                apply(result.ok, result.message)
            due += period
            while eager and state.value is None and self._clock.now() + pause < due:
                await self._clock.sleep(pause)
                pause = min(pause * EAGER_FACTOR, max(EAGER_FIRST, period / 10))
                result = await ask(probe, self._target(container), timeout=timeout)
                if result.ok and state.record(True):
                    apply(True, "")

    def _note(self, container: Object, result: Result) -> None:
        if not result.ok:
            self.last_failure[container["name"]] = result.message

    def _set_ready(self, watched: _Watched, ok: bool) -> None:
        watched.ready = ok
        self._changed()

    def _set_unhealthy(self, container: Object, watched: _Watched, probe: str, why: str) -> None:
        watched.unhealthy = f"Container {container['name']} failed {probe} probe, will be restarted: {why}"
        watched.grace = container[f"{probe}Probe"].get("terminationGracePeriodSeconds")
        self._changed()

    @property
    def started(self) -> dict[str, bool]:
        return {name: watched.started for name, watched in self._watched.items()}

    @property
    def ready(self) -> dict[str, bool]:
        return {name: watched.ready for name, watched in self._watched.items()}

    @property
    def unhealthy(self) -> dict[str, str]:
        return {name: watched.unhealthy for name, watched in self._watched.items() if watched.unhealthy}

    @property
    def grace(self) -> dict[str, float]:
        """Of containers whose failed probe says how long their end may take."""
        return {name: float(watched.grace) for name, watched in self._watched.items() if watched.grace is not None}

    def _end(self, name: str) -> None:
        for task in self._watched.pop(name).tasks:
            task.cancel()

    def close(self) -> None:
        for name in list(self._watched):
            self._end(name)


def _has_probe(container: Object) -> bool:
    return any(container.get(kind) for kind in ("startupProbe", "readinessProbe", "livenessProbe"))
