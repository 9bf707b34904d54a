"""The panes of a page of logs: one for each rank of a job, or each step of a run of a pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from paddlecloud.kube.errors import ApiError
from paddlecloud.kube.resource import Object
from paddlecloud.sdk.logs import LogOptions, merged
from paddlecloud.sdk.members import Member, in_order, lives_of, member
from paddlecloud.ui.asked import Asked
from paddlecloud.ui.logs import MOST_RANKS, choose, shortened

LINES = 100
"""Of each pane, for a browser without scripts."""


class Pane(NamedTuple):
    tag: str
    lines: list[str]


class LogPanes(NamedTuple):
    section: str
    obj: Object
    tags: list[str]
    """All that have, or had, a pod."""
    shown: list[str]
    panes: list[Pane]
    """With text only where no script will bring it."""
    problem: str

    @property
    def namespace(self) -> str:
        return str(self.obj["metadata"]["namespace"])

    @property
    def name(self) -> str:
        return str(self.obj["metadata"]["name"])

    @property
    def chosen(self) -> str:
        """For addresses and forms; empty where all are shown."""
        return ",".join(self.shown) if self.shown != self.tags else ""


async def of(asked: Asked, section: str, obj: Object, pods: Sequence[Object]) -> LogPanes:
    """Those that the address names, else the first ones. The pod of one that is named may be gone: its log may not."""
    tags = list(dict.fromkeys(one.tag for one in in_order(map(member, pods))))
    named = [*dict.fromkeys(filter(None, asked.query.get("ranks", "").split(",")))]
    shown = (named or tags)[:MOST_RANKS]
    panes, problem = [Pane(tag, []) for tag in shown], ""
    if "full" in asked.query:
        try:
            panes = await _read(asked, obj, shown)
        except ApiError as error:
            problem = error.message
    return LogPanes(section, obj, tags, shown, panes, problem)


async def _read(asked: Asked, obj: Object, tags: list[str]) -> list[Pane]:
    client = asked.examiner.client
    lives: list[Member] = choose([one for one in await lives_of(client, obj) if one.started()], frozenset(tags))
    lines: dict[str, list[str]] = {one.tag: [] for one in lives}
    async for line in merged(client, lives, LogOptions(tail=LINES)):
        lines[line.member.tag].append(shortened(line.text))
    return [Pane(tag, text) for tag, text in lines.items()]
