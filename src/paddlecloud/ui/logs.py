"""Logs of a job's ranks, or of a run's steps, as server-sent events: the follower of `pdc logs -f`, for a browser.

They are read with the credentials of the viewer. Lines are sent in bundles: a program that prints a thousand lines a
second is one event then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import NamedTuple

from paddlecloud.kube.argo import WORKFLOWS
from paddlecloud.kube.client import Client
from paddlecloud.kube.resource import PADDLEJOBS, Resource
from paddlecloud.sdk.following import Follower
from paddlecloud.sdk.logs import Line, LogOptions
from paddlecloud.sdk.loop_tasks import LoopTasks
from paddlecloud.sdk.members import Member
from paddlecloud.sdk.object_ref import ObjectRef
from paddlecloud.ui import live

TAIL = 200
"""Lines of each rank that are there before the page was opened."""
MOST_RANKS = 16
BUNDLE, BUNDLE_SECONDS = 500, 0.1
MOST_CHARACTERS = 4096
"""Of a line: nobody reads more on a page, and bundles that nobody takes are kept in memory."""


KINDS: Mapping[str, Resource] = {"jobs": PADDLEJOBS, "pipelines": WORKFLOWS}
"""By the section of the page."""


class Wanted(NamedTuple):
    resource: Resource
    namespace: str
    name: str
    tags: frozenset[str]
    """`worker-0`, or a step; empty for the first ones."""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Wanted:
        tags = frozenset(filter(None, query.get("ranks", "").split(",")[:MOST_RANKS]))
        resource = KINDS.get(query.get("section", ""), PADDLEJOBS)
        return cls(resource, query.get("namespace", ""), query.get("name", ""), tags)


def choose(members: Sequence[Member], tags: frozenset[str]) -> list[Member]:
    shown = sorted({one.tag for one in members}, key=[one.tag for one in members].index)[:MOST_RANKS]
    return [one for one in members if one.tag in (tags or shown)]


def shortened(text: str) -> str:
    """The beginning of a line, and how much was left out."""
    more = len(text) - MOST_CHARACTERS
    return text if more <= 0 else f"{text[:MOST_CHARACTERS]}… (+{more:,})"


async def events(client: Client, wanted: Wanted) -> live.Events:
    place = ObjectRef(wanted.resource, wanted.name, wanted.namespace)
    follower = Follower(client, place, lambda members: choose(members, wanted.tags), LogOptions(tail=TAIL), LoopTasks())
    bundle: list[dict[str, str]] = []
    loop = asyncio.get_running_loop()
    due = 0.0
    async with aclosing(follower.lines()) as items:
        step: asyncio.Task[object] | None = None
        try:
            while True:
                step = step or asyncio.ensure_future(items.__anext__())
                done, _ = await asyncio.wait((step,), timeout=max(0.0, due - loop.time()) if bundle else None)
                if done:
                    finished, step = step, None
                    try:
                        item = finished.result()
                    except StopAsyncIteration:
                        break
                    if isinstance(item, Line):
                        due = due if bundle else loop.time() + BUNDLE_SECONDS
                        bundle.append({"rank": item.member.tag, "time": item.time, "text": shortened(item.text)})
                if bundle and (len(bundle) >= BUNDLE or loop.time() >= due):
                    yield live.event("lines", bundle)
                    bundle = []
        finally:
            if step is not None:
                step.cancel()
                await asyncio.gather(step, return_exceptions=True)
    if bundle:
        yield live.event("lines", bundle)
    yield live.event("ended", {})
