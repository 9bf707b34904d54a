"""Reports on pods why they wait: the PodScheduled condition, and an Event whose annotation has the same for programs.

Numbers change with every round, and ten thousand pods may wait: what is worth a write is limited. A pod's first notice
and a new kind of reason go out as soon as the rate limit permits; new numbers at most every `REFRESH` seconds. `pdc
explain` decides on the present state and does not depend on any of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from paddlecloud.kube import errors
from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import Clock, rfc3339
from paddlecloud.kube.rate_limit import RateLimit
from paddlecloud.kube.resource import EVENTS, PODS, Key, Object
from paddlecloud.local.scheduler.decision.attempt import Why
from paddlecloud.local.scheduler.state.snapshot import Pod
from paddlecloud.local.scheduler.state.units import Unit

log = logging.getLogger(__name__)

REFRESH = 10.0
BURST, RATE = 100.0, 20.0  # notices at once, then per second
PATIENCE = 1.0
"""Seconds without a change after which an incomplete gang gets an event: until then its pods are on their way."""
VERDICT = "paddlecloud.org/verdict"
MESSAGE_LIMIT = 1024


class _Written(NamedTuple):
    code: str
    message: str
    at: float


class _Pending(NamedTuple):
    """Why a unit waits; its pods are gone through only when that is written."""

    unit: Unit
    why: Why
    changed: float


class PodEvents:
    """`still_waits` says whether a pod (by uid) needs a notice at all when its turn comes."""

    def __init__(self, client: Client, clock: Clock, *, still_waits: Callable[[str], bool]) -> None:
        self._client = client
        self._clock = clock
        self._still_waits = still_waits
        self._written: dict[str, _Written] = {}
        self._pending: dict[Key, _Pending] = {}
        self._wake = asyncio.Event()
        self._rate_limit = RateLimit(clock, burst=BURST, rate=RATE)

    def refuse(self, unit: Unit, why: Why) -> None:
        before = self._pending.get(unit.key)
        now = self._clock.monotonic()
        changed = before.changed if before and before.why.message == why.message else now
        self._pending[unit.key] = _Pending(unit, why, changed)
        self._wake.set()

    def forget(self, uid: str) -> None:
        """The pod waits no longer."""
        self._written.pop(uid, None)

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._pending:
                wait = await self._send_ready()
                if wait is not None:
                    await self._clock.sleep(wait)

    async def _send_ready(self) -> float | None:
        """Send what may go out; seconds until more may, None when nothing is left."""
        soonest: float | None = None
        for key, item in list(self._pending.items()):
            later: float | None = None
            for pod in item.unit.pods:
                if self._pending.get(key) is not item:
                    break  # there is a newer reason
                if not self._still_waits(pod.uid):
                    continue
                wait = self._wait(pod, item)
                if wait == 0.0 and not self._rate_limit.take():
                    return 1.0 / RATE
                if wait == 0.0:
                    await self._send(pod, item.why)
                elif wait is not None:
                    later = wait if later is None else min(later, wait)
            if later is not None:
                soonest = later if soonest is None else min(soonest, later)
            elif self._pending.get(key) is item:
                del self._pending[key]
        return soonest if self._pending else None

    def _wait(self, pod: Pod, item: _Pending) -> float | None:
        """Seconds until the reason may be written to a pod; None when the pod has it already."""
        written, why, now = self._written.get(pod.uid), item.why, self._clock.monotonic()
        if written is not None and written.message == why.message:
            return None
        if written is None or written.code != why.code:
            ready = item.changed + (PATIENCE if why.code == "GangIncomplete" else 0.0)
        else:
            ready = written.at + REFRESH
        return max(0.0, ready - now)

    async def _send(self, pod: Pod, why: Why) -> None:
        now = self._clock.now()
        first = pod.uid not in self._written
        self._written[pod.uid] = _Written(why.code, why.message, self._clock.monotonic())
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": why.message,
            "lastTransitionTime": rfc3339(now),
        }
        try:
            await self._client.patch(
                PODS,
                pod.key.name,
                {"metadata": {"uid": pod.uid}, "status": {"conditions": [condition]}},
                namespace=pod.key.namespace,
                kind="strategic",
                subresource="status",
                field_validation="Ignore",
            )
            await self._event(pod, why, now, first=first)
        except (errors.NotFound, errors.Conflict):
            self.forget(pod.uid)
        except errors.ApiError as error:
            log.warning("cannot write to pod %s why it waits: %s", pod.key, error)
            self._written.pop(pod.uid, None)

    async def _event(self, pod: Pod, why: Why, now: float, *, first: bool) -> None:
        """One Event per pod, kept up to date; its annotation is the refusal for programs.

        The first is made, later ones are changed; where another life of the scheduler, or the expiry of Events, made
        that wrong, the other way is taken.
        """
        name = f"{pod.key.name[:200]}.{pod.uid[:13]}.unscheduled"
        verdict = msgspec.json.encode(machine_readable(why)).decode()
        changing = {
            "message": why.message[:MESSAGE_LIMIT],
            "metadata": {"annotations": {VERDICT: verdict}},
            "lastTimestamp": rfc3339(now),
        }
        namespace = pod.key.namespace
        if not first:
            try:
                await self._client.patch(EVENTS, name, changing, namespace=namespace)
                return
            except errors.NotFound:
                pass  # it expired
        try:
            await self._client.create(EVENTS, _new_event(pod, name, changing), namespace=namespace)
        except errors.AlreadyExists:
            await self._client.patch(EVENTS, name, changing, namespace=namespace)


def machine_readable(why: Why) -> Object:
    """The refusal as data: nodes counted by reason, the numbers of the first few."""
    reasons: dict[str, int] = {}
    for refusal in why.by_node.values():
        reasons[refusal.reason] = reasons.get(refusal.reason, 0) + 1
    body: Object = {"code": why.code, "fitting": why.fitting, "reasons": reasons}
    body["nodes"] = [
        {"node": name, "rule": refusal.rule, "detail": refusal.detail}
        for name, refusal in list(why.by_node.items())[:10]
    ]
    if why.lack is not None:
        body["queue"] = why.lack._asdict()
    return body


def _new_event(pod: Pod, name: str, changing: Object) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": pod.key.namespace, **changing["metadata"]},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": pod.key.name,
            "namespace": pod.key.namespace,
            "uid": pod.uid,
        },
        "type": "Warning",
        "reason": "FailedScheduling",
        "message": changing["message"],
        "source": {"component": "default-scheduler"},
        "reportingComponent": "default-scheduler",
        "reportingInstance": "default-scheduler",
        "firstTimestamp": changing["lastTimestamp"],
        "lastTimestamp": changing["lastTimestamp"],
        "count": 1,
    }
