"""A workflow that failed, as it must be written to go on at the steps that failed. Pure.

As Argo's `FormulateRetryWorkflow` (workflow/util/util.go): what succeeded or was skipped stays, what failed is
forgotten, and the groups around it run again. The exit handler is forgotten too: it belongs to the end to come.
"""

from __future__ import annotations

import copy
from typing import Any

from paddlecloud.api.argo_nodes import is_packed, packed
from paddlecloud.kube.resource import Object
from paddlecloud.pipelines import names
from paddlecloud.pipelines.runs.nodes import nodes_of, with_nodes

_GROUPS = frozenset({"DAG", "Steps", "StepGroup", "TaskGroup"})
"""Nodes that begin nothing themselves. A Retry counts its attempts and is forgotten as a whole."""
_KEPT = frozenset({"Succeeded", "Skipped"})


def retried(workflow: Object) -> tuple[Object, frozenset[str]]:
    """The workflow to write, and the ids of the nodes that are forgotten: their pods must be deleted first.

    Nodes that were stored compressed are written so again. Raises `Invalid`.
    """
    made = copy.deepcopy(with_nodes(workflow))
    status: Object = made.get("status") or {}
    nodes = nodes_of(made)
    forgotten = _forgotten(made["metadata"]["name"], nodes)
    kept: dict[str, Any] = {}
    for key, node in nodes.items():
        if key in forgotten:
            continue
        if node.get("phase") not in _KEPT:
            node = {**node, "phase": "Running"}
            for field in ("message", "finishedAt"):
                node.pop(field, None)
        children = [child for child in node.get("children") or () if child not in forgotten]
        kept[key] = {**node, "children": children} if children else {k: v for k, v in node.items() if k != "children"}
    made["status"] = {
        **{key: value for key, value in status.items() if key not in ("message", "finishedAt", "outputs")},
        "phase": "Running",
        "nodes": kept,
        "conditions": [each for each in status.get("conditions") or () if each.get("type") != "Completed"],
    }
    if is_packed(workflow):
        made["status"] = packed(made["status"])
    for label in (names.COMPLETED, names.PHASE):
        (made["metadata"].get("labels") or {}).pop(label, None)
    made["spec"].pop("shutdown", None)
    made["spec"].pop("activeDeadlineSeconds", None)
    return made, forgotten


def _forgotten(workflow: str, nodes: dict[str, Any]) -> frozenset[str]:
    alone: set[str] = set()
    with_children: list[str] = []
    for key, node in nodes.items():
        kind = node.get("type")
        if str(node.get("name") or "").startswith(f"{workflow}.onExit"):
            with_children.append(key)
        elif node.get("phase") not in _KEPT and kind not in _GROUPS:
            if kind == "Retry":
                with_children.append(key)
            alone.add(key)
    return frozenset(alone | _below(with_children, nodes))


def _below(keys: list[str], nodes: dict[str, Any]) -> set[str]:
    found: set[str] = set()
    waiting = list(keys)
    while waiting:
        each = waiting.pop()
        if each not in found and each in nodes:
            found.add(each)
            waiting += nodes[each].get("children") or ()
    return found
