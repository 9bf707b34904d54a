"""Lifecycle hooks: postStart before a container counts as started, preStop before it is asked to end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

from paddlecloud.kube.clock import Clock
from paddlecloud.kube.resource import Object
from paddlecloud.local.kubelet.pod.handlers import HandlerTarget, ask
from paddlecloud.local.kubelet.pod.lifecycle import Stop
from paddlecloud.local.kubelet.pod.pod_state import RUNNING, ContainerRun, all_containers

POST_START_LIMIT = 3600.0
MIN_GRACE = 2.0
"""Seconds a container has for its own end after a preStop hook that used up the grace period."""


class Hooks:
    """Follows the runs of one pod. A hook that ran leaves a mark beside the container's files, so that a kubelet that
    comes back does not run it again."""

    def __init__(
        self,
        clock: Clock,
        *,
        target: Callable[[Object], HandlerTarget],
        marks: Callable[[str], Path],
        changed: Callable[[], None],
    ) -> None:
        self._clock = clock
        self._target = target
        self._marks = marks
        self._changed = changed
        self._starting: dict[tuple[str, int], asyncio.Task[None]] = {}
        self._failed: dict[tuple[str, int], str] = {}
        self._stopping: dict[tuple[str, int], asyncio.Task[None]] = {}
        self._remaining: dict[tuple[str, int], float] = {}  # grace left after a preStop hook
        self._runs: Mapping[str, ContainerRun] = {}

    def sync(self, pod: Object, runs: Mapping[str, ContainerRun]) -> None:
        """Begin postStart hooks of containers that just started."""
        self._runs = runs
        for container in all_containers(pod):
            hook = (container.get("lifecycle") or {}).get("postStart")
            run = runs.get(container["name"])
            if not hook or run is None or run.phase != RUNNING:
                continue
            key = (container["name"], run.attempt)
            if key not in self._starting and key not in self._failed and not self._mark(key).exists():
                self._starting[key] = asyncio.create_task(self._post_start(container, hook, key))

    def _mark(self, key: tuple[str, int]) -> Path:
        return self._marks(key[0]) / f"post-start.{key[1]}"

    async def _post_start(self, container: Object, hook: Object, key: tuple[str, int]) -> None:
        try:
            result = await ask(hook, self._target(container), timeout=POST_START_LIMIT)
            if result.ok:
                self._mark(key).parent.mkdir(parents=True, exist_ok=True)
                self._mark(key).touch()
            else:
                self._failed[key] = f"PostStartHook failed: {result.message}"
        finally:
            self._starting.pop(key, None)
            self._changed()

    @property
    def pending(self) -> set[str]:
        """Containers that run but whose postStart hook has not ended."""
        return {name for name, attempt in self._starting if self._is_current(name, attempt)}

    @property
    def failed(self) -> dict[str, str]:
        return {name: message for (name, attempt), message in self._failed.items() if self._is_current(name, attempt)}

    def _is_current(self, name: str, attempt: int) -> bool:
        run = self._runs.get(name)
        return run is not None and run.attempt == attempt

    def grace_now(self, container: Object, stop: Stop) -> float | None:
        """How long the container may take to end, counted from now; None while its preStop hook still runs."""
        hook = (container.get("lifecycle") or {}).get("preStop")
        run = self._runs.get(stop.name)
        if not hook or not stop.hook or run is None or run.phase != RUNNING:
            return stop.grace
        key = (stop.name, run.attempt)
        if key in self._remaining:
            return min(stop.grace, self._remaining[key])
        if key not in self._stopping:
            self._stopping[key] = asyncio.create_task(self._pre_stop(container, hook, stop.grace, key))
        return None

    async def _pre_stop(self, container: Object, hook: Object, grace: float, key: tuple[str, int]) -> None:
        began = self._clock.monotonic()
        try:
            await ask(hook, self._target(container), timeout=grace)
        finally:
            self._remaining[key] = max(MIN_GRACE, grace - (self._clock.monotonic() - began))
            self._changed()

    def close(self) -> None:
        for task in (*self._starting.values(), *self._stopping.values()):
            task.cancel()
