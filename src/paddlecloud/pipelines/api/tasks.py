"""`run_details.task_details` of v2beta1: the nodes of a workflow as tasks. Pure."""

from __future__ import annotations

from itertools import islice

from paddlecloud.kube.resource import Object
from paddlecloud.pipelines.api.wire import kept
from paddlecloud.pipelines.runs import states
from paddlecloud.pipelines.runs.nodes import nodes_of

MAX_TASKS = 2000
"""Of one answer: kfp's clients read them all at once."""


def details(workflow: Object, run_id: str) -> list[Object]:
    """At most `MAX_TASKS`. Where there are more, one entry at the end says so: kfp's clients show what is in the list,
    and drop fields beside it that they do not know."""
    nodes = nodes_of(workflow)
    parents = {child: key for key, node in nodes.items() for child in node.get("children") or ()}
    found = [_detail(key, nodes[key], run_id, parents.get(key, "")) for key in islice(nodes, MAX_TASKS)]
    if len(nodes) > MAX_TASKS:
        found.append(_left_out(workflow["metadata"]["name"], run_id, len(nodes) - MAX_TASKS))
    return found


def _left_out(workflow: str, run_id: str, count: int) -> Object:
    """It has no state and no times, so that nobody takes it for a step."""
    return {
        "run_id": run_id,
        "task_id": "left-out",
        "display_name": f"{count:,} more tasks are not listed here; `pdc pipeline show {workflow} -o json` has all",
    }


def _detail(key: str, node: Object, run_id: str, parent: str) -> Object:
    phase = str(node.get("phase") or "")
    failed = phase in ("Failed", "Error")
    return kept(
        run_id=run_id,
        task_id=key,
        display_name=str(node.get("displayName") or node.get("name") or key),
        create_time=node.get("startedAt") or "",
        start_time=node.get("startedAt") or "",
        end_time=node.get("finishedAt") or "",
        state=states.of_phase(phase).v2,
        error={"code": 13, "message": str(node.get("message") or "the step failed")} if failed else None,
        parent_task_id=parent,
        child_tasks=[{"task_id": child} for child in node.get("children") or ()],
        state_history=[
            {"update_time": at, "state": state}
            for at, state in (
                (node.get("startedAt"), "RUNNING"),
                (node.get("finishedAt"), states.of_phase(phase).v2),
            )
            if at
        ],
    )
