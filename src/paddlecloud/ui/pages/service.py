"""One PaddleService: why it is as it is, who gets which share of its traffic, its roll-out, its revisions and pods."""

from __future__ import annotations

from typing import Any, NamedTuple

from paddlecloud.kube.pods import phase_of
from paddlecloud.kube.resource import KNATIVE_REVISIONS, PADDLESERVICES, PODS, Object
from paddlecloud.ui import service_rows, verdicts
from paddlecloud.ui.asked import Asked, DashboardPage, found
from paddlecloud.ui.feed import SERVICE_OF
from paddlecloud.ui.service_rows import RevisionRow, Share
from paddlecloud.ui.subject import Subject, subject

MOST_PODS = 100
MOST_REVISIONS = 20
KNATIVE = "Knative"


class PodRow(NamedTuple):
    name: str
    phase: str
    node: str
    revision: str
    restarts: int
    why: str


class Stage(NamedTuple):
    """A step of a roll-out."""

    percent: int
    state: str
    """done, now or later."""


class ServiceView(NamedTuple):
    subject: Subject
    shares: tuple[Share, ...]
    stages: list[Stage]
    rollout: Any
    revisions: list[RevisionRow]
    pods: list[PodRow]
    more_pods: int

    @property
    def phase(self) -> str:
        return verdicts.phase_of(self.subject.explanation.verdict)


async def load(asked: Asked) -> ServiceView:
    namespace, name = asked.params["namespace"], asked.params["name"]
    service = found(await asked.reader.get(PADDLESERVICES, namespace, name))
    pods = await asked.reader.by_index(PODS, SERVICE_OF, f"{namespace}/{name}")
    status = service.get("status") or {}
    shares = service_rows.shares(service)
    revisions: list[Object] = []
    if status.get("engine") == KNATIVE:
        revisions = await asked.reader.by_index(KNATIVE_REVISIONS, SERVICE_OF, f"{namespace}/{name}")
    rows = sorted((service_rows.revision_of(one, shares) for one in revisions), key=_order, reverse=True)
    shown = sorted(pods, key=lambda pod: str(pod["metadata"]["name"]))[:MOST_PODS]
    commands = (["explain", f"pds/{name}"], ["get", f"pds/{name}", "-o", "yaml"], ["logs", f"pds/{name}", "-f"])
    return ServiceView(
        subject=await subject(asked, "services", service, pods, commands),
        shares=shares,
        stages=stages(service),
        rollout=status.get("rollout") or {},
        revisions=rows[:MOST_REVISIONS],
        pods=[_pod(pod, asked) for pod in shown],
        more_pods=max(0, len(pods) - MOST_PODS),
    )


def stages(service: Object) -> list[Stage]:
    """Of the roll-out that goes on; none where none does."""
    state = (service.get("status") or {}).get("rollout") or {}
    steps = ((service.get("spec") or {}).get("rollout") or {}).get("steps") or ()
    done = state.get("step")
    if not state or not isinstance(done, int):
        return []
    return [
        Stage(int(percent), "done" if index < done - 1 else "now" if index == done - 1 else "later")
        for index, percent in enumerate([*steps, *([] if steps and steps[-1] == 100 else [100])])
    ]


def _order(row: RevisionRow) -> tuple[int, str, str]:
    """Those with traffic first, then the newest."""
    return row.percent, row.created, row.name


def _pod(pod: Object, asked: Asked) -> PodRow:
    labels = pod["metadata"].get("labels") or {}
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return PodRow(
        name=str(pod["metadata"]["name"]),
        phase=phase_of(pod),
        node=str((pod.get("spec") or {}).get("nodeName") or ""),
        revision=str(labels.get("serving.knative.dev/revision") or ""),
        restarts=sum(int(entry.get("restartCount") or 0) for entry in statuses),
        why=verdicts.quick(pod, (), (), now=asked.now, language=asked.language).verdict.text,
    )


PAGE = DashboardPage("service", "/services/{namespace}/{name}", load)
