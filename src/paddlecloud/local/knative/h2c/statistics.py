"""What Envoy counted, as the report that a gateway process sends. Pure.

Envoy gives totals in the text format of Prometheus; a report holds what happened since the last one. How many requests
were in progress on average is not among Envoy's figures. It is taken to be the larger of those in progress now and the
time spent on those that ended, of which none counts for longer than the time since the last report. Envoy adds up
times a moment later than it counts: they may be in the report after that of their requests.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from paddlecloud.local.knative.gateway.stats import BOUNDS

_LINE = re.compile(r"envoy_cluster_(\w+)\{([^}]*)\} (\d+(?:\.\d+)?)")
_LABEL = re.compile(r'(\w+)="([^"]*)"')
WANTED = r"^cluster\.[^.]+\.(upstream_rq_(pending_)?active|upstream_rq_\d+|upstream_rq_time|grpc\.\d+)$"
"""The names of the statistics that are read here, as Envoy filters them."""
_GRPC_CODE = re.compile(r"grpc_(\d+)")
SERVERS_FAULT = frozenset(("2", "4", "12", "13", "14", "15"))
"""Codes of gRPC that say the server failed: they come with HTTP's status 200."""


@dataclass(slots=True)
class Totals:
    """Of one cluster, since Envoy started."""

    inside: int = 0
    codes: dict[str, int] = field(default_factory=dict)
    failed_calls: int = 0
    latencies: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    """How many took at most each bound; the last is all."""
    seconds: float = 0.0


def read(text: str) -> dict[str, Totals]:
    """By name of cluster."""
    found: dict[str, Totals] = {}
    for name, labels_text, value in _LINE.findall(text):
        labels = dict(_LABEL.findall(labels_text))
        totals = found.setdefault(labels.get("envoy_cluster_name", ""), Totals())
        _take(totals, name, labels, float(value))
    return found


def _take(totals: Totals, name: str, labels: Mapping[str, str], value: float) -> None:
    if name in ("upstream_rq_active", "upstream_rq_pending_active"):
        totals.inside += int(value)
    elif name == "upstream_rq" and "envoy_response_code" in labels:
        totals.codes[labels["envoy_response_code"]] = int(value)
    elif name == "upstream_rq_time_bucket":
        bound = float("inf") if labels["le"] == "+Inf" else float(labels["le"]) / 1000
        place = next((index for index, end in enumerate(BOUNDS) if abs(end - bound) < 1e-9), len(BOUNDS))
        totals.latencies[place] = int(value)
    elif name == "upstream_rq_time_sum":
        totals.seconds = value / 1000
    elif (code := _GRPC_CODE.fullmatch(name)) and code[1] in SERVERS_FAULT:
        totals.failed_calls += int(value)


def report(now: Totals, before: Totals, span: float) -> dict[str, Any] | None:
    """What happened within `span` seconds; None when nothing did and nothing is in progress."""
    if now == before and not now.inside:
        return None
    codes = Counter(now.codes)
    codes.subtract(before.codes)
    failed = now.failed_calls - before.failed_calls  # a stream's comes long after its 200, maybe reported already
    codes.update({"200": -failed, "500": failed})
    upto = [after - earlier for after, earlier in zip(now.latencies, before.latencies, strict=True)]
    ended, seconds = upto[-1], now.seconds - before.seconds
    return {
        "concurrency": max(float(now.inside), min(seconds / span, float(ended))),
        "inside": now.inside,
        "span": span,
        "codes": dict(+codes),
        "latencies": [upto[0], *(after - earlier for earlier, after in itertools.pairwise(upto))],
        "seconds": seconds,
    }
