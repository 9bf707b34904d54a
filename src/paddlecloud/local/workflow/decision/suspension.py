"""`suspend` templates: a wait for a time, or for somebody to resume. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paddlecloud.kube.clock import parse_rfc3339
from paddlecloud.local.workflow.durations import seconds
from paddlecloud.local.workflow.nodes import FAILED, RUNNING, SUCCEEDED, Node
from paddlecloud.local.workflow.templates import Template, text_of

if TYPE_CHECKING:
    from paddlecloud.local.workflow.decision.operation import Operation


def carry_out(operation: Operation, node: Node, template: Template) -> Node:
    if node["phase"] != RUNNING:
        return node
    if operation.stop:
        return operation.nodes.mark(node, FAILED, operation.stop.suspended)
    if "outputs" not in node and (outputs := _to_be_supplied(template)):
        node["outputs"] = {"parameters": outputs}
    duration = (template.get("suspend") or {}).get("duration")
    if not duration:
        return node
    left = parse_rfc3339(node["startedAt"]) + seconds(duration) - operation.now
    if left <= 0:
        return _resumed(operation, node)
    operation.plan.requeue_after(left)
    return node


def _to_be_supplied(template: Template) -> list[dict[str, Any]]:
    """Outputs that are supplied when it is resumed (`argo node set`): on the node from its start, without a value. As
    Argo's `addRawOutputFields` an input of the same name gives the default."""
    inputs = {each["name"]: each for each in (template.get("inputs") or {}).get("parameters") or ()}
    made = []
    for parameter in (template.get("outputs") or {}).get("parameters") or ():
        source = parameter.get("valueFrom") or {}
        if "supplied" not in source:
            continue
        usual = source.get("default", (inputs.get(parameter["name"]) or {}).get("default"))
        made.append({**parameter, "valueFrom": source if usual is None else {**source, "default": usual}})
    return made


def _resumed(operation: Operation, node: Node) -> Node:
    """Its time is over: what nobody supplied has its default."""
    for parameter in (node.get("outputs") or {}).get("parameters") or ():
        if parameter.get("value") is None and "supplied" in (parameter.get("valueFrom") or {}):
            if parameter["valueFrom"].get("default") is None:
                why = f"output parameter {parameter['name']} was not supplied and has no default"
                return operation.nodes.mark(node, FAILED, why)
            parameter["value"] = text_of(parameter["valueFrom"]["default"])
    return operation.nodes.mark(node, SUCCEEDED)
