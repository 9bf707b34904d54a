"""What clients of a revision saw lately, from the reports of the gateways: for roll-outs that go back, and for metrics.

Kept for a minute, in memory. Only revisions that share a route with others are written down (in their status), and not
more often than every two seconds.
"""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import dataclass, field

from paddlecloud.kube.metrics import Registry
from paddlecloud.local.knative.gateway.stats import BOUNDS
from paddlecloud.local.knative.supervisor import Report

SPAN = 60.0
EVERY = 2.0


@dataclass(slots=True)
class _Kept:
    reports: deque[tuple[float, int, int, list[int]]] = field(default_factory=deque)  # time, all, errors, latencies
    reported: float = 0.0


class Measures:
    def __init__(self, registry: Registry) -> None:
        self._kept: dict[str, _Kept] = {}
        self._requests = registry.counter(
            "paddlecloud_gateway_requests_total", "Requests answered, by status", ("revision", "code")
        )
        self._seconds = registry.histogram(
            "paddlecloud_gateway_request_seconds", "Time until the end of the answer", ("revision",), buckets=BOUNDS
        )
        self._inside = registry.gauge("paddlecloud_gateway_concurrency", "Requests in progress", ("revision",))

    def receive(self, report: Report, now: float) -> None:
        for revision, numbers in report.items():
            codes = {int(code): int(count) for code, count in numbers["codes"].items()}
            for code, count in codes.items():
                self._requests.inc(revision, str(code), by=count)
            self._seconds.merge(numbers["latencies"], numbers["seconds"], revision)
            self._inside.set(numbers["concurrency"], revision)
            kept = self._kept.setdefault(revision, _Kept())
            errors = sum(count for code, count in codes.items() if code >= 500)
            kept.reports.append((now, sum(codes.values()), errors, numbers["latencies"]))
            while kept.reports and kept.reports[0][0] < now - SPAN:
                kept.reports.popleft()

    def due(self, revision: str, now: float) -> bool:
        """Whether it is time to write a revision's numbers down; asking makes it so for the next two seconds."""
        kept = self._kept.get(revision)
        if kept is None or now - kept.reported < EVERY:
            return False
        kept.reported = now
        return True

    def expired(self, now: float) -> list[str]:
        """Revisions of whose requests none is within the span any more, each once: what was written down of them is
        no longer true, and must not be taken for an answer to the next share of the traffic that they get."""
        found = [name for name, kept in self._kept.items() if kept.reports and kept.reports[-1][0] < now - SPAN]
        for name in found:
            self._kept[name].reports.clear()
        return found

    def of(self, revision: str) -> dict[str, float] | None:
        kept = self._kept.get(revision)
        if kept is None or not kept.reports:
            return None
        requests = sum(entry[1] for entry in kept.reports)
        errors = sum(entry[2] for entry in kept.reports)
        latencies = [sum(column) for column in zip(*(entry[3] for entry in kept.reports), strict=True)]
        return {
            "requests": requests,
            "errorPercent": round(100 * errors / requests, 2) if requests else 0.0,
            "p95Milliseconds": round(percentile(latencies, 0.95) * 1000, 1),
        }

    def forget(self, revision: str) -> None:
        self._kept.pop(revision, None)


def percentile(latencies: list[int], share: float) -> float:
    """The upper end of the bucket in which the request of that rank is, in seconds."""
    wanted = sum(latencies) * share
    for count, bound in zip(itertools.accumulate(latencies), (*BOUNDS, 2 * BOUNDS[-1]), strict=True):
        if count >= wanted and count:
            return bound
    return 0.0
