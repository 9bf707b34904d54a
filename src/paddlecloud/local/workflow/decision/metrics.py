"""`metrics` of workflows and templates: what is refused, and the samples that a pass gives. Pure.

As Argo's `computeMetrics` (workflow/controller/operator.go): when a node or the workflow is over, each metric whose
`when` holds gives one sample; a realtime gauge gives one as soon as its node begins. An error in a metric ends nothing:
it is the condition `MetricsError` of the workflow.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from paddlecloud.kube.clock import parse_rfc3339
from paddlecloud.kube.plan import Plan
from paddlecloud.local.workflow.decision.when import holds
from paddlecloud.local.workflow.expressions.budget import take_work
from paddlecloud.local.workflow.nodes import Node, is_over
from paddlecloud.local.workflow.templates import TemplateError, text_of
from paddlecloud.local.workflow.validation.problems import Problem, invalid, not_supported, required, too_many
from paddlecloud.local.workflow.variables import substitute, substitute_text

KINDS = ("counter", "gauge", "histogram")
OPERATIONS = ("Set", "Add", "Sub")
MOST_METRICS, MOST_LABELS, MOST_BUCKETS = 100, 32, 100
LONGEST = 2048
"""Characters of a series with its labels and its help."""
_STEPS = 5
"""Of the work of one pass that a metric of a node takes."""
NAMESPACE_LABEL = "workflow_namespace"
"""Which namespace a series comes from: the platform sets it, and no workflow does."""
CONDITION = "MetricsError"
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


@dataclass(frozen=True)
class Sample:
    kind: str
    name: str
    help: str
    labels: tuple[tuple[str, str], ...]
    value: float
    operation: str = "Set"
    buckets: tuple[float, ...] = ()
    began: float | None = None
    """Of a realtime gauge that goes on: its value is the time since then."""


@dataclass(slots=True)
class WorkflowPlan(Plan):
    """The plan of a pass; `samples` count once its status is written. `unreadable` is why the pass ended a workflow
    that it could not read."""

    samples: list[Sample] = field(default_factory=list)
    unreadable: Exception | None = None


# What is refused


def metric_problems(holder: Mapping[str, Any], path: str) -> Iterator[Problem]:
    metrics = holder.get("metrics")
    if metrics is None:
        return
    listed = metrics.get("prometheus") if isinstance(metrics, dict) else None
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        yield invalid(f"{path}.metrics.prometheus", "must be a list of metrics")
        return
    if len(listed) > MOST_METRICS:
        yield too_many(f"{path}.metrics.prometheus", f"at most {MOST_METRICS} metrics")
        return
    for index, metric in enumerate(listed):
        yield from _problems(metric, f"{path}.metrics.prometheus[{index}]")


def _problems(metric: Mapping[str, Any], path: str) -> Iterator[Problem]:
    if not _NAME.fullmatch(str(metric.get("name", ""))):
        yield invalid(f"{path}.name", "names have letters, digits and '_' alone")
    labels = metric.get("labels") or []
    if not isinstance(labels, list) or len(labels) > MOST_LABELS or not all(isinstance(each, dict) for each in labels):
        yield invalid(f"{path}.labels", f"must be a list of at most {MOST_LABELS} labels")
        return
    for label in labels:
        key = str(label.get("key", ""))
        if not _NAME.fullmatch(key) or key in (NAMESPACE_LABEL, "le"):
            why = "keys have letters, digits and '_' alone, and this platform sets " + NAMESPACE_LABEL
            yield invalid(f"{path}.labels", f"{key[:60]!r}: {why}")
    kinds = [kind for kind in KINDS if metric.get(kind) is not None]
    if len(kinds) != 1 or not isinstance(metric[kinds[0]], dict):
        yield invalid(path, f"must have exactly one of {', '.join(KINDS)}")
        return
    yield from _value_problems(metric[kinds[0]], f"{path}.{kinds[0]}")


def _value_problems(inner: Mapping[str, Any], path: str) -> Iterator[Problem]:
    if not inner.get("value"):
        yield required(f"{path}.value")
    if inner.get("realtime") and "resourcesDuration." in str(inner.get("value")):
        yield invalid(f"{path}.value", "resourcesDuration is not known in real time")
    if inner.get("operation") not in (None, "", *OPERATIONS):
        yield not_supported(f"{path}.operation", f"must be one of {', '.join(OPERATIONS)}")
    buckets = inner.get("buckets") or []
    numbers = isinstance(buckets, list) and all(type(each) in (int, float) for each in buckets)
    if not numbers or len(buckets) > MOST_BUCKETS:
        yield invalid(f"{path}.buckets", f"must be a list of at most {MOST_BUCKETS} numbers")


# What a pass gives


class Metering:
    """The metrics of one pass. `variables` are those of the workflow, `before` are its nodes as they were stored."""

    def __init__(self, before: Mapping[str, Node], began: float, now: float) -> None:
        self.samples: list[Sample] = []
        self.errors: list[str] = []
        self._before, self._began, self._now = before, began, now
        self._wanted: dict[str, Any] = {}

    def ended_now(self, node: Node) -> bool:
        """Whether it is over, and was not when it was stored."""
        known = self._before.get(node["id"])
        return is_over(node) and not (known is not None and is_over(known))

    def note(self, node_id: str, template: Mapping[str, Any]) -> None:
        """A node of this template is carried out in this pass, or was observed to be over."""
        if template.get("metrics"):
            self._wanted[node_id] = template["metrics"]

    def of_nodes(self, nodes: Mapping[str, Node], variables: Mapping[str, Any]) -> None:
        for identity, metrics in self._wanted.items():
            if (node := nodes.get(identity)) is None:
                continue
            for each in (node, *_attempts(node, nodes)):
                if self.ended_now(each):
                    self._measure(metrics, _scope(each, variables, self._now), each, realtime_only=False)
                elif each["id"] not in self._before:
                    self._measure(metrics, _scope(each, variables, self._now), each, realtime_only=True)

    def of_workflow(
        self, spec: Mapping[str, Any], root: Node | None, variables: Mapping[str, Any], *, is_over: bool
    ) -> None:
        if not spec.get("metrics"):
            return
        self._measure(spec["metrics"], _scope(root, variables, self._now), None, realtime_only=not is_over)

    def _measure(
        self, metrics: Mapping[str, Any], scope: Mapping[str, Any], node: Node | None, *, realtime_only: bool
    ) -> None:
        for metric in (metrics.get("prometheus") or ())[:MOST_METRICS]:
            take_work(_STEPS)
            realtime = bool((metric.get("gauge") or {}).get("realtime"))
            if realtime_only and not realtime:
                continue
            try:
                sample = self._sample(metric, scope, node, realtime=realtime, over=not realtime_only)
            except (TemplateError, ValueError, OverflowError) as why:
                self.errors.append(f"metric '{str(metric.get('name'))[:60]}': {str(why)[:300]}")
                continue
            if sample is not None:
                self.samples.append(sample)

    def _sample(
        self, metric: Mapping[str, Any], scope: Mapping[str, Any], node: Node | None, *, realtime: bool, over: bool
    ) -> Sample | None:
        # Users write the status too, and with it templates that nobody judged.
        if problem := next(_problems(metric, "metric"), None):
            raise TemplateError(problem.message)
        if not metric.get("help"):
            raise TemplateError("must contain a help string under 'help: ' field")
        shape = {key: metric[key] for key in ("name", "help", "labels", "when") if metric.get(key)}
        shape = substitute(shape, scope, lenient=False)
        if not holds(str(shape.get("when") or "")):
            return None
        labels = tuple((str(each["key"]), text_of(each.get("value", ""))) for each in shape.get("labels") or ())
        if len(str(shape)) > LONGEST:
            raise TemplateError(f"its name, help and labels are longer than {LONGEST:,} characters")
        kind = next(kind for kind in KINDS if metric.get(kind) is not None)
        inner = metric[kind]
        made: dict[str, Any] = {"kind": kind, "name": str(shape["name"]), "help": str(shape["help"]), "labels": labels}
        if realtime:
            return Sample(**made, **self._realtime(str(inner["value"]), node, over))
        value = float(substitute_text(text_of(inner["value"]), scope, lenient=False))
        if not math.isfinite(value):
            raise TemplateError(f"its value is {value}")
        buckets = tuple(sorted(float(each) for each in inner.get("buckets") or ()))
        return Sample(**made, value=value, operation=str(inner.get("operation") or "Set"), buckets=buckets)

    def _realtime(self, value: str, node: Node | None, over: bool) -> dict[str, Any]:
        name = value.removeprefix("{{").removesuffix("}}").strip()
        if not (value.startswith("{{") and value.endswith("}}")):
            raise TemplateError("real time metrics can only be used with metric variables")
        if name == "workflow.duration":
            return {"value": self._now - self._began, "began": None if over and node is None else self._began}
        if name != "duration" or node is None:
            raise TemplateError(f"'{name[:60]}' is not available as a real time metric")
        return {"value": _duration(node, self._now), "began": None if over else parse_rfc3339(node["startedAt"])}


def _attempts(node: Node, nodes: Mapping[str, Node]) -> list[Node]:
    """The attempts of a node of type Retry. One that is over is measured itself, instead of its last attempt."""
    if node["type"] != "Retry":
        return []
    found = [nodes[each] for each in node.get("children") or () if each in nodes]
    return found[:-1] if is_over(node) else found


def _duration(node: Node, now: float) -> float:
    began = parse_rfc3339(node["startedAt"]) if node.get("startedAt") else now
    return (parse_rfc3339(node["finishedAt"]) if is_over(node) and node.get("finishedAt") else now) - began


def _scope(node: Node | None, variables: Mapping[str, Any], now: float) -> dict[str, Any]:
    """As Argo's `prepareMetricScope`. What a node used of processors and memory is not counted here."""
    scope = {**variables, "duration": "0", "status": "Pending"}
    scope |= {"resourcesDuration.cpu": "0", "resourcesDuration.memory": "0"}
    if node is None:
        return scope
    scope |= {"duration": f"{_duration(node, now):f}", "status": node["phase"]}
    if node.get("children"):
        scope["retries"] = str(len(node["children"]) - 1)
    outputs = node.get("outputs") or {}
    for side, given in (("inputs", node.get("inputs") or {}), ("outputs", outputs)):
        for each in given.get("parameters") or ():
            scope[f"{side}.parameters.{each['name']}"] = text_of(each.get("value", ""))
    if outputs.get("result") is not None:
        scope["outputs.result"] = outputs["result"]
    if outputs.get("exitCode") is not None:
        scope["exitCode"] = outputs["exitCode"]
    return scope
