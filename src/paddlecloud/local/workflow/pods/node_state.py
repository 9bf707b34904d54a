"""What the state of a pod says of its node: phase, message, outputs. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paddlecloud.kube.pods import CONTAINER_UNKNOWN, NODE_SHUTDOWN
from paddlecloud.kube.resource import Object
from paddlecloud.local.kubelet.pod.pod_state import SHUTDOWN_REASON
from paddlecloud.local.workflow.decision.outputs import cannot_start, lacks_outputs, main_state, of_pod, orders_of
from paddlecloud.local.workflow.executor import main as executor
from paddlecloud.local.workflow.executor.orders import BROKEN
from paddlecloud.local.workflow.nodes import ERROR, FAILED, PENDING, RUNNING, SUCCEEDED
from paddlecloud.local.workflow.pods.containers import INIT, MAIN

_ON_THE_WAY = ("ContainerCreating", "PodInitializing")


def observe(pod: Object, report: Mapping[str, Any] | None = None) -> tuple[str, str, dict[str, Any]]:
    """The phase of a node, a message, and further fields, from its pod. `report` is what was collected of its outputs,
    where the termination message is not all of it."""
    status = pod.get("status") or {}
    phase = status.get("phase", PENDING)
    more: dict[str, Any] = {}
    if host := (pod.get("spec") or {}).get("nodeName"):
        more["hostNodeName"] = host
    if phase == "Running" and status.get("podIP"):
        more["podIP"] = status["podIP"]
    if phase in ("Succeeded", "Failed"):
        more["outputs"] = of_pod(pod, report)
        more["progress"] = "1/1" if phase == "Succeeded" else "0/1"
        if finished := (main_state(pod).get("terminated") or {}).get("finishedAt"):
            more["finishedAt"] = finished
    if phase == "Pending":
        return PENDING, _waiting(status), more
    if phase == "Running":
        if is_daemon(pod) and _is_ready(status):
            more["daemoned"] = True
        return RUNNING, "", more
    if phase == "Succeeded":
        if report and report.get("error"):
            return ERROR, str(report["error"]), more
        return SUCCEEDED, "", more
    return (*_failure(pod), more)


def is_daemon(pod: Object) -> bool:
    return bool(orders_of(pod).get("daemon"))


def _is_ready(status: Object) -> bool:
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in status.get("conditions") or ())


def _waiting(status: Object) -> str:
    for container in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") in _ON_THE_WAY:
            if waiting.get("message"):
                return f"{waiting['reason']}: {_without_progress(str(waiting['message']))}"
        elif waiting.get("reason"):
            return f"{waiting['reason']}: {waiting['message']}" if waiting.get("message") else str(waiting["reason"])
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "Unschedulable":
            return f"Unschedulable: {condition.get('message', '')}"
    return ""


def _without_progress(message: str) -> str:
    """`image "a": installing b`, of `image "a": installing b: downloaded 3 MB, 5 s so far`: a status is not written for
    each megabyte."""
    image, colon, rest = message.partition('": ')
    return f"{image}{colon}{rest.partition(': ')[0]}" if colon else image


def _failure(pod: Object) -> tuple[str, str]:
    """As Argo's `inferFailedReason`: init containers come first, then the main container, then sidecars."""
    status = pod.get("status") or {}
    if status.get("message"):
        return FAILED, str(status["message"])
    inner = sorted(status.get("containerStatuses") or (), key=lambda each: bool(each["name"] != MAIN))
    for container in (*(status.get("initContainerStatuses") or ()), *inner):
        state = container.get("state") or {}
        if waiting := state.get("waiting"):
            reason = f"{waiting.get('reason', '')}: {waiting.get('message', '')}"
            return ERROR, f"Pod failed before {container['name']} container starts due to {reason}"
        ended = state.get("terminated") or {}
        if ended.get("exitCode"):
            is_error = container["name"] == INIT or (container["name"] == MAIN and lacks_outputs(pod))
            return ERROR if is_error else FAILED, _sentence(container["name"], ended)
    return FAILED, f"pod {pod['metadata']['name']} failed: {status.get('reason', 'no container failed')}"


def ended_with_platform(pod: Object) -> bool:
    """Whether a planned stop of the platform ended its program: the step is run again, as Jobs are. A program that had
    ended by itself, and an order that must not be given twice (`create`, a request), are not repeated."""
    status = pod.get("status") or {}
    if (status.get("phase"), status.get("reason")) != ("Failed", NODE_SHUTDOWN):
        return False
    orders = orders_of(pod)
    if orders.get("http") or (orders.get("resource") or {}).get("action") in ("create", "patch", "replace"):
        return False
    ended = main_state(pod).get("terminated") or {}
    return not ended or ended.get("reason") in (SHUTDOWN_REASON, CONTAINER_UNKNOWN)


def main_message(pod: Object) -> str:
    """Why the executor of the main container failed the step: its own message."""
    ended = main_state(pod).get("terminated") or {}
    return executor.failure_in(ended.get("message") or "") if ended.get("exitCode") else ""


def _sentence(name: str, ended: Object) -> str:
    """`main: Error (exit code 1)`, with what the program said of it.

    A program that cannot be started ends as under Argo's emissary, also where the kubelet starts it: a workflow sees
    one exit code for it.
    """
    if cannot_start(ended):
        return f"{name}: Error (exit code {BROKEN}): failed to find name in PATH: {ended.get('message') or ''}"
    text = f"{name}: {ended.get('reason', 'Error')} (exit code {ended['exitCode']})"
    said = executor.failure_in(ended.get("message") or "")
    return f"{text}: {said}" if said else text
