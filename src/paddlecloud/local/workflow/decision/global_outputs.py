"""Outputs with a `globalName`: every later step may name them, and the status of the workflow has them. Pure.

As Argo's `addOutputsToGlobalScope`: of several with one name the last counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddlecloud.kube.resource import Object
from paddlecloud.local.workflow.nodes import Node, is_over
from paddlecloud.local.workflow.templates import text_of

if TYPE_CHECKING:
    from paddlecloud.local.workflow.decision.operation import Operation


def publish(operation: Operation, status: Object) -> None:
    for artifact in (operation.spec.get("arguments") or {}).get("artifacts") or ():
        operation.artifacts[f"workflow.artifacts.{artifact['name']}"] = artifact
    made: dict[str, dict[str, Object]] = {"parameters": {}, "artifacts": {}}
    for node in sorted((node for node in operation.nodes if _gives(node)), key=lambda node: node["finishedAt"] or ""):
        for side, found in made.items():
            for output in node["outputs"].get(side) or ():
                if name := output.get("globalName"):
                    kept = {key: value for key, value in output.items() if key not in ("globalName", "path")}
                    found[name] = {**kept, "name": name}
    if outputs := {side: list(found.values()) for side, found in made.items() if found}:
        status["outputs"] = {**(status.get("outputs") or {}), **outputs}
    for name, parameter in made["parameters"].items():
        operation.variables[f"workflow.outputs.parameters.{name}"] = text_of(parameter.get("value", ""))
    for name, artifact in made["artifacts"].items():
        operation.artifacts[f"workflow.outputs.artifacts.{name}"] = artifact


def _gives(node: Node) -> bool:
    return is_over(node) and bool(node.get("outputs"))
