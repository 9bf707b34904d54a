"""What a workflow's phase is called by the two versions of the API, and by `pdc`.

kfp's clients wait until a run's state is one of succeeded, failed, skipped and error, in any case, and for nothing
else: a run that was stopped must end in one of these words or they wait for ever. Argo's phase of such a workflow is
Failed, and so is its state here; the reason is in its message.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from paddlecloud.kube.argo import OVER
from paddlecloud.kube.errors import Invalid
from paddlecloud.kube.resource import Object
from paddlecloud.pipelines import names
from paddlecloud.pipelines.runs.nodes import nodes_of


class State(NamedTuple):
    v1: str
    """`status` of v1beta1: Argo's word."""
    v2: str
    """`state` of v2beta1: RuntimeState."""


PENDING = State("Pending", "PENDING")
TERMINATING = State("Terminating", "CANCELING")
PAUSED = State("Running", "PAUSED")
_PHASES = {
    "": PENDING,
    "Pending": PENDING,
    "Running": State("Running", "RUNNING"),
    "Succeeded": State("Succeeded", "SUCCEEDED"),
    "Failed": State("Failed", "FAILED"),
    "Error": State("Error", "FAILED"),
    "Skipped": State("Skipped", "SKIPPED"),
    "Omitted": State("Omitted", "SKIPPED"),
    "Daemoned": State("Running", "RUNNING"),
}


def of_phase(phase: str) -> State:
    return _PHASES.get(phase) or State(phase, "RUNTIME_STATE_UNSPECIFIED")


def phase_of(workflow: Object) -> str:
    """From the status or, in lists of metadata alone, from Argo's label."""
    status = workflow.get("status") or {}
    labels = workflow["metadata"].get("labels") or {}
    return str(status.get("phase") or labels.get(names.PHASE) or "")


def of_workflow(workflow: Object) -> State:
    phase, spec = phase_of(workflow), workflow.get("spec") or {}
    if phase in OVER:
        return of_phase(phase)
    if spec.get("shutdown"):
        return TERMINATING
    if spec.get("suspend"):
        return PAUSED
    return of_phase(phase)


def is_over(workflow: Object) -> bool:
    return phase_of(workflow) in OVER


def failure(workflow: Object) -> str:
    """Why a run failed: Argo's message or, where that says only that some node failed, the first step's. Empty
    for a run that did not."""
    if phase_of(workflow) not in ("Failed", "Error"):
        return ""
    status = workflow.get("status") or {}
    message = str(status.get("message") or "")
    if message and not message.startswith("child '"):
        return message
    try:
        first = failed_step(workflow)
    except Invalid as error:  # one such run must not fail a list of runs
        return f"{message or 'the run failed'} ({error.message})"
    if first is None:
        return message or "the run failed"
    return f"{first.get('displayName') or first.get('name')}: {first['message']}"


def failed_step(workflow: Object) -> Object | None:
    """The node of the first step that failed with a message. Raises `Invalid` if the nodes cannot be read.

    An attempt that failed is none, where a later one of its step succeeded."""
    nodes = nodes_of(workflow)
    succeeded = [node for node in nodes.values() if node.get("type") == "Retry" and node.get("phase") == "Succeeded"]
    outlived = {child for node in succeeded for child in node.get("children") or ()}
    failed = [
        {**node, "id": key}
        for key, node in nodes.items()
        if node.get("phase") in ("Failed", "Error")
        and node.get("type") == "Pod"
        and node.get("message")
        and key not in outlived
    ]
    return min(failed, key=lambda node: str(node.get("finishedAt") or ""), default=None)


_LACKS_A_RIGHT = re.compile(r'User "system:serviceaccount:[^:"]+:([^:"]+)" cannot ')


def account_without_right(failure: str) -> str:
    """The ServiceAccount that may not do what a step does, such as CreatePVC: in the words of Kubernetes."""
    found = _LACKS_A_RIGHT.search(failure)
    return found[1] if found else ""
