"""What a PaddleService means: every default filled in, every spelling understood.

`normalise` never fails and never judges. The defaults are those of the original controller, with one difference that
users asked for: `target` is no longer also a hard limit of requests per pod (`containerConcurrency` is).
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, cast

import msgspec

from paddlecloud.api.durations import seconds_of
from paddlecloud.api.fields import text
from paddlecloud.api.paddleservice.spec import (
    AUTOSCALERS,
    EndpointSpec,
    PaddleService,
    PaddleServiceSpec,
    Rollout,
    ServiceSpec,
)

DEFAULT_RESOURCES = {"cpu": "0.2", "memory": "512Mi"}
MODEL_LIMITS = {"cpu": "2", "memory": "2Gi"}
"""For a model without its own image: loading Paddle takes more than the original's limits allow."""
DEFAULT_RUNTIME = "paddleserving"
DEFAULT_MODEL_PORT = 8080


class EndpointSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`model` and `image` exclude each other; an empty `command` leaves the image's entrypoint alone."""

    image: str
    model: str
    port: int
    command: tuple[str, ...]


class ScalingSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Percentages and the window stay strings, as Knative's annotations want them."""

    autoscaler: Literal["kpa.autoscaling.knative.dev", "hpa.autoscaling.knative.dev"]
    metric: Literal["concurrency", "rps", "cpu"]
    target: int
    target_utilization: str
    window: str
    panic_window: str
    panic_threshold: str
    min_scale: int
    max_scale: int


class RolloutSettings(msgspec.Struct, frozen=True, kw_only=True):
    steps: tuple[int, ...]
    pause_seconds: int
    max_error_percent: float | None
    max_latency_milliseconds: int | None
    paused: bool

    @property
    def has_limits(self) -> bool:
        """Whether it goes back by itself when answers get worse."""
        return self.max_error_percent is not None or self.max_latency_milliseconds is not None


class ServiceSettings(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    namespace: str
    group: str
    """Which of the two API groups the object came through."""
    default: EndpointSettings | None
    canary: EndpointSettings | None
    canary_percent: int
    """0 without a canary."""
    scaling: ScalingSettings
    container_name: str
    resources: dict[str, Any]
    working_dir: str
    container_concurrency: int
    timeout_seconds: int
    protocol: Literal["http1", "h2c", "grpc"]
    rollout: RolloutSettings | None
    follow: bool
    spec: PaddleServiceSpec
    """For what is passed on untouched: volumes, env, probes, node selection."""


class Normalised(NamedTuple):
    settings: ServiceSettings
    warnings: list[str]


def normalise(service: PaddleService) -> Normalised:
    """The meaning of a service, and sentences for people about what was not taken literally."""
    spec = service.spec or PaddleServiceSpec()
    warnings: list[str] = []
    default = spec.default
    if default is None and spec.model:
        default = EndpointSpec(model=spec.model)
    elif default is not None and spec.model:
        warnings.append("spec.model is ignored because spec.default is set")
    percent = 50 if spec.canary_traffic_percent is None else min(100, max(0, spec.canary_traffic_percent))
    if spec.canary is None and spec.canary_traffic_percent is not None:
        warnings.append("spec.canaryTrafficPercent is ignored: there is no canary")
    settings = ServiceSettings(
        name=service.name,
        namespace=service.namespace,
        group=(service.api_version or "").partition("/")[0],
        default=_endpoint(default) if default else None,
        canary=_endpoint(spec.canary) if spec.canary else None,
        canary_percent=percent if spec.canary else 0,
        scaling=_scaling(spec.service or ServiceSpec(), spec.replicas, warnings),
        container_name=spec.runtime_version or DEFAULT_RUNTIME,
        resources=_resources(spec.resources or {}, model=bool(default and default.model)),
        working_dir=spec.working_dir or "",
        container_concurrency=spec.container_concurrency or 0,
        timeout_seconds=spec.timeout_seconds or 300,
        protocol=cast(Any, spec.protocol or "http1"),
        rollout=_rollout(spec.rollout) if spec.rollout else None,
        follow=bool(spec.follow),
        spec=spec,
    )
    return Normalised(settings, warnings)


def window_text(value: int | str | None) -> str:
    """A time span with its unit: `10` and `10s` are the same."""
    written = (text(value) or "60s").strip()
    return f"{written}s" if written.isdigit() else written


def window_seconds(window: str) -> float | None:
    """Seconds of a Go duration such as `1m30s`, or None when it is not one in whole hours, minutes and seconds."""
    return None if "." in window else seconds_of(window, ("s", "m", "h"))


def percent_text(value: int | str | None, default: str) -> str:
    """A percentage without its sign: `70`, "70" and "70%" are the same."""
    return (text(value) or default).strip().removesuffix("%").strip()


def _endpoint(endpoint: EndpointSpec) -> EndpointSettings:
    tag = text(endpoint.tag)
    image = endpoint.container_image or ""
    return EndpointSettings(
        image=f"{image}:{tag}" if image and tag else image,
        model="" if image else endpoint.model or "",
        port=endpoint.port or DEFAULT_MODEL_PORT,
        command=("/bin/bash", "-c", endpoint.arg) if endpoint.arg else (),
    )


def _scaling(service: ServiceSpec, replicas: int | None, warnings: list[str]) -> ScalingSettings:
    low, high = service.min_scale or 0, service.max_scale or 0
    if replicas:  # 0, as `scale --replicas 0` writes it, takes the pin away
        if service.min_scale is not None or service.max_scale is not None:
            warnings.append("spec.replicas pins the number of pods: service.minScale and maxScale are ignored")
        low = high = replicas
    autoscaler = service.autoscaler or "kpa"
    return ScalingSettings(
        autoscaler=cast(Any, AUTOSCALERS.get(autoscaler, autoscaler)),
        metric=cast(Any, service.metric or "concurrency"),
        target=service.target or 100,
        target_utilization=percent_text(service.target_utilization, "70"),
        window=window_text(service.window),
        panic_window=percent_text(service.panic_window, "10"),
        panic_threshold=percent_text(service.panic_threshold, "200"),
        min_scale=low,
        max_scale=high,
    )


def _resources(written: dict[str, Any], *, model: bool) -> dict[str, Any]:
    """Requests and limits with the defaults for what is missing.

    A limit is never set below its request: filling in `limits.cpu: 0.2` beside `requests.cpu: 2` made pods that no
    cluster accepts, so a missing limit follows a request that was written, and the other way round.
    """
    requests, limits = _quantities(written, "requests"), _quantities(written, "limits")
    for name, value in DEFAULT_RESOURCES.items():
        asked = name in requests
        requests.setdefault(name, limits.get(name, value))
        limits.setdefault(name, MODEL_LIMITS[name] if model and not asked else requests[name])
    return {**written, "requests": requests, "limits": limits}


def _quantities(resources: dict[str, Any], name: str) -> dict[str, Any]:
    found = resources.get(name)
    return dict(found) if isinstance(found, dict) else {}


def _rollout(rollout: Rollout) -> RolloutSettings:
    return RolloutSettings(
        steps=tuple(rollout.steps or ()),
        pause_seconds=60 if rollout.pause_seconds is None else rollout.pause_seconds,
        max_error_percent=rollout.max_error_percent,
        max_latency_milliseconds=rollout.max_latency_milliseconds,
        paused=bool(rollout.paused),
    )
