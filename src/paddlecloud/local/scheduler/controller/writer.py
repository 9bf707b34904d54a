"""Carries a round out: bindings, evictions, nominations. A pod whose write fails is requeued."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from paddlecloud.kube import errors
from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import Clock, rfc3339
from paddlecloud.kube.events import EventRecorder
from paddlecloud.kube.rate_limit import RateLimit
from paddlecloud.kube.resource import PODS, Object
from paddlecloud.local.scheduler.decision.preempt import Eviction
from paddlecloud.local.scheduler.state.snapshot import Pod

log = logging.getLogger(__name__)

CONCURRENCY = 64
STEPS_AT_ONCE, STEPS_A_SECOND = 100.0, 20.0
"""How many bindings get an Event: a thousand pods that are placed at once are not held up by a thousand more writes."""
UNCHECKED = {"fieldValidation": "Ignore"}
"""What we write has no unknown fields: the server need not look for any."""


class Writer:
    """Writes go out beside the rounds, at most `CONCURRENCY` at a time."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._recorder = EventRecorder(client, component="default-scheduler", clock=clock)
        self._rate_limit = RateLimit(clock, burst=STEPS_AT_ONCE, rate=STEPS_A_SECOND)
        self._limit = asyncio.Semaphore(CONCURRENCY)
        self._tasks: set[asyncio.Task[None]] = set()

    def bind(self, pod: Pod, node: str, *, failed: Callable[[], None]) -> None:
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod.key.name, "uid": pod.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }

        path = PODS.path(pod.key.namespace, pod.key.name, "binding")

        async def write() -> None:
            try:
                await self._client.raw("POST", path, query=UNCHECKED, body=body)
                if self._rate_limit.take():
                    about = {"apiVersion": "v1", "kind": "Pod", **pod.source}
                    await self._recorder.step(about, "Scheduled", f"Successfully assigned {pod.key} to {node}")
            except (errors.NotFound, errors.Conflict):
                failed()  # deleted, or placed by somebody else, in the meantime
            except errors.ApiError as error:
                log.warning("pod %s could not be bound to %s: %s", pod.key, node, error)
                failed()

        self._spawn(write())

    def evict(self, eviction: Eviction, *, failed: Callable[[], None]) -> None:
        pod = eviction.pod

        async def write() -> None:
            verb = "Preempted" if eviction.reason == "Preempted" else "Reclaimed"
            text = f"{verb} by {eviction.preemptor} on node {eviction.node}"
            try:
                await self._client.patch(
                    PODS,
                    pod.key.name,
                    {"metadata": {"uid": pod.uid}, "status": {"conditions": [self._target(text)]}},
                    namespace=pod.key.namespace,
                    kind="strategic",
                    subresource="status",
                )
                await self._client.delete(PODS, pod.key.name, namespace=pod.key.namespace, uid=pod.uid)
            except (errors.NotFound, errors.Conflict):
                return  # gone already: what was wanted
            except errors.ApiError as error:
                log.warning("pod %s could not be evicted: %s", pod.key, error)
                failed()
                return
            await self._recorder.record(pod.source, verb, text)

        self._spawn(write())

    def nominate(self, pod: Pod, node: str) -> None:
        """Say on the pod where it will go once there is room. Nothing depends on it but what people see."""

        async def write() -> None:
            try:
                await self._client.patch(
                    PODS,
                    pod.key.name,
                    {"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": node}},
                    namespace=pod.key.namespace,
                    subresource="status",
                )
            except errors.ApiError as error:
                log.debug("pod %s was not nominated: %s", pod.key, error)

        self._spawn(write())

    def _target(self, text: str) -> Object:
        return {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": text,
            "lastTransitionTime": rfc3339(self._clock.now()),
        }

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        async def limited() -> None:
            async with self._limit:
                await work

        task = asyncio.ensure_future(limited())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
