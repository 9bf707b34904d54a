"""Whether a running job still writes logs: the newest line that any of its pods wrote.

Reading logs costs a request per pod, so it is done only when the time a job may be silent has passed since the last
known line. A pod whose log cannot be read counts as one that wrote: a missing answer is no reason to restart a job.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from paddlecloud.controllers.paddlejob.observe import PodView
from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import parse_rfc3339
from paddlecloud.kube.errors import ApiError
from paddlecloud.kube.resource import PODS

CONCURRENCY = 16


async def newest_line(client: Client, namespace: str, pods: Iterable[PodView], *, since: int) -> float | None:
    """When the last line of the last `since` seconds was written, by any pod; None if no pod wrote anything."""
    limit = asyncio.Semaphore(CONCURRENCY)

    async def ask(pod: PodView) -> float | None:
        async with limit:
            return await _last_line(client, namespace, pod, since=since)

    moments = await asyncio.gather(*(ask(pod) for pod in pods if pod.state == "running"))
    return max((moment for moment in moments if moment is not None), default=None)


async def _last_line(client: Client, namespace: str, pod: PodView, *, since: int) -> float | None:
    container = (pod.spec.get("containers") or [{}])[0].get("name", "")
    query = {"container": container, "sinceSeconds": str(since), "tailLines": "1", "timestamps": "true"}
    try:
        answer = await client.raw("GET", PODS.path(namespace, pod.name, "log"), query=query, accept="*/*")
    except ApiError:
        return float("inf")
    stamp = answer.body.decode(errors="replace").partition(" ")[0].strip()
    if not stamp:
        return None
    try:
        return parse_rfc3339(stamp)
    except ValueError:
        return float("inf")
