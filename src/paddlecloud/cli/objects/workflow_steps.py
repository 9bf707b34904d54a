"""Steps of a workflow in the words of the command line: which failed first, which is suspended, which waits. Pure.

Verdicts on workflows alone import it: it reads compressed nodes, which nothing else needs.
"""

from __future__ import annotations

from typing import NamedTuple

from paddlecloud.kube.argo import NODE_ID, PENDING, RUNNING
from paddlecloud.kube.errors import Invalid
from paddlecloud.kube.resource import Object
from paddlecloud.pipelines.runs.nodes import nodes_of
from paddlecloud.pipelines.runs.states import failure as failure


class Waiting(NamedTuple):
    step: str
    message: str


def steps_of(workflow: Object) -> dict[str, Object]:
    """Its nodes by their ids; none where they cannot be read."""
    try:
        return nodes_of(workflow)
    except Invalid:
        return {}


def suspended(steps: dict[str, Object]) -> str | None:
    """The first step that waits to be resumed."""
    found = (each for each in steps.values() if (each.get("type"), each.get("phase")) == ("Suspend", RUNNING))
    return next((_name(each) for each in found), None)


def waiting(steps: dict[str, Object]) -> Waiting | None:
    """The first step that has not begun and whose controller says why, such as a lock that another one has."""
    found = (each for each in steps.values() if each.get("phase") == PENDING and each.get("message"))
    return next((Waiting(_name(each), str(each["message"])) for each in found), None)


def step_of(pod: Object, steps: dict[str, Object]) -> str:
    meta = pod["metadata"]
    node = steps.get(str((meta.get("annotations") or {}).get(NODE_ID)))
    return str(meta["name"]) if node is None else _name(node)


def _name(node: Object) -> str:
    return str(node.get("displayName") or node.get("name") or "")
