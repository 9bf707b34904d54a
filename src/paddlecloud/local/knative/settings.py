"""What governs the scaling of a revision: Knative's global defaults, and the annotations that differ from them.

Global values are those Knative documents; a ConfigMap `config-autoscaler` in the namespace `knative-serving` changes
them under the same keys. `Scaling.of` never fails: what is no number within its bounds counts as not given. Admission
refuses it as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from paddlecloud.api.durations import seconds_of
from paddlecloud.kube.resource import Object
from paddlecloud.local.knative.names import AUTOSCALING

NUMBERS = {
    "target": (0.01, math.inf),
    "target-utilization-percentage": (1, 100),
    "panic-window-percentage": (1, 100),
    "panic-threshold-percentage": (110, 1000),
    **dict.fromkeys(("min-scale", "max-scale"), (0, 2**31 - 1)),
    **dict.fromkeys(("initial-scale", "activation-scale"), (1, 2**31 - 1)),
}
SPANS = {"window": (6, 3600), "scale-down-delay": (0, 3600), "scale-to-zero-pod-retention-period": (0, 3600)}
"""The least and the most that an annotation may say; of spans, in seconds."""


def seconds(text: str) -> float:
    """A Go duration such as `1m30s`. Raises ValueError for anything else."""
    if (found := seconds_of(text)) is None:
        raise ValueError(f"{text!r} is not a duration such as 60s or 1m30s")
    return found


@dataclass(frozen=True, slots=True)
class Defaults:
    """Knative's `config-autoscaler`, under the same names with dashes."""

    container_concurrency_target_default: float = 100.0
    container_concurrency_target_percentage: float = 70.0
    requests_per_second_target_default: float = 200.0
    stable_window: float = 60.0
    panic_window_percentage: float = 10.0
    panic_threshold_percentage: float = 200.0
    max_scale_up_rate: float = 1000.0
    max_scale_down_rate: float = 2.0
    scale_to_zero_grace_period: float = 30.0
    scale_to_zero_pod_retention_period: float = 0.0
    enable_scale_to_zero: bool = True
    initial_scale: int = 1
    min_scale: int = 0
    max_scale: int = 0
    activation_scale: int = 1
    scale_down_delay: float = 0.0

    @staticmethod
    def of(config_map: Object | None) -> Defaults:
        """What a ConfigMap says; a value that cannot be read leaves the default."""
        found = Defaults()
        data = (config_map or {}).get("data") or {}
        for field in fields(Defaults):
            text = data.get(field.name.replace("_", "-"))
            if text is None:
                continue
            try:
                found = replace(found, **{field.name: _READERS[type(getattr(found, field.name))](str(text).strip())})
            except ValueError:
                continue
        return found


def _number(text: str) -> float:
    return seconds(text) if text[-1:].isalpha() else float(text)


_READERS: Mapping[type, Callable[[str], Any]] = {float: _number, int: int, bool: lambda text: text == "true"}


@dataclass(frozen=True, slots=True)
class Scaling:
    """Everything the autoscaler needs to know about one revision."""

    metric: str
    target: float
    """Of the metric, per pod; at `target × utilization` pods are added."""
    utilization: float
    window: float
    panic_window: float
    panic_threshold: float
    up_rate: float
    down_rate: float
    min_scale: int
    max_scale: int
    initial_scale: int
    activation_scale: int
    grace: float
    retention: float
    scale_down_delay: float
    zero: bool

    @property
    def goal(self) -> float:
        return max(self.target * self.utilization, 0.01)

    @staticmethod
    def of(annotations: Mapping[str, str], concurrency_limit: int, defaults: Defaults) -> Scaling:
        """`concurrency_limit` is the revision's containerConcurrency: no target may exceed it."""

        def read(name: str, default: float, parse: Callable[[str], float] = float) -> float:
            low, high = NUMBERS.get(name) or SPANS[name]
            for spelling in (name, camel(name)):
                text = annotations.get(f"{AUTOSCALING}/{spelling}")
                if text is not None:
                    try:
                        value = parse(text)
                    except ValueError:
                        return default
                    return value if low <= value <= high else default
            return default

        metric = annotations.get(f"{AUTOSCALING}/metric", "concurrency")
        rps = metric == "rps"
        natural = concurrency_limit or defaults.container_concurrency_target_default
        target = read("target", defaults.requests_per_second_target_default if rps else natural)
        if not rps and concurrency_limit:
            target = min(target, concurrency_limit)
        window = read("window", defaults.stable_window, seconds)
        return Scaling(
            metric="rps" if rps else "concurrency",
            target=target,
            utilization=read("target-utilization-percentage", defaults.container_concurrency_target_percentage) / 100,
            window=window,
            panic_window=window * read("panic-window-percentage", defaults.panic_window_percentage) / 100,
            panic_threshold=read("panic-threshold-percentage", defaults.panic_threshold_percentage) / 100,
            up_rate=defaults.max_scale_up_rate,
            down_rate=defaults.max_scale_down_rate,
            min_scale=int(read("min-scale", defaults.min_scale)),
            max_scale=int(read("max-scale", defaults.max_scale)),
            initial_scale=int(read("initial-scale", defaults.initial_scale)),
            activation_scale=int(read("activation-scale", defaults.activation_scale)),
            grace=defaults.scale_to_zero_grace_period,
            retention=read("scale-to-zero-pod-retention-period", defaults.scale_to_zero_pod_retention_period, seconds),
            scale_down_delay=read("scale-down-delay", defaults.scale_down_delay, seconds),
            zero=defaults.enable_scale_to_zero,
        )


def camel(name: str) -> str:
    """Annotations were once written `minScale`; Knative still reads them so, and PaddleServices write them so."""
    first, *rest = name.split("-")
    return first + "".join(part.capitalize() for part in rest)
