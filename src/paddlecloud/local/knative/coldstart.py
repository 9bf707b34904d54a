"""Where the time of a start from zero went: waiting for a pod, starting its process, and what the program did then.

The first three moments are seen from here: a request that waits, a pod that exists, a pod that runs, a pod that is
ready. What happened in between inside the program is read from the program's metrics, if it has them
(`…_start_seconds{stage="…"}`, as this project's inference server does).
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass

from paddlecloud.kube.metrics import Registry
from paddlecloud.kube.pods import phase_of
from paddlecloud.kube.resource import Object
from paddlecloud.local.workloads.pods import is_ready

_STAGE = re.compile(r'^\w+_start_seconds\{stage="(\w+)"\} ([0-9.e+-]+)$', re.MULTILINE)
_FIELDS = {"import": "imports", "load": "load", "warmUp": "warmup"}
ASK_TIMEOUT = 2.0


@dataclass(slots=True)
class _Start:
    woken: float
    pod: str = ""
    created: float = 0.0
    running: float = 0.0


class ColdStarts:
    """`woken` and `pod_changed` record; `of` gives the last complete start of a revision in milliseconds."""

    def __init__(self, registry: Registry) -> None:
        self._now: dict[str, _Start] = {}
        self._last: dict[str, dict[str, int]] = {}
        self._seconds = registry.histogram(
            "paddlecloud_cold_start_seconds", "Starts from zero, by what the time went into", ("stage",)
        )

    def woken(self, revision: str, now: float) -> None:
        self._now.setdefault(revision, _Start(now))

    def pod_changed(self, revision: str, pod: Object, now: float) -> Object | None:
        """Returns the pod once, when it ended the wait."""
        start = self._now.get(revision)
        if start is None:
            return None
        uid = str(pod["metadata"]["uid"])
        if not start.pod:
            start.pod, start.created = uid, now
        if start.pod != uid:
            return None
        if not start.running and phase_of(pod) == "Running":
            start.running = now
        if not is_ready(pod):
            return None
        del self._now[revision]
        began = start.running or now
        self._last[revision] = {
            "queue": _ms(start.created - start.woken),
            "spawn": _ms(began - start.created),
            "load": _ms(now - began),
            "total": _ms(now - start.woken),
        }
        return pod

    def learned(self, revision: str, stages: dict[str, float]) -> None:
        """What the program says of itself, more exact than what can be seen from outside."""
        last = self._last.get(revision)
        if last is None:
            return
        last |= {_FIELDS[stage]: _ms(spent) for stage, spent in stages.items() if stage in _FIELDS}
        for stage, milliseconds in last.items():
            self._seconds.observe(milliseconds / 1000, stage)

    def of(self, revision: str) -> dict[str, int] | None:
        return self._last.get(revision)

    def forget(self, revision: str) -> None:
        self._now.pop(revision, None)
        self._last.pop(revision, None)


async def stages_of(ip: str, port: int) -> dict[str, float]:
    """What the program reports about its start, if it does."""
    try:
        return await asyncio.wait_for(_ask(ip, port), ASK_TIMEOUT)
    except (OSError, asyncio.TimeoutError, ValueError):
        return {}


async def _ask(ip: str, port: int) -> dict[str, float]:
    reader, writer = await asyncio.open_connection(ip, port)
    try:
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: pod\r\nConnection: close\r\n\r\n")
        text = (await reader.read(1 << 20)).decode("utf-8", "replace")
    finally:
        writer.close()
    return {stage: float(value) for stage, value in _STAGE.findall(text.replace("\r", ""))}


def _ms(seconds: float) -> int:
    return round(max(0.0, seconds) * 1000)
