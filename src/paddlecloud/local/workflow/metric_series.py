"""The series that workflows of all namespaces gave, for Prometheus: `argo_workflows_NAME` as Argo exports them.

A tenant chooses names, labels and how often a workflow runs, so a namespace has a number of series, and what is beyond
it is counted and dropped. Series have the namespace as a label: those of one tenant neither change nor block another's.
In memory alone, as in Argo; not thread-safe.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Iterable, Iterator

from paddlecloud.kube.clock import Clock
from paddlecloud.kube.metrics import Metric, label_pairs, number
from paddlecloud.local.workflow.decision.metrics import NAMESPACE_LABEL, Sample

PREFIX = "argo_workflows_"
MOST_LINES = 2_000
"""Lines of a namespace in the answer; a histogram has one for each bucket and three more."""

Labels = tuple[tuple[str, str], ...]
Key = tuple[str, str, Labels]
"""Namespace, name, labels."""


class _Series:
    def __init__(self, sample: Sample) -> None:
        self.kind, self.help, self.bounds = sample.kind, sample.help, sample.buckets
        self.value = 0.0
        self.began: float | None = None
        self.counts = [0] * (len(sample.buckets) + 1)
        self.workflow = ""
        """The uid of the workflow that a realtime gauge is about."""

    @property
    def lines(self) -> int:
        return len(self.counts) + 2 if self.kind == "histogram" else 1

    def take(self, sample: Sample) -> None:
        self.began = sample.began
        if self.kind == "histogram":
            self.counts[bisect.bisect_left(self.bounds, sample.value)] += 1
            self.value += sample.value
        elif self.kind == "counter" or sample.operation == "Add":
            self.value += sample.value
        else:
            self.value = self.value - sample.value if sample.operation == "Sub" else sample.value


class MetricSeries:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._series: dict[Key, _Series] = {}
        self._lines: Counter[str] = Counter()
        self._dropped: Counter[str] = Counter()

    def record(self, namespace: str, workflow: str, samples: Iterable[Sample]) -> None:
        for sample in samples:
            key = namespace, sample.name, sample.labels
            series = self._series.get(key)
            if series is None:
                series = _Series(sample)
                if self._lines[namespace] + series.lines > MOST_LINES:
                    self._dropped[namespace] += 1
                    continue
                self._series[key] = series
                self._lines[namespace] += series.lines
            elif (series.kind, series.bounds) != (sample.kind, sample.buckets):
                self._dropped[namespace] += 1
                continue
            if sample.began is not None:
                series.workflow = workflow
            series.take(sample)

    def forget_workflow(self, uid: str) -> None:
        """Realtime gauges of a workflow go with it, as in Argo."""
        for key in [key for key, series in self._series.items() if series.workflow == uid]:
            self._lines[key[0]] -= self._series.pop(key).lines

    def forget_namespace(self, name: str) -> None:
        for key in [key for key in self._series if key[0] == name]:
            del self._series[key]
        self._lines.pop(name, None)
        self._dropped.pop(name, None)

    def metrics(self) -> Iterator[Metric]:
        """By name; where namespaces disagree about what it is, it is untyped."""
        by_name: dict[str, list[tuple[Key, _Series]]] = {}
        for key, series in self._series.items():
            by_name.setdefault(key[1], []).append((key, series))
        now = self._clock.now()
        for name, found in by_name.items():
            yield _Exported(f"{PREFIX}{name}", found, now)
        if self._dropped:
            yield _Dropped(self._dropped)


class _Exported(Metric):
    def __init__(self, name: str, found: list[tuple[Key, _Series]], now: float) -> None:
        super().__init__(name, found[0][1].help)
        kinds = {series.kind for _, series in found}
        self.kind = kinds.pop() if len(kinds) == 1 else "untyped"
        self._found, self._now = found, now

    def samples(self) -> Iterator[tuple[str, str, float]]:
        for (namespace, _, labels), series in self._found:
            pairs = ((NAMESPACE_LABEL, namespace), *labels)
            if series.kind != "histogram":
                value = series.value if series.began is None else max(0.0, self._now - series.began)
                yield "", label_pairs(pairs), value
                continue
            so_far = 0
            for bound, count in zip((*series.bounds, float("inf")), series.counts, strict=True):
                so_far += count
                yield "_bucket", label_pairs((*pairs, ("le", number(bound)))), so_far
            yield "_sum", label_pairs(pairs), series.value
            yield "_count", label_pairs(pairs), so_far


class _Dropped(Metric):
    kind = "counter"

    def __init__(self, dropped: Counter[str]) -> None:
        about = f"Samples beyond {MOST_LINES:,} lines of a namespace, or of another kind than before"
        super().__init__("paddlecloud_workflow_metrics_dropped_total", about)
        self._dropped = dropped

    def samples(self) -> Iterator[tuple[str, str, float]]:
        for namespace, count in self._dropped.items():
            yield "", label_pairs(((NAMESPACE_LABEL, namespace),)), count
