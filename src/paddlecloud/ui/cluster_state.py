"""What the scheduler looks at, from the shared watches, for those who may see all of it: nodes, pods, groups, queues.

What one viewer may not see would show through sums and reasons, so there is all of it or nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

from paddlecloud.cli.render.scheduling import Cluster, waits_for_a_node
from paddlecloud.kube.resource import (
    COSCHEDULING_PODGROUPS,
    NODES,
    PODDISRUPTIONBUDGETS,
    PODGROUPS,
    PODS,
    PRIORITYCLASSES,
    QUEUES,
    Object,
)
from paddlecloud.local.scheduler.decision.filters import shown
from paddlecloud.local.scheduler.explanation.queue_report import QueueReport, queue_reports
from paddlecloud.local.scheduler.state.snapshot import pod_view, takes_room
from paddlecloud.sdk.embedded_server import MARK
from paddlecloud.ui.formatting import share
from paddlecloud.ui.reader import Reader

NEEDED = (NODES, PODS, PODGROUPS, QUEUES)
"""Who may list these in all namespaces sees what the scheduler sees."""
PODS_RESOURCE = "pods"
ORDER = ("cpu", "memory", "nvidia.com/gpu", PODS_RESOURCE)


class Amount(NamedTuple):
    """Of one resource: in use and there, as text and as a part of the whole."""

    resource: str
    used: str
    whole: str
    share: float | None


async def sees_everything(reader: Reader) -> bool:
    answers = [await reader.sees_all(resource) for resource in NEEDED]
    return all(answers)


async def is_ours(reader: Reader) -> bool:
    """Whether the scheduler of the server is this project's."""
    return MARK in str((await reader.server_version()).get("gitVersion"))


async def reports(reader: Reader) -> list[QueueReport]:
    """In a thread: with many pods it takes longer than a page may wait."""
    cluster = await _cluster(reader)
    return await asyncio.to_thread(_reports, cluster)


async def _cluster(reader: Reader) -> Cluster:
    """Groups of the other kind of scheduler are there where its kind is."""
    classes = await reader.objects(PRIORITYCLASSES)
    return Cluster(
        nodes=await reader.objects(NODES),
        pods=await reader.objects(PODS),
        groups=await reader.objects(PODGROUPS) + await reader.objects(COSCHEDULING_PODGROUPS),
        queues=await reader.objects(QUEUES),
        budgets=await reader.objects(PODDISRUPTIONBUDGETS),
        priorities={obj["metadata"]["name"]: int(obj.get("value") or 0) for obj in classes},
    )


def _reports(cluster: Cluster) -> list[QueueReport]:
    return queue_reports(cluster.snapshot(), map(pod_view, filter(waits_for_a_node, cluster.pods)))


def held_by(pod: Object) -> tuple[str, Mapping[str, int]] | None:
    """The node that a pod is on, and what it holds there; None for one that holds nothing."""
    if not takes_room(pod):
        return None
    view = pod_view(pod)
    return view.node, view.requests


def amounts(used: Mapping[str, int], whole: Mapping[str, int]) -> list[Amount]:
    """The well-known resources first. What nobody has is left out."""
    names = sorted((name for name in whole if whole[name]), key=lambda name: (_place(name), name))
    return [
        Amount(name, shown(name, used.get(name, 0)), shown(name, whole[name]), share(used.get(name, 0), whole[name]))
        for name in names
    ]


def _place(name: str) -> int:
    return ORDER.index(name) if name in ORDER else len(ORDER)
