"""The nodes of a workflow, as `.status.nodes` has them: a tree of what was and is carried out.

A decision works on a copy and writes it back whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from paddlecloud.kube.argo import ERROR as ERROR
from paddlecloud.kube.argo import FAILED as FAILED
from paddlecloud.kube.argo import OMITTED as OMITTED
from paddlecloud.kube.argo import OVER
from paddlecloud.kube.argo import PENDING as PENDING
from paddlecloud.kube.argo import RUNNING as RUNNING
from paddlecloud.kube.argo import SKIPPED as SKIPPED
from paddlecloud.kube.argo import SUCCEEDED as SUCCEEDED
from paddlecloud.kube.clock import rfc3339
from paddlecloud.kube.resource import Object
from paddlecloud.local.workflow.limits import LONGEST_MESSAGE, LONGEST_NAME, MOST_NODES, TooLarge
from paddlecloud.local.workflow.names import node_id

Node = dict[str, Any]

ENDED_PHASES = (SUCCEEDED, FAILED, ERROR)
"""Of a workflow, or of a node that was carried out. `OVER` has besides what was never begun."""


def is_over(node: Node) -> bool:
    """Nothing is left to do for it. A daemon that runs counts too: what follows it begins while it runs."""
    return node["phase"] in OVER or (bool(node.get("daemoned")) and node["phase"] != PENDING)


def has_pod(node: Node) -> bool:
    """A pod carries it out. Argo gives `http` templates nodes of their own type."""
    return node["type"] in ("Pod", "HTTP")


def has_ended(node: Node) -> bool:
    return node["phase"] in ENDED_PHASES


def is_ended(workflow: Object) -> bool:
    """Its status may be anything."""
    status = workflow.get("status")
    return isinstance(status, dict) and status.get("phase") in ENDED_PHASES


def has_failed(node: Node) -> bool:
    return node["phase"] in (FAILED, ERROR)


_TEXTS = ("id", "name", "displayName", "type", "phase", "startedAt")


def readable(nodes: Any) -> dict[str, Node]:
    """The nodes of a status, without those that lack what every node has: anybody who may write the workflow may have
    written them."""
    found = nodes if isinstance(nodes, dict) else {}
    return {
        key: node
        for key, node in found.items()
        if isinstance(node, dict) and node.get("id") == key and all(isinstance(node.get(each), str) for each in _TEXTS)
    }


class Nodes:
    def __init__(self, workflow: str, nodes: dict[str, Node], now: float) -> None:
        self._workflow = workflow
        self._now = now
        self.by_id = nodes
        self._by_name = {node["name"]: node for node in nodes.values()}

    def find(self, name: str) -> Node | None:
        return self._by_name.get(name)

    def __iter__(self) -> Iterator[Node]:
        return iter(list(self.by_id.values()))

    def children(self, node: Node) -> list[Node]:
        """Without its hooks: those are no part of its own course."""
        found = (self.by_id[child] for child in node.get("children") or () if child in self.by_id)
        return [child for child in found if not (child.get("nodeFlag") or {}).get("hooked")]

    def add(self, name: str, kind: str, phase: str, *, boundary: str = "", message: str = "", **more: Any) -> Node:
        if len(name) > LONGEST_NAME:
            raise TooLarge(f"the name of node {name[:60]}… is longer than {LONGEST_NAME:,} characters")
        identity = node_id(self._workflow, name)
        if len(self.by_id) >= MOST_NODES:
            raise TooLarge(f"the workflow has more than {MOST_NODES:,} nodes")
        node: Node = {
            "id": identity,
            "name": name,
            "displayName": display_name(name, self.by_id.get(boundary), kind),
            "type": kind,
            "phase": phase,
            "startedAt": rfc3339(self._now),
            "finishedAt": rfc3339(self._now) if phase in OVER else None,
            "progress": "0/1",
            **({"boundaryID": boundary} if boundary else {}),
            **({"message": message[:LONGEST_MESSAGE]} if message else {}),
            **{key: value for key, value in more.items() if value is not None},
        }
        self.by_id[identity] = self._by_name[name] = node
        return node

    def mark(self, node: Node, phase: str, message: str = "") -> Node:
        if node["phase"] != phase:
            node["phase"] = phase
        if message:
            node["message"] = message[:LONGEST_MESSAGE]
        if phase in OVER and not node.get("finishedAt"):
            node["finishedAt"] = rfc3339(self._now)
        return node

    def connect(self, parent: Node, child_name: str) -> None:
        children = parent.setdefault("children", [])
        known = self.find(child_name)
        identity = known["id"] if known is not None else node_id(self._workflow, child_name)
        if identity not in children:
            children.append(identity)

    def outbound(self, node: Node) -> list[str]:
        """The ids of the nodes at the end of a node, to which what follows it is connected."""
        ends: dict[str, None] = {}
        todo, seen = [node], set()
        while todo:
            current = todo.pop()
            if current["id"] in seen:
                continue
            seen.add(current["id"])
            inner = self._ends_inside(current)
            if inner is None:
                ends[current["id"]] = None
            else:
                todo += reversed(inner)
        return list(ends)

    def _ends_inside(self, node: Node) -> list[Node] | None:
        """The nodes inside one that stand for its end; None where it stands for itself."""
        if node["type"] in ("Steps", "DAG"):
            return [self.by_id[each] for each in node.get("outboundNodes") or () if each in self.by_id]
        if node["type"] == "TaskGroup":
            return self.children(node) or None
        if node["type"] == "Retry":
            return self.children(node)[-1:] or None
        return None


def display_name(name: str, boundary: Node | None, kind: str) -> str:
    """`wf[0].step` of the workflow wf is shown as its last part, its group as `[0]`, and `wf.task` likewise."""
    if boundary is None:
        return name
    rest = name.removeprefix(boundary["name"])
    if boundary["type"] == "Steps" and kind != "StepGroup":
        rest = rest.partition("]")[2]
    return rest.removeprefix(".") or name
