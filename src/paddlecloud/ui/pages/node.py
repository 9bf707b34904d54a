"""One node: what it has, the pods on it that the viewer may see, its conditions and its events."""

from __future__ import annotations

from typing import Any, NamedTuple

from paddlecloud.api.names import JOB_LABEL
from paddlecloud.cli.objects import events as event_order
from paddlecloud.cli.render import events as event_rows
from paddlecloud.cli.render.scheduling import amounts as in_words
from paddlecloud.kube.conditions import conditions_of
from paddlecloud.kube.pods import is_finished, phase_of
from paddlecloud.kube.resource import EVENTS, NODES, PODS, Object
from paddlecloud.local.scheduler.state.snapshot import pod_view
from paddlecloud.ui.asked import Asked, DashboardPage, found
from paddlecloud.ui.cluster_state import held_by
from paddlecloud.ui.feed import NODE
from paddlecloud.ui.pages.nodes import NodeRow, node_row

MOST_PODS = 250
MOST_EVENTS = 40


class PodOnNode(NamedTuple):
    namespace: str
    name: str
    job: str
    """The PaddleJob that it belongs to; empty for other pods."""
    phase: str
    holds: str
    created: str


class NodeView(NamedTuple):
    node: Object
    row: NodeRow
    pods: list[PodOnNode]
    more: int
    conditions: list[Any]
    events: list[list[object]]
    commands: list[str]

    @property
    def meta(self) -> Any:
        return self.node["metadata"]


async def load(asked: Asked) -> NodeView:
    name = asked.params["name"]
    node = found(await asked.reader.get(NODES, "", name))
    held = await asked.reader.totals(PODS, held_by)
    pods = [pod for pod in await asked.reader.by_index(PODS, NODE, name) if not is_finished(pod)]
    shown = sorted(map(_pod_on_node, pods), key=lambda pod: (pod.namespace, pod.name))
    return NodeView(
        node=node,
        row=node_row(asked, node, held.of(name) if held else {}),
        pods=shown[:MOST_PODS],
        more=max(0, len(shown) - MOST_PODS),
        conditions=list(conditions_of(node)),
        events=event_rows.rows((await _events(asked, name))[-MOST_EVENTS:], asked.now, {})[::-1],
        commands=[f"pdc describe node/{name}", f"kubectl cordon {name}", f"kubectl drain {name} --ignore-daemonsets"],
    )


async def _events(asked: Asked, name: str) -> list[Object]:
    """Events of nodes are in `default`, and name the node by its name where others have a uid."""
    happened = await asked.reader.objects(EVENTS, "default")
    about = [
        event
        for event in happened
        if (event.get("involvedObject") or {}).get("kind") == "Node" and event["involvedObject"].get("name") == name
    ]
    return sorted(about, key=event_order.order)


def _pod_on_node(pod: Object) -> PodOnNode:
    meta = pod["metadata"]
    return PodOnNode(
        namespace=str(meta.get("namespace") or ""),
        name=str(meta["name"]),
        job=str((meta.get("labels") or {}).get(JOB_LABEL) or ""),
        phase=phase_of(pod),
        holds=in_words(pod_view(pod).requests),
        created=str(meta.get("creationTimestamp") or ""),
    )


PAGE = DashboardPage("node", "/nodes/{name}", load)
