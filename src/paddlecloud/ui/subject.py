"""What pages of one object have in common: its verdict, its events, its actions, and the same as commands."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any, NamedTuple

from paddlecloud.cli.objects import events as event_order
from paddlecloud.cli.objects.events import planned_ends_of
from paddlecloud.cli.render import events as event_rows
from paddlecloud.kube.resource import EVENTS, Object
from paddlecloud.ui import action_table, actions, verdicts
from paddlecloud.ui.asked import Asked, home_of
from paddlecloud.ui.feed import SUBJECT, in_namespace

MOST_EVENTS = 60
ASKED_PODS = 50
"""Pods whose events are shown beside those of the object."""


class Subject(NamedTuple):
    section: str
    obj: Object
    explanation: verdicts.Explanation
    complete: bool
    """Whether the explanation is all that `pdc explain` says; else the rest follows."""
    events: list[list[object]]
    actions: list[actions.Action]
    commands: list[str]

    @property
    def home(self) -> str:
        """The section of the list that it is in."""
        return home_of(self.section)

    @property
    def meta(self) -> Any:
        return self.obj["metadata"]

    @property
    def spec(self) -> Any:
        return self.obj.get("spec") or {}

    @property
    def status(self) -> Any:
        return self.obj.get("status") or {}

    @property
    def place(self) -> tuple[str, str, str]:
        """The path of its page."""
        return self.section, str(self.meta["namespace"]), str(self.meta["name"])


async def subject(
    asked: Asked, section: str, obj: Object, pods: Sequence[Object], commands: Sequence[Sequence[str]]
) -> Subject:
    """`commands` are those of `pdc` that show the same, without the namespace."""
    happened = await events_of(asked, (obj, *pods[:ASKED_PODS]))
    if asked.quick:
        explanation = verdicts.quick(obj, pods, happened, now=asked.now, language=asked.language)
    else:
        explanation = await asked.examiner.explain(obj, [*pods, *happened], asked.language)
    return Subject(
        section=section,
        obj=obj,
        explanation=explanation,
        complete=not asked.quick,
        events=event_rows.rows(happened[-MOST_EVENTS:], asked.now, planned_ends_of(pods))[::-1],
        actions=action_table.offered(section, obj),
        commands=[shlex.join(["pdc", *words, "-n", str(obj["metadata"]["namespace"])]) for words in commands],
    )


async def events_of(asked: Asked, objects: Sequence[Object]) -> list[Object]:
    """Oldest first."""
    happened: list[Object] = []
    for obj in objects:
        uid = in_namespace(obj, str(obj["metadata"].get("uid")))
        happened += await asked.reader.by_index(EVENTS, SUBJECT, uid)
    return sorted(happened, key=event_order.order)
