"""The variables that every text of a workflow may name: `workflow.name`, `workflow.parameters.x`, … Pure."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from typing import Any

from paddlecloud.kube.clock import parse_rfc3339
from paddlecloud.kube.resource import Object
from paddlecloud.local.workflow.expressions.evaluation import evaluate
from paddlecloud.local.workflow.expressions.tokens import ExpressionError
from paddlecloud.local.workflow.expressions.values import to_json
from paddlecloud.local.workflow.names import SCHEDULED_TIME
from paddlecloud.local.workflow.templates import ConfigMapValue, TemplateError, text_of
from paddlecloud.local.workflow.variables import expression_variables

_LABEL = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_TIMES = "aAbBcdFHIjmMpSwxXyYZ"
"""Formats of strftime that `workflow.creationTimestamp.Y` and its kin stand for."""


def workflow_variables(
    workflow: Object, spec: Mapping[str, Any], status: Mapping[str, Any], config_map: ConfigMapValue, now: float
) -> dict[str, str]:
    """`status` is that of a workflow that has begun."""
    meta = workflow["metadata"]
    created = meta.get("creationTimestamp") or "1970-01-01T00:00:00Z"
    labels, annotations = meta.get("labels") or {}, meta.get("annotations") or {}
    parameters = (spec.get("arguments") or {}).get("parameters") or []
    known = {
        "workflow.name": meta["name"],
        "workflow.namespace": meta["namespace"],
        "workflow.mainEntrypoint": str(spec.get("entrypoint", "")),
        "workflow.serviceAccountName": str(spec.get("serviceAccountName", "")),
        "workflow.uid": str(meta.get("uid", "")),
        "workflow.creationTimestamp": created,
        "workflow.creationTimestamp.RFC3339": created,
        "workflow.creationTimestamp.s": str(int(parse_rfc3339(created))),
        "workflow.status": str(status.get("phase", "")),
        "workflow.duration": f"{now - parse_rfc3339(status['startedAt']):f}",
        "workflow.parameters": to_json(parameters),
        "workflow.parameters.json": to_json(parameters),
        "workflow.labels": to_json(labels),
        "workflow.labels.json": to_json(labels),
        "workflow.annotations": to_json(annotations),
        "workflow.annotations.json": to_json(annotations),
    }
    moment = datetime.datetime.fromtimestamp(parse_rfc3339(created), datetime.timezone.utc)
    known |= {f"workflow.creationTimestamp.{char}": moment.strftime(f"%{char}") for char in _TIMES}
    known |= {f"workflow.labels.{key}": value for key, value in labels.items()}
    known |= {f"workflow.annotations.{key}": value for key, value in annotations.items()}
    if SCHEDULED_TIME in annotations:
        known["workflow.scheduledTime"] = annotations[SCHEDULED_TIME]
    if spec.get("priority") is not None:
        known["workflow.priority"] = str(spec["priority"])
    for parameter in parameters:
        known[f"workflow.parameters.{parameter['name']}"] = _value(parameter, config_map)
    for parameter in (status.get("outputs") or {}).get("parameters") or ():
        known[f"workflow.outputs.parameters.{parameter['name']}"] = text_of(parameter.get("value", ""))
    return known


def workflow_metadata(spec: Mapping[str, Any], variables: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """`workflowMetadata`: labels and annotations that a workflow gets when it begins; `labelsFrom` are expressions."""
    given = spec.get("workflowMetadata") or {}
    labels = {str(key): text_of(value) for key, value in (given.get("labels") or {}).items()}
    for key, source in (given.get("labelsFrom") or {}).items():
        try:
            value = evaluate(str(source["expression"]), expression_variables(variables))
        except ExpressionError as why:
            raise TemplateError(f"failed to evaluate label {key} expression {source['expression']!r}: {why}") from None
        if not isinstance(value, str) or not _LABEL.fullmatch(value):
            raise TemplateError(f"label {key} expression {source['expression']!r} gives no value of a label")
        labels[str(key)] = value
    annotations = {str(key): text_of(value) for key, value in (given.get("annotations") or {}).items()}
    return {"labels": labels, "annotations": annotations}


def _value(parameter: Mapping[str, Any], config_map: ConfigMapValue) -> str:
    if parameter.get("value") is not None:
        return text_of(parameter["value"])
    source = parameter.get("valueFrom") or {}
    if reference := source.get("configMapKeyRef"):
        found = config_map(str(reference.get("name", "")), str(reference.get("key", "")))
        if found is not None:
            return found
    if source.get("default") is not None:
        return text_of(source["default"])
    raise TemplateError(f"the workflow's parameter {parameter['name']} has no value")
