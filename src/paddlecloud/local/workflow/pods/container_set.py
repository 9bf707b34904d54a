"""Nodes of the containers of a set: each has one below that of its pod, as Argo writes them. Pure."""

from __future__ import annotations

from typing import Any

from paddlecloud.kube.resource import Object
from paddlecloud.local.workflow.executor.orders import BROKEN
from paddlecloud.local.workflow.nodes import ERROR, FAILED, PENDING, RUNNING, SUCCEEDED, Node, Nodes, is_over
from paddlecloud.local.workflow.templates import Template


def add_nodes(nodes: Nodes, node: Node, template: Template) -> None:
    containers = template["containerSet"]["containers"]
    described = {key: node[key] for key in ("templateName", "templateRef", "templateScope") if key in node}
    for each in containers:
        name = f"{node['name']}.{each['name']}"
        if nodes.find(name) is None:
            nodes.add(name, "Container", PENDING, boundary=node["id"], **described)
    for each in containers:
        parents = [f"{node['name']}.{need}" for need in each.get("dependencies") or ()] or [node["name"]]
        for parent in parents:
            found = nodes.find(parent)
            if found is not None:
                nodes.connect(found, f"{node['name']}.{each['name']}")


def observe(nodes: Nodes, node: Node, pod: Object) -> None:
    """From the states of the containers; when the pod is over, so are all of them."""
    states: dict[str, Any] = {
        each["name"]: each.get("state") or {} for each in (pod.get("status") or {}).get("containerStatuses") or ()
    }
    for name, state in states.items():
        found = nodes.find(f"{node['name']}.{name}")
        if found is None or found["type"] != "Container" or is_over(found):
            continue
        ended = state.get("terminated")
        if ended:
            code = ended.get("exitCode")
            message = f"{ended.get('reason', 'Error')} (exit code {code})" if code else ""
            nodes.mark(found, {0: SUCCEEDED, BROKEN: ERROR}.get(code or 0, FAILED), message)
        elif state.get("running"):
            nodes.mark(found, RUNNING)


def end(nodes: Nodes, node: Node) -> None:
    """The pod of the set is over or gone: no container of it goes on."""
    for other in nodes:
        if other["type"] == "Container" and other.get("boundaryID") == node["id"] and not is_over(other):
            nodes.mark(other, FAILED, node.get("message", ""))


def begin_again(nodes: Nodes, node: Node) -> None:
    """The pod of the set is made anew, and all its containers with it."""
    for other in nodes:
        if other["type"] == "Container" and other.get("boundaryID") == node["id"]:
            other.pop("message", None)
            other |= {"phase": PENDING, "finishedAt": None}
