"""How a revision's answers fared where no gateway of ours is in between: pods of our own server report it.

The inference server counts what it answered (`/metrics`). This reads the figures of a revision's pods through the API
server (`pods/proxy`, which the controller's account must be allowed to get) while a roll-out waits to be judged, and
keeps a minute of them in memory. Programs without these metrics are not measured, and the status says so.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from typing import NamedTuple

from paddlecloud.api.names import KNATIVE_REVISION
from paddlecloud.controllers.paddleservice.observe import Measure
from paddlecloud.kube.client import Client
from paddlecloud.kube.errors import ApiError
from paddlecloud.kube.resource import PODS, Key, Object

SPAN = 60.0
"""Seconds that are judged."""
PODS_ASKED = 10
"""Of a revision with more pods, so many stand for all."""
PATIENCE = 5.0
REQUESTS, SECONDS = "paddlecloud_serving_requests_total", "paddlecloud_serving_request_seconds_bucket"
LONGEST = 1 << 20
"""Bytes of a pod's answer that are read. The pod is its owner's: it may answer anything."""
_SAMPLE = re.compile(rf"({REQUESTS}|{SECONDS})\{{([^}}]*)\}} ([0-9]{{1,18}}(?:\.[0-9]*)?(?:e\+[0-9]{{1,2}})?)")
_LABEL = re.compile(r'\b(le|code)="([^"]*)"')


class Counts(NamedTuple):
    """What a pod has counted since it started. `within` holds, by time, how many answers took at most that long."""

    requests: int
    errors: int
    within: Mapping[float, int]


def read(text: str) -> Counts | None:
    """Prometheus' text form; None where our server's names are missing."""
    requests = errors = 0
    within: dict[float, int] = {}
    known = False
    for line in text[:LONGEST].splitlines():
        sample = _SAMPLE.match(line)  # at the beginning of a line, and only there: a search would be quadratic
        if sample is None:
            continue
        name, labels, value = sample.groups()
        named = dict(_LABEL.findall(labels))
        if name == REQUESTS:
            known = True
            requests += int(float(value))
            errors += int(float(value)) if named.get("code", "").startswith("5") else 0
        elif name == SECONDS:
            bound = _bound(named.get("le", ""))
            within[bound] = within.get(bound, 0) + int(float(value))
    return Counts(requests, errors, within) if known or f"# TYPE {REQUESTS}" in text else None


def _bound(text: str) -> float:
    """Of a bucket; what is no number counts as the last one."""
    try:
        found = float(text)
    except ValueError:
        return math.inf
    return math.inf if math.isnan(found) else found


def judged(earlier: Mapping[str, Counts], now: Mapping[str, Counts]) -> Measure:
    """What happened between two looks; a pod that was not there before counts from its start."""
    requests = errors = 0
    within: dict[float, int] = {}
    for pod, counts in now.items():
        before = earlier.get(pod)
        if before is not None and before.requests > counts.requests:
            before = None  # the program was started again
        requests += counts.requests - (before.requests if before else 0)
        errors += counts.errors - (before.errors if before else 0)
        for bound, count in counts.within.items():
            within[bound] = within.get(bound, 0) + count - (before.within.get(bound, 0) if before else 0)
    return Measure(
        requests=requests,
        error_percent=100 * errors / requests if requests else 0.0,
        latency_milliseconds=_percentile(within) * 1000,
    )


def _percentile(within: Mapping[float, int]) -> float:
    """The smallest of the times within which 95 of 100 answers came; twice the largest where none is enough."""
    total = max(within.values(), default=0)
    if not total:
        return 0.0
    finite = sorted(bound for bound in within if bound != math.inf)
    return next((bound for bound in finite if within[bound] >= 0.95 * total), 2 * finite[-1] if finite else 0.0)


class Looks:
    """The looks of the last minute at one revision."""

    def __init__(self) -> None:
        self._kept: deque[tuple[float, Mapping[str, Counts]]] = deque()

    def add(self, now: float, seen: Mapping[str, Counts]) -> Measure:
        self._kept.append((now, seen))
        while len(self._kept) > 1 and self._kept[1][0] <= now - SPAN:
            self._kept.popleft()
        return judged(self._kept[0][1] if len(self._kept) > 1 else {}, seen)


class PodMeasures:
    """Reads pods' figures; `of` is asked as often as a roll-out is looked at, `forget` when there is none."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._looks: dict[Key, tuple[str, Looks]] = {}

    async def of(self, service: Key, revision: str, *, now: float) -> Measure | None:
        """None where no pod reports anything that we understand, or where we may not ask."""
        selector = f"{KNATIVE_REVISION}={revision}"
        try:
            found = await self._client.list(PODS, namespace=service.namespace, label_selector=selector)
        except ApiError:
            return None
        pods = [pod for pod in found.items if not pod["metadata"].get("deletionTimestamp")][:PODS_ASKED]
        counted = await asyncio.gather(*(self._ask(pod) for pod in pods))
        seen = {
            pod["metadata"]["name"]: counts for pod, counts in zip(pods, counted, strict=True) if counts is not None
        }
        if not seen:
            return None
        if self._looks.get(service, ("", None))[0] != revision:
            self._looks[service] = (revision, Looks())
        return self._looks[service][1].add(now, seen)

    def forget(self, service: Key) -> None:
        self._looks.pop(service, None)

    async def _ask(self, pod: Object) -> Counts | None:
        meta, port = pod["metadata"], _port(pod)
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}:{port}/proxy/metrics"
        try:
            answer = await asyncio.wait_for(self._beginning(path), PATIENCE)
        except (ApiError, OSError, asyncio.TimeoutError):
            return None  # starting, ending, of another kind, or not ours to ask
        return read(answer.decode(errors="replace"))

    async def _beginning(self, path: str) -> bytes:
        """No more is taken in than is read: a pod may answer without end."""
        chunks = self._client.stream(path, accept="text/plain")
        found = b""
        try:
            async for chunk in chunks:
                found += chunk
                if len(found) >= LONGEST:
                    break
        finally:
            if isinstance(chunks, AsyncGenerator):
                await chunks.aclose()
        return found


def _port(pod: Object) -> int:
    """Of the container that serves; Knative's own stands beside it under its own name."""
    own = [container for container in pod["spec"]["containers"] if container["name"] != "queue-proxy"]
    ports = own[0].get("ports") if own else None
    return int(ports[0]["containerPort"]) if ports else 8080
