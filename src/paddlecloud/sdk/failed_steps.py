"""Why a run of a pipeline failed: what Argo reports of the step that failed first, and the end of what it printed.

Argo reports the exit code alone; the exception is in the step's log. Coroutines here await nothing but the client, so
the command line drives them without an event loop.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import NamedTuple

from paddlecloud.api.outputs import verdict_of
from paddlecloud.kube.client import Client
from paddlecloud.kube.errors import ApiError
from paddlecloud.kube.resource import Object
from paddlecloud.pipelines import names
from paddlecloud.pipelines.runs import states
from paddlecloud.sdk.logs import LogOptions, merged
from paddlecloud.sdk.members import Member, lives_of

LAST_LINES = 10


class Failure(NamedTuple):
    why: str
    """One sentence; empty for a run that did not fail."""
    step: str = ""
    """The step that failed first, as `pdc pipeline logs RUN STEP` takes it; empty where it has no log."""
    output: tuple[str, ...] = ()
    """The last lines that it printed."""


async def failure_of(client: Client, workflow: Object) -> Failure:
    why = states.failure(workflow)
    if not why:
        return Failure("")
    try:
        node = states.failed_step(workflow)
        if node is None:
            return Failure(why)
        found = [one for one in await lives_of(client, workflow) if _node(one) == node["id"] and has_log(one)]
        async with aclosing(merged(client, found[-1:], LogOptions(tail=LAST_LINES))) as lines:
            output = tuple([line.text async for line in lines])
    except ApiError:
        return Failure(why)  # its log is gone or may not be read: Argo's message is all there is
    said = verdict_of("\n".join(output))
    step = found[-1].tag if found else ""
    return Failure(f"{why}: {said}" if said and said not in why else why, step, output)


def has_log(one: Member) -> bool:
    """Whether its program began. The container of a pod whose init container failed waits for ever."""
    known = bool((one.pod.get("status") or {}).get("containerStatuses"))
    return one.started() if known or not one.kept_in else True


def _node(one: Member) -> str:
    return str((one.pod["metadata"].get("annotations") or {}).get(names.NODE_ID) or "")
