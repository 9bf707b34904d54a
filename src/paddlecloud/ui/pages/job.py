"""One PaddleJob: why it is as it is, where its time went, its ranks, its progress, its failures and its events."""

from __future__ import annotations

import shlex
from typing import Any, NamedTuple

from paddlecloud.cli.objects.events import planned_ends_of
from paddlecloud.cli.objects.why import Verdict
from paddlecloud.cli.render import events as event_rows
from paddlecloud.kube.pods import phase_of
from paddlecloud.kube.resource import PADDLEJOBS, PODS, Object, is_owned_by
from paddlecloud.sdk.members import Member, in_order, member
from paddlecloud.ui import action_table, actions, job_curves, verdicts
from paddlecloud.ui.asked import Asked, DashboardPage, found
from paddlecloud.ui.curves import Plot, plots
from paddlecloud.ui.feed import JOB
from paddlecloud.ui.job_rows import JobRow, row_of
from paddlecloud.ui.subject import ASKED_PODS, MOST_EVENTS, events_of
from paddlecloud.ui.timeline import Stretch, timeline

MOST_RANKS = 200
MOST_PLOTS = 4
"""The other ones are on the page of its curves."""
STACKS, MOST_STACKS = "StackDump", 8
"""Reason of events."""


class Rank(NamedTuple):
    member: Member
    phase: str
    node: str
    restarts: int
    verdict: Verdict


class JobView(NamedTuple):
    job: Object
    row: JobRow
    explanation: verdicts.Explanation
    complete: bool
    """Whether the explanation is all that `pdc explain` says; else the rest follows."""
    timeline: list[Stretch]
    plots: list[Plot]
    stacks: list[str]
    """What ranks of a job that hung were doing."""
    ranks: list[Rank]
    more_ranks: int
    events: list[list[object]]
    actions: list[actions.Action]
    commands: list[str]

    @property
    def meta(self) -> Any:
        return self.job["metadata"]

    @property
    def place(self) -> tuple[str, str, str]:
        """The path of the page."""
        return "jobs", str(self.meta["namespace"]), str(self.meta["name"])

    @property
    def status(self) -> Any:
        return self.job.get("status") or {}


async def load(asked: Asked) -> JobView:
    namespace, name = asked.params["namespace"], asked.params["name"]
    job = found(await asked.reader.get(PADDLEJOBS, namespace, name))
    named = await asked.reader.by_index(PODS, JOB, f"{namespace}/{name}")
    pods = [pod for pod in named if is_owned_by(pod, job["metadata"]["uid"])]  # not of an earlier job of this name
    happened = await events_of(asked, (job, *pods[:ASKED_PODS]))
    if asked.quick:
        explanation = verdicts.quick(job, pods, happened, now=asked.now, language=asked.language)
    else:
        explanation = await asked.examiner.explain(job, [*pods, *happened], asked.language)
    members = in_order(map(member, pods))
    return JobView(
        job=job,
        row=row_of(job),
        explanation=explanation,
        complete=not asked.quick,
        timeline=timeline(job, pods, happened, asked.now),
        plots=plots((await job_curves.of(asked, job, follows=False)).sources(name))[:MOST_PLOTS],
        stacks=[str(one.get("message") or "") for one in happened if one.get("reason") == STACKS][-MOST_STACKS:],
        ranks=[_rank(one, asked) for one in members[:MOST_RANKS]],
        more_ranks=max(0, len(members) - MOST_RANKS),
        events=event_rows.rows(happened[-MOST_EVENTS:], asked.now, planned_ends_of(pods))[::-1],
        actions=action_table.offered("jobs", job),
        commands=commands(name, namespace),
    )


def commands(name: str, namespace: str) -> list[str]:
    """What a terminal shows of the same."""
    where = ["-n", namespace]
    words = (["explain", f"pdj/{name}"], ["logs", "-f", name], ["get", f"pdj/{name}", "-o", "yaml"], ["metrics", name])
    return [shlex.join(["pdc", *one, *where]) for one in words]


def _rank(one: Member, asked: Asked) -> Rank:
    statuses = (one.pod.get("status") or {}).get("containerStatuses") or ()
    return Rank(
        member=one,
        phase=phase_of(one.pod),
        node=str((one.pod.get("spec") or {}).get("nodeName") or ""),
        restarts=sum(int(entry.get("restartCount") or 0) for entry in statuses),
        verdict=verdicts.quick(one.pod, (), (), now=asked.now, language=asked.language).verdict,
    )


PAGE = DashboardPage("job", "/jobs/{namespace}/{name}", load)
