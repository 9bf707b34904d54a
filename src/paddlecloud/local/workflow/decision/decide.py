"""What is to be done for a workflow: `decide(workflow, observed, now)` is pure and says everything.

All that was done is in `.status.nodes`, and pods have derived names: after a crash the next pass goes on where the last
one was, and no step begins twice.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from paddlecloud.api.argo_nodes import PACKED_FROM, BadPacking, is_packed, packed, unpacked
from paddlecloud.kube.clock import rfc3339
from paddlecloud.kube.plan import Patch, Plan, PlannedEvent, merge_diff
from paddlecloud.kube.resource import PODS, Object
from paddlecloud.local.workflow.artifacts import repositories
from paddlecloud.local.workflow.decision import (
    claims,
    cleanup,
    disruption_budgets,
    global_outputs,
    hooks,
    memoization,
    metrics,
)
from paddlecloud.local.workflow.decision.deletion import delete
from paddlecloud.local.workflow.decision.locks import SYNCHRONIZATION
from paddlecloud.local.workflow.decision.metrics import WorkflowPlan
from paddlecloud.local.workflow.decision.operation import LOCK_WAIT, Operation
from paddlecloud.local.workflow.decision.place import Place
from paddlecloud.local.workflow.decision.pod_observation import end_daemons, end_unknown_pods, observe_pods
from paddlecloud.local.workflow.execution_spec import STORED_SPEC, execution_spec
from paddlecloud.local.workflow.expressions.budget import TooMuchWork, Work, one_pass
from paddlecloud.local.workflow.limits import LONGEST_MESSAGE, MOST_STORED, TooLarge, fits
from paddlecloud.local.workflow.names import COMPLETED, PHASE, POD_NAMES, WORKFLOWS
from paddlecloud.local.workflow.nodes import (
    ENDED_PHASES,
    ERROR,
    FAILED,
    OMITTED,
    PENDING,
    RUNNING,
    SKIPPED,
    SUCCEEDED,
    Nodes,
    has_failed,
    has_pod,
    is_ended,
    is_over,
    readable,
)
from paddlecloud.local.workflow.observed import Observed
from paddlecloud.local.workflow.templates import STORED_TEMPLATES, TemplateError
from paddlecloud.local.workflow.unreadable import UNREADABLE
from paddlecloud.local.workflow.variables import substitute
from paddlecloud.local.workflow.workflow_variables import workflow_metadata, workflow_variables

_PHASES = {SKIPPED: SUCCEEDED, OMITTED: SUCCEEDED}


def decide(workflow: Object, observed: Observed, now: float) -> Plan:
    if workflow["metadata"].get("deletionTimestamp"):
        return Plan()
    if observed.unreadable is not None:
        return _ended_as_unreadable(workflow, observed, now, observed.unreadable)
    try:
        with one_pass() as work:
            return _decided(unpacked(workflow), workflow, observed, now, work)
    except (TooMuchWork, TemplateError) as why:
        return _given_up(workflow, observed, now, str(why))
    except UNREADABLE as why:
        return _ended_as_unreadable(workflow, observed, now, why)


def _ended_as_unreadable(workflow: Object, observed: Observed, now: float, why: Exception) -> Plan:
    message = f"the workflow or its status cannot be read: {type(why).__name__}: {why}"
    plan = _given_up(workflow, observed, now, message)
    plan.unreadable = why
    return plan


def _given_up(workflow: Object, observed: Observed, now: float, message: str) -> WorkflowPlan:
    """What was done stays as it was stored, nothing new begins, and pods that are left end."""
    plan, meta, before = WorkflowPlan(), workflow["metadata"], workflow.get("status")
    if is_ended(workflow):
        return plan
    message = message[:LONGEST_MESSAGE]
    status: Object = {"phase": ERROR, "message": message, "finishedAt": rfc3339(now)}
    if isinstance(before, dict) and SYNCHRONIZATION in before:
        status[SYNCHRONIZATION] = None
    if not (isinstance(before, dict) and before.get("startedAt")):
        status["startedAt"] = rfc3339(now)
    for found in observed.pods.values():
        phase = (found.get("status") or {}).get("phase", PENDING)
        if phase in (PENDING, RUNNING):
            delete(plan, PODS, found)
    metadata = {"labels": {COMPLETED: "true", PHASE: ERROR}, "resourceVersion": meta["resourceVersion"]}
    body = {"status": status, "metadata": metadata}
    plan.patch.append(Patch(WORKFLOWS, meta["name"], meta["namespace"], body, seen=meta["resourceVersion"]))
    plan.events.append(PlannedEvent("WorkflowFailed", message, type="Warning"))
    return plan


def _decided(workflow: Object, as_stored: Object, observed: Observed, now: float, work: Work) -> Plan:
    # A copy, ten times as fast as deepcopy.
    status: Object = msgspec.json.decode(msgspec.json.encode(workflow.get("status") or {}))
    meta = workflow["metadata"]
    spec = execution_spec(workflow, observed.specs)
    if status.get("phase") in ENDED_PHASES:
        return _after(workflow, spec, observed, now, marks=not is_packed(as_stored))
    nodes = Nodes(meta["name"], readable(status.get("nodes")), now)
    operation = Operation(workflow, spec, observed, nodes, now, work)
    began = not status.get("phase")
    status["startedAt"] = status.get("startedAt") or rfc3339(now)  # clients of Argo create it with null
    status["phase"] = RUNNING
    if (workflow.get("spec") or {}).get("workflowTemplateRef"):
        status[STORED_SPEC] = dict(spec)
    operation.repository = repositories.resolved(spec, status, meta["namespace"], observed.cache)
    status[repositories.STATUS] = operation.repository
    operation.variables = workflow_variables(workflow, spec, status, observed.config_map, now)
    disruption_budgets.create(operation.plan, workflow, spec, observed.budgets)
    claims.create(operation.plan, workflow, spec, status, observed)
    observe_pods(operation)
    global_outputs.publish(operation, status)
    status.pop("message", None)
    outcome = _walk(operation, status)
    if outcome is not None:
        end_daemons(operation)
    if outcome is not None or operation.stop:
        end_unknown_pods(operation)
    global_outputs.publish(operation, status)
    if outcome is not None:
        status["phase"], message = outcome
        status["finishedAt"] = rfc3339(now)
        if message:
            status["message"] = message
    _meter(operation, status)
    _write_locks(operation, status)
    stored = readable((workflow.get("status") or {}).get("nodes"))
    memoization.save(operation.plan, meta["namespace"], nodes, stored, observed.cache, now)
    status["conditions"] = _conditions(status, nodes)
    pods = [node for node in nodes if has_pod(node)]
    status["progress"] = f"{sum(node['phase'] == SUCCEEDED for node in pods)}/{len(pods)}"
    status["nodes"] = nodes.by_id
    if operation.stored:
        status[STORED_TEMPLATES] = operation.stored
    status = _fitting(workflow, status)
    cleanup.delete_pods(operation.plan, spec, RUNNING, stored, observed.pods, now)
    _write(operation, as_stored, status, began)
    _report(operation, status, began)
    return operation.plan


def _meter(operation: Operation, status: Object) -> None:
    metering, variables = operation.metering, {**operation.variables, "workflow.status": status["phase"]}
    metering.of_nodes(operation.nodes.by_id, variables)
    is_done = status["phase"] in ENDED_PHASES
    metering.of_workflow(operation.spec, operation.nodes.find(operation.name), variables, is_over=is_done)
    operation.plan.samples += metering.samples
    if metering.errors:
        others = [each for each in status.get("conditions") or () if each.get("type") != metrics.CONDITION]
        message = "; ".join(metering.errors)[:LONGEST_MESSAGE]
        status["conditions"] = [*others, {"type": metrics.CONDITION, "status": "True", "message": message}]


def _fitting(workflow: Object, status: Object) -> Object:
    """As it is, or with packed nodes."""
    if fits(workflow, status, PACKED_FROM):
        return status
    try:
        status = packed(status)
    except BadPacking as why:
        raise TooLarge(str(why)) from None
    if not fits(workflow, status, MOST_STORED):
        raise TooLarge(f"the workflow with the status of its nodes is larger than {MOST_STORED:,} bytes")
    return status


def _write_locks(operation: Operation, status: Object) -> None:
    held = None if status["phase"] in ENDED_PHASES else operation.holding.status()
    if held is not None:
        status[SYNCHRONIZATION] = held
    else:
        status.pop(SYNCHRONIZATION, None)


def _conditions(status: Object, nodes: Nodes) -> list[Object]:
    """`PodRunning` and `Completed`, as Argo's clients show them; other ones are left as they are."""
    running = any(has_pod(node) and node["phase"] == RUNNING for node in nodes)
    own = {"PodRunning": str(running)} | ({"Completed": "True"} if status["phase"] in ENDED_PHASES else {})
    before = [each for each in status.get("conditions") or () if isinstance(each, dict) and each.get("type") not in own]
    return [*before, *({"type": kind, "status": value} for kind, value in own.items())]


def _after(workflow: Object, spec: Mapping[str, Any], observed: Observed, now: float, *, marks: bool) -> Plan:
    """A workflow that is over is not carried out again: only what is left of it goes, in its time. Nodes that are
    packed get no marks of deleted artifacts."""
    plan, status = Plan(), workflow["status"]
    cleanup.delete_pods(plan, spec, status["phase"], readable(status.get("nodes")), observed.pods, now)
    claims.delete(plan, spec, status["phase"], observed.claims)
    disruption_budgets.delete(plan, spec, observed.budgets)
    cleanup.delete_workflow(plan, workflow, spec, now)
    if marks:
        cleanup.mark_deleted_artifacts(plan, workflow)
    return plan


def _walk(operation: Operation, status: Object) -> tuple[str, str] | None:
    """Carry out the entrypoint, then the exit handler. Gives the workflow's last phase once it is over."""
    spec = operation.spec
    if spec.get("suspend"):
        return None
    if (locks := spec.get("synchronization")) and not operation.stop:
        try:
            own, waits_for, message = operation.holding.take(substitute(locks, operation.variables, lenient=True))
        except TemplateError as why:
            return FAILED, f"Failed to acquire the synchronization lock. {why}"
        if not own:
            status["phase"] = PENDING
            if waits_for:
                status["message"] = message
            operation.plan.requeue_after(LOCK_WAIT if waits_for else 0.0)
            return None
    library = operation.library()
    entry = {"template": spec.get("entrypoint", "")}
    arguments = spec.get("arguments") or {}
    node = operation.execute(operation.name, entry, arguments, Place(library))
    if error := operation.errors.get(operation.name):
        return ERROR, f"error in entry template execution: {error}"
    if node is None:
        return None
    phase = str(_PHASES.get(node["phase"], node["phase"]))
    if hooks.has_hooks(spec):
        operation.variables |= {"workflow.status": phase, "workflow.failures": _failures(operation)}
    if not hooks.workflow_hooks_are_done(operation, node, Place(library)) or not is_over(node):
        return None
    message = (operation.stop.workflow if operation.stop else "") or node.get("message", "")
    final = hooks.exit_hook(spec, arguments)
    place, name = Place(library, on_exit=True), f"{operation.name}.onExit"
    terminated = spec.get("shutdown") == "Terminate"
    if final is None or (terminated and operation.nodes.find(name) is None):
        return phase, message if phase != SUCCEEDED else ""
    handler = operation.execute(name, final, final["arguments"], place, nodeFlag=dict(hooks.HOOKED))
    if error := operation.errors.get(name):
        return ERROR, f"error in exit template execution : {error}"
    if handler is None or not is_over(handler):
        return None
    if phase == SUCCEEDED and has_failed(handler) and not terminated:
        return handler["phase"], handler.get("message", "")
    return phase, message if phase != SUCCEEDED else ""


def _failures(operation: Operation) -> str:
    failed = [
        {
            "displayName": node["displayName"],
            "message": node.get("message", ""),
            "templateName": node.get("templateName", ""),
            "phase": node["phase"],
            "finishedAt": node.get("finishedAt"),
        }
        for node in operation.nodes
        if has_failed(node)
    ]
    return json.dumps(json.dumps(failed))


# What is written beside the status


def _write(operation: Operation, as_stored: Object, status: Object, began: bool) -> None:
    """Status and labels in one patch: for Argo's clients a status is no subresource."""
    meta = as_stored["metadata"]
    metadata: Object = {}
    wanted = {COMPLETED: "true" if status["phase"] in ENDED_PHASES else "false", PHASE: status["phase"]}
    if changed := merge_diff(meta.get("labels") or {}, {**(meta.get("labels") or {}), **wanted}):
        metadata["labels"] = changed
    if began:
        given = workflow_metadata(operation.spec, operation.variables)
        metadata["labels"] = {**given["labels"], **metadata.get("labels", {})}
        metadata["annotations"] = {**given["annotations"], POD_NAMES: "v2"}
    changes = merge_diff(as_stored.get("status") or {}, status)
    if not metadata and _may_wait(changes):
        return
    body: Object = {"status": changes, "metadata": {**metadata, "resourceVersion": meta["resourceVersion"]}}
    seen = meta["resourceVersion"]
    operation.plan.patch.append(Patch(WORKFLOWS, meta["name"], meta["namespace"], body, seen=seen))


def _may_wait(changes: Mapping[str, Any]) -> bool:
    """Nothing, or only where pods are that have not started: the next write, when one starts, has it too. A write for
    it alone would be a third of all writes of a chain. Argo, which looks at a workflow once in seconds, has few."""
    nodes = changes.get("nodes", {})
    return not changes.keys() - {"nodes"} and all(each and each.keys() <= {"hostNodeName"} for each in nodes.values())


def _report(operation: Operation, status: Object, began: bool) -> None:
    if began:
        operation.plan.events.append(PlannedEvent("WorkflowRunning", "Workflow Running"))
    if status["phase"] == SUCCEEDED:
        operation.plan.events.append(PlannedEvent("WorkflowSucceeded", "Workflow completed"))
    elif status["phase"] in (FAILED, ERROR):
        text = status.get("message", "") or status["phase"]
        operation.plan.events.append(PlannedEvent("WorkflowFailed", text, type="Warning"))
