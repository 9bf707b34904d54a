"""`parallelism`: whether one more may begin.

A workflow limits its pods. A template limits what is right below it, be it pods or templates of templates, as Argo's
`getActiveChildren` counts it (workflow/controller/node_counters.go): an iteration of several steps takes one place
until all of them are over.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from paddlecloud.local.workflow.decision.place import Place
from paddlecloud.local.workflow.nodes import PENDING, RUNNING, Node, Nodes, has_pod
from paddlecloud.local.workflow.templates import GROUP_KINDS, NODE_TYPES, POD_KINDS

_GROUPS = frozenset(NODE_TYPES[kind] for kind in GROUP_KINDS)


class UnderWay:
    """What runs, with what this pass begins."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._pods = sum(is_active_pod(node) for node in nodes)
        self._below: Counter[str] | None = None

    def is_full(self, kind: str, limit: Any, place: Place) -> bool:
        """For a template of this kind at this place; `limit` is the workflow's."""
        if kind in POD_KINDS and limit is not None and self._pods >= int(limit):
            return True
        if place.parallelism is None:
            return False
        if self._below is None:
            self._below = Counter(each.get("boundaryID", "") for each in self._nodes if _takes_a_place(each))
        return self._below[place.boundary] >= place.parallelism

    def begin(self, node: Node) -> None:
        self._pods += has_pod(node)
        if self._below is not None:
            self._below[node.get("boundaryID", "")] += 1


def is_active_pod(node: Node) -> bool:
    return has_pod(node) and _takes_a_place(node)


def waits_for_lock(node: Node) -> bool:
    return node["phase"] == PENDING and bool((node.get("synchronizationStatus") or {}).get("waiting"))


def _takes_a_place(node: Node) -> bool:
    under_way = node["phase"] in (PENDING, RUNNING) and not waits_for_lock(node)
    return under_way and (has_pod(node) or node["type"] in _GROUPS)
