"""All queues: what they use of what they deserve and may, who stands where in their lines, and why it waits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from paddlecloud.api.names import JOB_LABEL
from paddlecloud.cli.render.scheduling import amounts as in_words
from paddlecloud.kube.resource import PODS, QUEUES, Object
from paddlecloud.local.scheduler.explanation.queue_report import InLine, QueueReport
from paddlecloud.local.scheduler.state.snapshot import queue_view
from paddlecloud.ui.asked import Asked, DashboardPage
from paddlecloud.ui.cluster_state import Amount, amounts, is_ours, reports, sees_everything

MOST_IN_LINE = 20
QUICK_PODS = 2000
"""With more than these the lines follow as a live part: the first answer must not wait for them."""


class Waiting(NamedTuple):
    position: int
    namespace: str
    name: str
    job: str
    pods: int
    needs: str
    priority: int
    since: str
    why: str
    """Empty for what the next round places."""


class QueueCard(NamedTuple):
    name: str
    open: bool
    weight: int
    parent: str
    share: float
    amounts: list[Amount]
    """Used of deserved; of what it may use at most where it deserves nothing."""
    limits: str
    line: list[Waiting]
    length: int


class QueuesView(NamedTuple):
    queues: list[QueueCard]
    complete: bool
    """Whether lines are shown; else `reason` says why not, or they follow."""
    reason: str
    """Key of the words."""


async def load(asked: Asked) -> QueuesView:
    reader = asked.reader
    if not await sees_everything(reader):
        return QueuesView(_by_themselves(await reader.objects(QUEUES)), False, "queues.no-rights")
    if not await is_ours(reader):
        return QueuesView(_by_themselves(await reader.objects(QUEUES)), False, "queues.other-scheduler")
    if asked.quick and len(await reader.objects(PODS)) > QUICK_PODS:
        return QueuesView(_by_themselves(await reader.objects(QUEUES)), False, "queues.follow")
    return QueuesView([_card(report) for report in await reports(reader)], True, "")


def _by_themselves(queues: list[Object]) -> list[QueueCard]:
    """What the objects say, without what is computed of all pods."""
    cards = []
    for view in sorted(map(queue_view, queues), key=lambda view: view.name):
        limits = in_words(view.capability)
        cards.append(QueueCard(view.name, view.open, view.weight, view.parent, 0.0, [], limits, [], 0))
    return cards


def _card(report: QueueReport) -> QueueCard:
    queue = report.queue
    whole: Mapping[str, int] = report.deserved or queue.capability
    return QueueCard(
        name=queue.name,
        open=queue.open,
        weight=queue.weight,
        parent=queue.parent,
        share=report.share,
        amounts=[each for each in amounts(report.used, whole) if each.resource in _SHOWN or each.used != "0"],
        limits=in_words(queue.capability),
        line=[_waiting(one) for one in report.line[:MOST_IN_LINE]],
        length=len(report.line),
    )


_SHOWN = ("cpu", "memory", "nvidia.com/gpu")


def _waiting(one: InLine) -> Waiting:
    unit = one.unit
    labels = unit.pods[0].labels if unit.pods else {}
    return Waiting(
        position=one.position,
        namespace=unit.key.namespace,
        name=unit.key.name,
        job=str(labels.get(JOB_LABEL) or ""),
        pods=len(unit.pods),
        needs=in_words(unit.requests()),
        priority=unit.priority,
        since=unit.created,
        why=one.why.message if one.why else "",
    )


PAGE = DashboardPage("queues", "/queues", load, key="q")
