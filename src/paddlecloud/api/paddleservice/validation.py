"""What makes a PaddleService impossible to serve, Knative's own limits included.

Knative would refuse the same values later and less clearly; the controller puts these problems into the condition
`Ready` and leaves the revision that serves alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from paddlecloud.api.fields import folder_address_problem
from paddlecloud.api.paddleservice import named_model
from paddlecloud.api.paddleservice.settings import percent_text, window_seconds, window_text
from paddlecloud.api.paddleservice.spec import MAX_NAME, EndpointSpec, PaddleService, PaddleServiceSpec, ServiceSpec
from paddlecloud.api.problems import TOO_LONG, Problem, declared_problems, invalid, not_supported, required

_PERCENTAGES = (
    ("target_utilization", "targetUtilization", "70", 1, 100),
    ("panic_window", "panicWindow", "10", 1, 100),
    ("panic_threshold", "panicThreshold", "200", 110, 1000),
)


def validate(service: PaddleService) -> list[Problem]:
    """Everything wrong with the service that can be seen without looking at the cluster."""
    spec = service.spec
    if spec is None:
        return [required("spec", "say what to serve")]
    problems = declared_problems(spec, "spec")
    problems += _name(service.name)
    if spec.default is None and not spec.model:
        problems.append(required("spec.default", "say what to serve"))
    if spec.default is None and spec.model:
        problems += _model(spec, "spec.model", spec.model)
    for field, endpoint in (("spec.default", spec.default), ("spec.canary", spec.canary)):
        if endpoint is not None:
            problems += _endpoint(endpoint, field)
            problems += _model(spec, f"{field}.model", endpoint.model or "")
    if spec.runtime_version and not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", spec.runtime_version):
        text = "is the name of the container: lower-case letters, digits and dashes"
        problems.append(invalid("spec.runtimeVersion", spec.runtime_version, text))
    if spec.service:
        problems += _scaling(spec.service)
    problems += _rollout(spec)
    return problems


def _name(name: str) -> Iterator[Problem]:
    if len(name) > MAX_NAME:
        yield Problem("metadata.name", TOO_LONG, f"Too long: may not be more than {MAX_NAME} characters")
    if name and not re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", name):
        yield invalid("metadata.name", name, "must be lower-case letters, digits and dashes, beginning with a letter")


def _model(spec: PaddleServiceSpec, field: str, model: str) -> Iterator[Problem]:
    """The inference server refuses it too; here it is said before a pod is made."""
    if text := folder_address_problem(model) or named_model.problem(model):
        yield invalid(field, model, text)
    if model.lower().startswith("http://") and "#" not in model and not spec.allow_plain_http:
        text = "comes over plain http: use https, append #sha256=HEX of the archive, or set spec.allowPlainHttp"
        yield invalid(field, model, text)


def _endpoint(endpoint: EndpointSpec, field: str) -> Iterator[Problem]:
    if endpoint.model:
        if endpoint.container_image:
            yield invalid(f"{field}.model", endpoint.model, "cannot be served together with a containerImage")
        return
    for name, value in (
        ("containerImage", endpoint.container_image),
        ("tag", endpoint.tag),
        ("port", endpoint.port),
    ):
        if value in (None, ""):
            yield required(f"{field}.{name}", "must be set")


def _scaling(service: ServiceSpec) -> Iterator[Problem]:
    for attribute, name, default, low, high in _PERCENTAGES:
        written = getattr(service, attribute)
        try:
            fits = low <= float(percent_text(written, default)) <= high
        except ValueError:
            fits = False
        if not fits:
            yield invalid(f"spec.service.{name}", written, f"must be a percentage from {low} to {high}")
    seconds = window_seconds(window_text(service.window))
    if seconds is None or not 6 <= seconds <= 3600:
        yield invalid("spec.service.window", service.window, "must be a time from 6s to 1h, in whole seconds")
    low, high = service.min_scale or 0, service.max_scale or 0
    if high and low > high:
        yield invalid("spec.service.minScale", low, f"must not exceed maxScale ({high})")
    if (service.autoscaler or "kpa").startswith("kpa") and service.metric == "cpu":
        yield not_supported("spec.service.metric", "cpu", ("concurrency", "rps"))


def _rollout(spec: PaddleServiceSpec) -> Iterator[Problem]:
    steps = (spec.rollout.steps if spec.rollout else None) or []
    for index, step in enumerate(steps):
        if not 0 < step <= 100:
            yield invalid(f"spec.rollout.steps[{index}]", step, "must be a percentage from 1 to 100")
        elif index and step <= steps[index - 1]:
            yield invalid(f"spec.rollout.steps[{index}]", step, "must be larger than the step before")
