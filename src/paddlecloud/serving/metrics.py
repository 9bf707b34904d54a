"""What the server counts, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from paddlecloud.kube.metrics import Counter, Gauge, Histogram, Registry

NAME = "paddlecloud_serving"
ROWS = (1, 2, 4, 8, 16, 32, 64, 128)


class Metrics:
    def __init__(self) -> None:
        self.registry = Registry()
        self.requests: Counter = self.registry.counter(f"{NAME}_requests_total", "Requests answered", ("model", "code"))
        self.seconds: Histogram = self.registry.histogram(f"{NAME}_request_seconds", "Time to answer", ("model",))
        self.batch_rows: Histogram = self.registry.histogram(
            f"{NAME}_batch_rows", "Rows that ran together", ("model",), buckets=ROWS
        )
        self.reloads: Counter = self.registry.counter(f"{NAME}_reloads_total", "Models replaced", ("model", "outcome"))
        self.start: Gauge = self.registry.gauge(f"{NAME}_start_seconds", "Stages of the start", ("stage",))

    def waiting_from(self, source: Callable[[], Mapping[tuple[str, ...], float]]) -> None:
        self.registry.gauge(f"{NAME}_waiting", "Requests that wait for a batch", ("model",), source=source)
