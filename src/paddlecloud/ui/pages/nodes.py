"""All nodes: what they have, how much of it pods hold, and which of them take no pods and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from paddlecloud.cli.objects.why import OK, Verdict
from paddlecloud.kube.resource import NODES, PODS, Object
from paddlecloud.local.scheduler.state.snapshot import node_view
from paddlecloud.ui import verdicts
from paddlecloud.ui.asked import Asked, DashboardPage
from paddlecloud.ui.cluster_state import Amount, amounts, held_by
from paddlecloud.ui.listing import Listed, Order, listed, words_of


class NodeRow(NamedTuple):
    name: str
    created: str
    verdict: Verdict
    amounts: list[Amount]
    cordoned: bool
    text: str

    @property
    def is_well(self) -> bool:
        return self.verdict.state == OK


class NodesView(NamedTuple):
    listed: Listed[NodeRow]
    total: int
    resources: list[str]
    """Columns: every resource that one of the shown nodes has."""
    held: bool
    """Whether what pods hold is known: to those who may list all pods."""
    query: object


LEFT_OUT = ("ephemeral-storage", "hugepages-1Gi", "hugepages-2Mi")
"""Resources that only the page of a node shows."""
ORDERS: dict[str, Order[NodeRow]] = {
    "name": lambda row: row.name,
    "status": lambda row: (row.is_well, row.name),
    "age": lambda row: (row.created, row.name),
}


async def load(asked: Asked) -> NodesView:
    nodes = await asked.reader.objects(NODES)
    held = await asked.reader.totals(PODS, held_by)
    rows = [node_row(asked, node, held.of(str(node["metadata"]["name"])) if held else {}) for node in nodes]
    if words := words_of(asked.query):
        rows = [row for row in rows if all(word in row.text for word in words)]
    found = listed(rows, asked.query, ORDERS, default="status", section="nodes")
    there = dict.fromkeys(each.resource for row in found.rows for each in row.amounts)
    resources = [resource for resource in there if resource not in LEFT_OUT]
    return NodesView(found, len(nodes), resources, held is not None, asked.query)


def node_row(asked: Asked, node: Object, held: Mapping[str, int]) -> NodeRow:
    meta = node["metadata"]
    view = node_view(node)
    verdict = verdicts.quick(node, (), (), now=asked.now, language=asked.language).verdict
    labels = (f"{key}={value}" for key, value in (meta.get("labels") or {}).items())
    return NodeRow(
        name=view.name,
        created=str(meta.get("creationTimestamp") or ""),
        verdict=verdict,
        amounts=amounts(held, view.allocatable),
        cordoned=view.unschedulable,
        text="\n".join((view.name, verdict.text, *labels)).lower(),
    )


PAGE = DashboardPage("nodes", "/nodes", load, key="n")
