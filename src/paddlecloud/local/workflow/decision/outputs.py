"""Outputs: of a template made of steps or tasks, and of a pod, as its executor reported them. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from paddlecloud.kube.resource import Object
from paddlecloud.local.workflow.artifacts.locations import stored
from paddlecloud.local.workflow.executor.orders import BROKEN, WITHOUT_OUTPUTS, in_spec
from paddlecloud.local.workflow.scope import Scope
from paddlecloud.local.workflow.templates import Template, TemplateError, text_of

Outputs = dict[str, Any]


def of_template(template: Template, scope: Scope) -> Outputs:
    declared = template.get("outputs") or {}
    made: Outputs = {}
    parameters = []
    for parameter in declared.get("parameters") or ():
        source = parameter.get("valueFrom") or {}
        value = scope.output(source) if source.get("parameter") or source.get("expression") else parameter.get("value")
        if value is None and source.get("default") is not None:
            value = source["default"]
        if value is not None:
            parameters.append({**parameter, "value": value})
    artifacts = []
    for artifact in declared.get("artifacts") or ():
        found = scope.artifact_of(artifact)
        if found is not None:
            kept = {key: artifact[key] for key in ("name", "globalName") if key in artifact}
            artifacts.append({**{key: each for key, each in found.items() if key != "globalName"}, **kept})
        elif not artifact.get("optional"):
            source = artifact.get("from") or artifact.get("fromExpression")
            raise TemplateError(f"unable to resolve outputs.artifacts.{artifact['name']}: {source}")
    if parameters:
        made["parameters"] = parameters
    if artifacts:
        made["artifacts"] = artifacts
    return made


def of_pod(pod: Object, report: Mapping[str, Any] | None = None) -> Outputs:
    """What the executor in the main container wrote as its termination message, or the whole `report` where that was
    collected, and its exit code."""
    ended = main_state(pod).get("terminated") or {}
    outputs: Outputs = {}
    reported = reported_by(pod) if report is None else report
    if "exitCode" in ended:
        code = BROKEN if cannot_start(ended) else ended["exitCode"]
        outputs["exitCode"] = "0" if lacks_outputs(pod) else str(code)
    if reported.get("result") is not None:
        outputs["result"] = text_of(reported["result"])
    values = reported.get("parameters")
    values = values if isinstance(values, dict) else {}
    orders = orders_of(pod)
    wanted = orders.get("parameters") or {}
    failed = bool(ended.get("exitCode"))
    kept = [name for name, each in wanted.items() if name in values or (failed and each.get("path"))]
    parameters = [_parameter(name, wanted[name], values.get(name)) for name in kept]
    parameters += [{**each, "value": text_of(each["value"])} for each in orders.get("values") or ()]
    if parameters:
        outputs["parameters"] = parameters
    if artifacts := _artifacts(orders.get("artifacts") or (), reported.get("artifacts")):
        outputs["artifacts"] = artifacts
    return outputs


def _parameter(name: str, order: Mapping[str, Any], value: Any) -> dict[str, Any]:
    """Of a program that failed, one that it did not write is there without a value, as Argo's executor reports it."""
    source = {key: each for key, each in order.items() if each and key != "globalName"}
    made = {"name": name, **({} if value is None else {"value": text_of(value)}), "valueFrom": source}
    return {**made, "globalName": order["globalName"]} if order.get("globalName") else made


def _artifacts(orders: Any, saved: Any) -> list[dict[str, Any]]:
    names = {each.get("name") for each in saved if isinstance(each, dict)} if isinstance(saved, list) else set()
    return [stored(order) for order in orders if order["name"] in names]


def reported_by(pod: Object) -> dict[str, Any]:
    return _reported((main_state(pod).get("terminated") or {}).get("message", ""))


def lacks_outputs(pod: Object) -> bool:
    """Whether the program succeeded, and what it promised is not there."""
    ended = main_state(pod).get("terminated") or {}
    return ended.get("exitCode") == BROKEN and reported_by(pod).get(WITHOUT_OUTPUTS) is True


def cannot_start(ended: Object) -> bool:
    """Whether the kubelet found no program to start; a missing volume or working directory is another failure."""
    return ended.get("reason") == "StartError" and str(ended.get("message") or "").startswith("exec: ")


def orders_of(pod: Object) -> dict[str, Any]:
    """What the executor was asked for: it is in the pod's own spec, whatever became of the template meanwhile."""
    containers = pod["spec"]["containers"]
    main: Object = next((each for each in containers if each["name"] == "main"), containers[0])  # a set may have none
    return _reported(in_spec(main.get("env") or ()))


def main_state(pod: Object) -> Object:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    found = next((each for each in statuses if each["name"] == "main"), None)
    return (found or {}).get("state") or {}


def _reported(message: str) -> dict[str, Any]:
    try:
        report = json.loads(message)
    except (ValueError, RecursionError):
        return {}
    return report if isinstance(report, dict) else {}
