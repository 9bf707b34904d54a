"""What the ranks of a job print, side by side and while they print it."""

from __future__ import annotations

from typing import NamedTuple

from paddlecloud.kube.errors import ApiError
from paddlecloud.kube.resource import PADDLEJOBS, PODS, Object
from paddlecloud.sdk.logs import LogOptions, merged
from paddlecloud.sdk.members import Member, in_order, lives_of, member
from paddlecloud.ui.asked import Asked, DashboardPage, found
from paddlecloud.ui.feed import JOB
from paddlecloud.ui.logs import MOST_RANKS, choose, shortened

LINES = 100
"""Of each rank, for a browser without scripts."""


class Pane(NamedTuple):
    tag: str
    lines: list[str]


class JobLogsView(NamedTuple):
    job: Object
    tags: list[str]
    """All ranks that have, or had, a pod."""
    shown: list[str]
    panes: list[Pane]
    """With text only where no script will bring it."""
    problem: str

    @property
    def meta(self) -> Object:
        meta: Object = self.job["metadata"]
        return meta


async def load(asked: Asked) -> JobLogsView:
    namespace, name = asked.params["namespace"], asked.params["name"]
    job = found(await asked.reader.get(PADDLEJOBS, namespace, name))
    pods = await asked.reader.by_index(PODS, JOB, f"{namespace}/{name}")
    members = in_order(map(member, pods))
    tags = list(dict.fromkeys(one.tag for one in members))
    wanted = [tag for tag in asked.query.get("ranks", "").split(",") if tag in tags] or tags
    shown = wanted[:MOST_RANKS]
    panes, problem = [Pane(tag, []) for tag in shown], ""
    if "full" in asked.query:
        try:
            panes = await _read(asked, job, shown)
        except ApiError as error:
            problem = error.message
    return JobLogsView(job, tags, shown, panes, problem)


async def _read(asked: Asked, job: Object, tags: list[str]) -> list[Pane]:
    client = asked.examiner.client
    lives: list[Member] = choose([one for one in await lives_of(client, job) if one.started()], frozenset(tags))
    lines: dict[str, list[str]] = {one.tag: [] for one in lives}
    async for line in merged(client, lives, LogOptions(tail=LINES)):
        lines[line.member.tag].append(shortened(line.text))
    return [Pane(tag, text) for tag, text in lines.items()]


PAGE = DashboardPage("job_logs", "/jobs/{namespace}/{name}/logs", load)
