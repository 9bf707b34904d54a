"""The autoscaler: gathers what gateways report, asks `kpa` every two seconds, and resizes Deployments.

A revision that has requests and no pods does not wait for the next round. What is remembered here may be lost: the
windows fill again within seconds, and until they have, no pod is taken away.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import Clock
from paddlecloud.kube.errors import ApiError, NotFound
from paddlecloud.kube.resource import DEPLOYMENTS, Object
from paddlecloud.local.knative import kpa
from paddlecloud.local.knative.names import deployment_of, key
from paddlecloud.local.knative.revision import is_reached, scaling_of
from paddlecloud.local.knative.settings import Defaults, Scaling
from paddlecloud.local.knative.supervisor import Report
from paddlecloud.local.knative.windows import Window

log = logging.getLogger(__name__)

TICK = 2.0
RECENT = 5.0
"""Seconds after a report during which requests in progress are taken to be there still."""


@dataclass(slots=True)
class Memory:
    """What is known of one revision's load."""

    window: Window
    state: kpa.AutoscalerState = field(default_factory=kpa.AutoscalerState)
    busy_until: float = 0.0
    active_since: float | None = None


@dataclass(frozen=True, slots=True)
class Scene:
    """A revision as the caches show it."""

    revision: Object
    deployment: Object
    ready: int
    reachable: bool


class Autoscaler:
    """`scenes` gives every revision that has a Deployment, or only the one of a key."""

    def __init__(
        self,
        client: Client,
        *,
        clock: Clock,
        scenes: Callable[[str | None], Iterable[Scene]],
        defaults: Callable[[], Defaults],
    ) -> None:
        self._client = client
        self._clock = clock
        self._scenes = scenes
        self._defaults = defaults
        self._memories: dict[str, Memory] = {}
        self._woken: asyncio.Queue[str] = asyncio.Queue()

    def receive(self, report: Report) -> None:
        """What one gateway process carried in about a second."""
        now = self._clock.monotonic()
        for revision, numbers in report.items():
            memory = self._memories.get(revision)
            scene = next(iter(self._scenes(revision)), None)
            if scene is None:
                continue
            scaling = scaling_of(scene.revision, self._defaults())
            if memory is None:
                memory = self._memories[revision] = Memory(Window(scaling.window))
            rate = sum(numbers["codes"].values()) / numbers["span"]
            memory.window.add(now, rate if scaling.metric == "rps" else numbers["concurrency"])
            if numbers["inside"]:
                memory.busy_until = now + RECENT

    def wake(self, revision: str) -> None:
        """Requests wait for a revision's first pod."""
        memory = self._memories.get(revision)
        if memory is not None:
            memory.busy_until = self._clock.monotonic() + RECENT
        self._woken.put_nowait(revision)

    async def run(self) -> None:
        rounds = asyncio.ensure_future(self._rounds())
        try:
            while True:
                revision = await self._woken.get()
                for scene in self._scenes(revision):
                    self._remembered(scene).busy_until = self._clock.monotonic() + RECENT
                    await self._scale(scene)
        finally:
            rounds.cancel()

    async def _rounds(self) -> None:
        while True:
            await self._clock.sleep(TICK)
            present = set()
            for scene in list(self._scenes(None)):
                present.add(key(scene.revision))
                await self._scale(scene)
            for gone in self._memories.keys() - present:
                del self._memories[gone]

    def _remembered(self, scene: Scene) -> Memory:
        name = key(scene.revision)
        memory = self._memories.get(name)
        if memory is None:
            window = Window(scaling_of(scene.revision, self._defaults()).window)
            memory = self._memories[name] = Memory(window)
        return memory

    async def _scale(self, scene: Scene) -> None:
        """One revision that cannot be judged is no reason to leave the others as they are."""
        try:
            await self._follow(scene)
        except Exception:
            log.exception("%s was not scaled", key(scene.revision))

    async def _follow(self, scene: Scene) -> None:
        now = self._clock.monotonic()
        memory = self._remembered(scene)
        if scene.ready and memory.active_since is None:
            memory.active_since = now
            memory.window.add(now, 0.0)
        elif not scene.ready:
            memory.active_since = None
        scaling = scaling_of(scene.revision, self._defaults())
        decision, memory.state = kpa.decide(scaling, self._observe(scene, scaling, memory, now), memory.state)
        current = int((scene.deployment.get("spec") or {}).get("replicas") or 0)
        if decision.pods == current:
            return
        name = key(scene.revision)
        log.info("%s: %d to %d pods (%s)", name, current, decision.pods, decision.why)
        meta = scene.revision["metadata"]
        try:
            await self._client.patch(
                DEPLOYMENTS,
                deployment_of(meta["name"]),
                {"spec": {"replicas": decision.pods}},
                namespace=meta["namespace"],
            )
        except NotFound:
            return  # deleted meanwhile
        except ApiError as error:
            log.warning("%s was not scaled to %d pods: %s", name, decision.pods, error)

    def _observe(self, scene: Scene, scaling: Scaling, memory: Memory, now: float) -> kpa.Observed:
        return kpa.Observed(
            now=now,
            ready=scene.ready,
            stable=memory.window.average(now, scaling.window),
            panic=memory.window.average(now, scaling.panic_window),
            reachable=scene.reachable,
            waiting=scene.ready == 0 and memory.busy_until > now,
            started=is_reached(scene.revision),
            active_for=now - memory.active_since if memory.active_since is not None else 0.0,
        )
