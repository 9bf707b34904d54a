"""Nodes follow their pods: phases, messages, outputs, daemons and containers of sets. Pure."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

from paddlecloud.kube.clock import rfc3339
from paddlecloud.kube.resource import PODS, Object
from paddlecloud.local.workflow.decision.deletion import delete
from paddlecloud.local.workflow.decision.operation import DEEPEST, Operation
from paddlecloud.local.workflow.nodes import (
    ENDED_PHASES,
    ERROR,
    FAILED,
    PENDING,
    RUNNING,
    SUCCEEDED,
    Node,
    has_pod,
    is_over,
)
from paddlecloud.local.workflow.pods import container_set, node_state

_ATTEMPT = re.compile(r"\(\d+\)$")


def observe_pods(operation: Operation) -> None:
    has_daemon = functools.cache(lambda: any(map(node_state.is_daemon, operation.observed.pods.values())))
    for node in operation.nodes:
        if not has_pod(node) or (is_over(node) and not node.get("daemoned")):
            continue
        found = operation.observed.pods.get(node["id"])
        if found is not None and _is_run_again(operation, node, found, has_daemon):
            _run_again(operation, node, found)
        elif found is not None:
            _observe_pod(operation, node, found)
            container_set.observe(operation.nodes, node, found)
        elif node["phase"] == RUNNING or node.get("hostNodeName"):
            node.pop("daemoned", None)
            operation.nodes.mark(node, ERROR, "pod deleted")
        if is_over(node) and not node.get("daemoned"):
            container_set.end(operation.nodes, node)


def _is_run_again(operation: Operation, node: Node, pod: Object, has_daemon: Callable[[], bool]) -> bool:
    """Not beside a daemon, which ended as well: steps have its address, and another one would have a new address."""
    stopped = operation.stop and not _is_handler(operation, node)
    return not stopped and node_state.ended_with_platform(pod) and not has_daemon()


def _run_again(operation: Operation, node: Node, pod: Object) -> None:
    """First the node is stored as one that has not begun, then its pod is deleted, then the next pass creates it: after
    a crash in between, a pod that is gone is not taken for one that somebody deleted."""
    if node["phase"] == PENDING and not node.get("hostNodeName"):
        delete(operation.plan, PODS, pod)
        return
    for key in ("hostNodeName", "podIP", "outputs"):
        node.pop(key, None)
    node |= {"startedAt": rfc3339(operation.now), "finishedAt": None, "progress": "0/1"}
    operation.nodes.mark(node, PENDING, "runs again: the platform was stopped while it ran")
    container_set.begin_again(operation.nodes, node)
    operation.plan.requeue_after(0.0)


def _observe_pod(operation: Operation, node: Node, found: Object) -> None:
    phase, message, more = node_state.observe(found, operation.observed.reports.get(node["id"]))
    if node["type"] == "HTTP":
        (more.get("outputs") or {}).pop("exitCode", None)  # of a request that Argo's agent makes there is none
        message = node_state.main_message(found) or message
    finished = more.pop("finishedAt", None)
    node.update({key: value for key, value in more.items() if value})
    if phase in ENDED_PHASES:
        node.pop("daemoned", None)
        if finished:
            node["finishedAt"] = finished
    if phase in (PENDING, RUNNING) and not message:
        node.pop("message", None)
    operation.nodes.mark(node, phase, message)
    if phase in (PENDING, RUNNING) and operation.stop and not _is_handler(operation, node):
        delete(operation.plan, PODS, found)
        node.pop("daemoned", None)
        operation.nodes.mark(node, FAILED, operation.stop.of_node(node))


def end_unknown_pods(operation: Operation) -> None:
    """Of a workflow that was stopped or is over: pods of steps that the status does not have. A crash, or somebody who
    stopped the workflow at that moment, lost the status of the pass that created them."""
    for identity, pod in operation.observed.pods.items():
        node = operation.nodes.by_id.get(identity)
        if (node is None or not has_pod(node)) and (pod.get("status") or {}).get("phase", PENDING) in (
            PENDING,
            RUNNING,
        ):
            delete(operation.plan, PODS, pod)


def end_daemons(operation: Operation, boundary: Node | None = None) -> None:
    """As Argo's `killDaemonedChildren`: daemons end with the template in which they were begun, and have succeeded."""
    for node in operation.nodes:
        if not node.get("daemoned") or (boundary is not None and node.get("boundaryID") != boundary["id"]):
            continue
        if has_pod(node) and (found := operation.observed.pods.get(node["id"])) is not None:
            delete(operation.plan, PODS, found)
        node.pop("daemoned")
        operation.nodes.mark(node, SUCCEEDED)


def _is_handler(operation: Operation, node: Node) -> bool:
    """Exit handlers go on when a workflow is stopped; when it is terminated they end as well."""
    if operation.spec.get("shutdown") == "Terminate":
        return False
    outer: Node | None = node
    for _ in range(DEEPEST + 2):
        if outer is None:
            return False
        name = _ATTEMPT.sub("", outer["name"])
        found = operation.nodes.find(name) or outer
        if name.endswith(".onExit") and (found.get("nodeFlag") or {}).get("hooked"):
            return True
        outer = operation.nodes.by_id.get(outer.get("boundaryID", ""))
    return False
