"""Counters, gauges and histograms in Prometheus' text format; as much of it as controllers need.

Label values are given in the order their names were declared. Not thread-safe: everything happens in one event loop.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TypeVar

LATENCY = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Labels = tuple[str, ...]


class Metric:
    """One name with its samples, one per combination of label values."""

    kind = "untyped"

    def __init__(self, name: str, help: str, labels: Sequence[str] = ()) -> None:
        self.name = name
        self.help = help
        self.labels = tuple(labels)

    def samples(self) -> Iterator[tuple[str, str, float]]:
        """(suffix of the name, label part, value)."""
        raise NotImplementedError

    def _check(self, values: Labels) -> None:
        if len(values) != len(self.labels):
            raise ValueError(f"{self.name} has labels {self.labels}, got {values}")


M = TypeVar("M", bound=Metric)


class Counter(Metric):
    kind = "counter"

    def __init__(self, name: str, help: str, labels: Sequence[str] = ()) -> None:
        super().__init__(name, help, labels)
        self._values: dict[Labels, float] = {}

    def inc(self, *labels: str, by: float = 1.0) -> None:
        self._check(labels)
        self._values[labels] = self._values.get(labels, 0.0) + by

    def value(self, *labels: str) -> float:
        return self._values.get(labels, 0.0)

    def samples(self) -> Iterator[tuple[str, str, float]]:
        for labels, value in self._values.items():
            yield "", _pairs(self.labels, labels), value


class Gauge(Metric):
    """Set, or computed by `source` at the moment somebody looks."""

    kind = "gauge"

    def __init__(
        self,
        name: str,
        help: str,
        labels: Sequence[str] = (),
        *,
        source: Callable[[], Mapping[Labels, float]] | None = None,
    ) -> None:
        super().__init__(name, help, labels)
        self._values: dict[Labels, float] = {}
        self._source = source

    def set(self, value: float, *labels: str) -> None:
        self._check(labels)
        self._values[labels] = value

    def value(self, *labels: str) -> float:
        return (self._source() if self._source else self._values).get(labels, 0.0)

    def samples(self) -> Iterator[tuple[str, str, float]]:
        for labels, value in (self._source() if self._source else self._values).items():
            yield "", _pairs(self.labels, labels), value


class Histogram(Metric):
    kind = "histogram"

    def __init__(self, name: str, help: str, labels: Sequence[str] = (), *, buckets: Sequence[float] = LATENCY) -> None:
        super().__init__(name, help, labels)
        self._bounds = tuple(sorted(buckets))
        self._counts: dict[Labels, list[int]] = {}  # per bucket, not cumulated; the last is everything above
        self._sums: dict[Labels, float] = {}

    def observe(self, value: float, *labels: str) -> None:
        self._check(labels)
        counts = self._counts.setdefault(labels, [0] * (len(self._bounds) + 1))
        counts[bisect.bisect_left(self._bounds, value)] += 1
        self._sums[labels] = self._sums.get(labels, 0.0) + value

    def merge(self, counts: Sequence[int], total: float, *labels: str) -> None:
        """Take over what another process has counted in the same buckets."""
        self._check(labels)
        own = self._counts.setdefault(labels, [0] * (len(self._bounds) + 1))
        for index, count in enumerate(counts):
            own[index] += count
        self._sums[labels] = self._sums.get(labels, 0.0) + total

    def count(self, *labels: str) -> int:
        return sum(self._counts.get(labels, ()))

    def samples(self) -> Iterator[tuple[str, str, float]]:
        for labels, counts in self._counts.items():
            so_far = 0
            for bound, count in zip((*self._bounds, float("inf")), counts, strict=True):
                so_far += count
                yield "_bucket", _pairs((*self.labels, "le"), (*labels, number(bound))), so_far
            yield "_sum", _pairs(self.labels, labels), self._sums[labels]
            yield "_count", _pairs(self.labels, labels), so_far


class Registry:
    """All metrics of a process. Asking for a name again gives the metric that has it."""

    def __init__(self) -> None:
        self._metrics: dict[str, Metric] = {}
        self.sources: list[Callable[[], Iterable[Metric]]] = []
        """Further metrics, whose names are known only when somebody looks."""

    def counter(self, name: str, help: str, labels: Sequence[str] = ()) -> Counter:
        return self._keep(Counter(name, help, labels))

    def gauge(
        self,
        name: str,
        help: str,
        labels: Sequence[str] = (),
        *,
        source: Callable[[], Mapping[Labels, float]] | None = None,
    ) -> Gauge:
        return self._keep(Gauge(name, help, labels, source=source))

    def histogram(
        self, name: str, help: str, labels: Sequence[str] = (), *, buckets: Sequence[float] = LATENCY
    ) -> Histogram:
        return self._keep(Histogram(name, help, labels, buckets=buckets))

    def render(self) -> str:
        lines: list[str] = []
        for metric in chain(self._metrics.values(), *(source() for source in self.sources)):
            help = metric.help.replace("\\", "\\\\").replace("\n", "\\n")
            lines += [f"# HELP {metric.name} {help}", f"# TYPE {metric.name} {metric.kind}"]
            lines += [f"{metric.name}{suffix}{pairs} {number(value)}" for suffix, pairs, value in metric.samples()]
        return "\n".join(lines) + "\n"

    def _keep(self, metric: M) -> M:
        known = self._metrics.setdefault(metric.name, metric)
        if type(known) is not type(metric) or known.labels != metric.labels:
            raise ValueError(f"metric {metric.name} exists as a {known.kind} with labels {known.labels}")
        return known


class ControllerMetrics:
    """The `Hooks` of controllers, counted."""

    def __init__(self, registry: Registry) -> None:
        self._total = registry.counter(
            "paddlecloud_reconcile_total", "Runs of a reconcile function by how they ended", ("controller", "result")
        )
        self._seconds = registry.histogram("paddlecloud_reconcile_seconds", "Time of one run", ("controller",))
        self.missing: dict[str, Sequence[str]] = {}  # by controller: collections that could not be listed in time
        self._depth = registry.gauge("paddlecloud_queue_depth", "Keys waiting for a worker", ("controller",))

    def reconciled(self, controller: str, result: str, seconds: float) -> None:
        self._total.inc(controller, result)
        self._seconds.observe(seconds, controller)

    def depth(self, controller: str, ready: int) -> None:
        self._depth.set(ready, controller)

    def waiting(self, controller: str, collections: Sequence[str]) -> None:
        if collections:
            self.missing[controller] = collections
        else:
            self.missing.pop(controller, None)


def _pairs(names: Labels, values: Labels) -> str:
    return label_pairs(tuple(zip(names, values, strict=True)))


def label_pairs(labels: Iterable[tuple[str, str]]) -> str:
    """`{name="value"}`, as it stands behind the name of a series; nothing without labels."""
    shown = [(name, v.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")) for name, v in labels]
    return "{" + ",".join(f'{name}="{value}"' for name, value in shown) + "}" if shown else ""


def number(value: float) -> str:
    if value == float("inf"):
        return "+Inf"
    return str(int(value)) if value == int(value) else repr(value)
