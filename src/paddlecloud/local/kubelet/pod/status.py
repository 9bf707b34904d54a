"""The status of a pod as Kubernetes defines it, from what was observed and planned. Pure.

Times in conditions move only when the condition does, so an unchanged pod gives an equal status and costs no write.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from paddlecloud.api.paddlejob.ending import ENDED_REASON
from paddlecloud.kube.clock import rfc3339
from paddlecloud.kube.conditions import condition_in, conditions_of, dated
from paddlecloud.kube.pods import CONTAINER_UNKNOWN, NODE_SHUTDOWN
from paddlecloud.kube.resource import Object
from paddlecloud.local.kubelet.pod.lifecycle import Plan
from paddlecloud.local.kubelet.pod.pod_state import (
    EXITED,
    RUNNING,
    ContainerRun,
    Observed,
    Waiting,
    all_reported,
    containers_of,
    ephemeral_containers_of,
    init_containers_of,
    is_sidecar,
)

CREATING = Waiting("ContainerCreating")
INITIALIZING = Waiting("PodInitializing")


def build_status(pod: Object, observed: Observed, plan: Plan, now: float) -> Object:
    phase = phase_of(pod, observed, plan)
    ended = phase in ("Succeeded", "Failed")
    init, before = init_containers_of(pod), all_reported(pod)
    initial = CREATING if plan.initialized or not init else INITIALIZING

    def entry(container: Object, *, ready: bool) -> Object:
        return _container_status(container, pod, observed, plan, initial=initial, before=before, ready=ready)

    status: Object = {
        "phase": phase,
        "conditions": _conditions(pod, observed, plan, ended=ended, now=now),
        "containerStatuses": [entry(c, ready=observed.is_ready(c["name"])) for c in containers_of(pod)],
    }
    if init:
        status["initContainerStatuses"] = [entry(c, ready=_is_init_ready(c, observed)) for c in init]
    if added := ephemeral_containers_of(pod):
        status["ephemeralContainerStatuses"] = [entry(c, ready=False) for c in added]
    if ended and all(_init_passed(container, observed) for container in init):
        for body in status["containerStatuses"]:
            if "waiting" in body["state"]:
                body["state"] = _not_run(before.get(body["name"], {}).get("state") or {})
    if observed.start_time is not None:
        status["startTime"] = rfc3339(observed.start_time)
    if observed.host_ip:
        status["hostIP"] = observed.host_ip
        status["hostIPs"] = [{"ip": observed.host_ip}]
    if observed.pod_ip:
        status["podIP"] = observed.pod_ip
        status["podIPs"] = [{"ip": observed.pod_ip}]
    if ended and plan.outcome is not None:
        words = {"reason": plan.outcome.reason, "message": plan.outcome.message}
        status.update({key: text for key, text in words.items() if text})
    return status


def phase_of(pod: Object, observed: Observed, plan: Plan) -> str:
    """Pending until a main container has run; a pod that ends keeps Running until the last process is gone.

    A controller that replaces a Failed pod must not find it still running.
    """
    if plan.outcome is not None and plan.done:
        return plan.outcome.phase
    names = [container["name"] for container in containers_of(pod)]
    ran = any(name in observed.runs and observed.runs[name].started is not None for name in names)
    failed_start = any(name in observed.runs and observed.runs[name].ended for name in names)
    return "Running" if ran or failed_start else "Pending"


# Conditions


def _conditions(pod: Object, observed: Observed, plan: Plan, *, ended: bool, now: float) -> list[Object]:
    unready = [c["name"] for c in _long_lived(pod) if not observed.is_ready(c["name"])]
    done = bool(plan.outcome and plan.outcome.phase == "Succeeded")
    incomplete = [c["name"] for c in init_containers_of(pod) if not plan.initialized and not _init_passed(c, observed)]
    initialized = (
        _true()
        if plan.initialized
        else _false("ContainersNotInitialized", f"containers with incomplete status: [{' '.join(incomplete)}]")
    )
    if ended:
        ready = _false("PodCompleted" if done else "PodFailed")
    elif unready:
        ready = _false("ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]")
    else:
        ready = _true()
    if done:
        initialized = _true("PodCompleted") if init_containers_of(pod) or ended else initialized
    before = conditions_of(pod)
    gates_closed = [
        gate["conditionType"]
        for gate in pod["spec"].get("readinessGates") or ()
        if (condition_in(before, gate["conditionType"]) or {}).get("status") != "True"
    ]
    pod_ready = ready
    if ready["status"] == "True" and gates_closed:
        pod_ready = _false(
            "ReadinessGatesNotReady",
            "".join(f'corresponding condition of pod readiness gate "{g}" does not exist. ' for g in gates_closed),
        )
    fresh = {
        "PodReadyToStartContainers": _true() if observed.pod_ip and not ended else _false(),
        "Initialized": initialized,
        "Ready": pod_ready,
        "ContainersReady": ready,
        "PodScheduled": _true(),
    }
    if ended and plan.outcome is not None and plan.outcome.reason == NODE_SHUTDOWN:
        fresh["DisruptionTarget"] = {**_true("TerminationByKubelet"), "message": plan.outcome.message}
    kept = [c for c in before if c["type"] not in fresh]
    return kept + [dated({"type": kind, **body}, condition_in(before, kind), now) for kind, body in fresh.items()]


def _long_lived(pod: Object) -> Iterable[Object]:
    yield from (c for c in init_containers_of(pod) if is_sidecar(c))
    yield from containers_of(pod)


def _init_passed(container: Object, observed: Observed) -> bool:
    run = observed.runs.get(container["name"])
    if is_sidecar(container):
        return observed.is_started(container["name"])
    return run is not None and run.ended and not run.failed


def _true(reason: str = "") -> Object:
    return {"status": "True", "reason": reason} if reason else {"status": "True"}


def _false(reason: str = "", message: str = "") -> Object:
    body: Object = {"status": "False"}
    if reason:
        body["reason"] = reason
    if message:
        body["message"] = message
    return body


# Containers


def _container_status(
    container: Object,
    pod: Object,
    observed: Observed,
    plan: Plan,
    *,
    initial: Waiting,
    before: Mapping[str, Object],
    ready: bool,
) -> Object:
    """`before` is what was published of each container, `initial` the state of one that has not begun."""
    name = container["name"]
    run, last = observed.runs.get(name), observed.previous.get(name)
    waiting = plan.waiting.get(name)
    if run is not None and run.phase == EXITED and waiting is not None:
        state, last = {"waiting": _waiting(waiting)}, run
    elif run is None or run.phase not in (RUNNING, EXITED):
        state = {"waiting": _waiting(waiting or observed.blocked.get(name) or initial)}
    else:
        state = _run_state(run)
        if plan.outcome is not None and plan.outcome.reason == ENDED_REASON:
            state = _ended_on_purpose(state, before.get(name, {}).get("state") or {})
    body: Object = {
        "name": name,
        "image": container.get("image", ""),
        "imageID": observed.images.get(name) or before.get(name, {}).get("imageID", ""),
        "ready": ready,
        "restartCount": run.attempt if run else 0,
        "started": observed.is_started(name),
        "state": state,
        "lastState": _run_state(last) if last else {},
    }
    if run is not None:
        body["containerID"] = container_id(pod, name, run.attempt)
    return body


def _ended_on_purpose(state: Object, before: Object) -> Object:
    """The state of a container whose pod its controller ended, given the one that was published before.

    Few programs exit with 0 on SIGTERM, and kubectl prints the reason as the pod's STATUS: a planned end is no `Error`.
    What had failed by itself before stays one.
    """
    now, earlier = ((one.get("terminated") or {}).get("reason") for one in (state, before))
    if now != "Error" or earlier == "Error":
        return state
    return {"terminated": {**state["terminated"], "reason": ENDED_REASON}}


def _is_init_ready(container: Object, observed: Observed) -> bool:
    """An init container is ready when it is complete; sidecars, as the others, when they serve."""
    return observed.is_ready(container["name"]) if is_sidecar(container) else _init_passed(container, observed)


def _not_run(before: Object) -> Object:
    """The state of a container that waited when its pod ended, given the one that was published before.

    As the kubelet of Kubernetes (status_manager.go, TerminatePod): terminated, with an exit code that is no success,
    unless an init container failed before its turn came.
    The reason is what it waited for, where that was a failure such as ErrImagePull: it is the STATUS that people see.
    """
    if "terminated" in before:
        return before
    waited = before.get("waiting") or {}
    if waited.get("reason") in (None, CREATING.reason, INITIALIZING.reason):
        waited = {
            "reason": CONTAINER_UNKNOWN,
            "message": "The container could not be located when the pod was terminated",
        }
    return {"terminated": {"exitCode": 137, **waited}}


def _waiting(waiting: Waiting) -> Object:
    return {"reason": waiting.reason, **({"message": waiting.message} if waiting.message else {})}


def _run_state(run: ContainerRun) -> Object:
    if run.phase == RUNNING:
        return {"running": {"startedAt": rfc3339(run.started or run.created)}}
    body: Object = {
        "exitCode": run.exit_code if run.exit_code is not None else 0,
        "reason": run.reason,
        "startedAt": rfc3339(run.started or run.created),
        "finishedAt": rfc3339(run.finished or run.created),
    }
    if run.message:
        body["message"] = run.message
    if run.signal:
        body["signal"] = run.signal
    return {"terminated": body}


def container_id(pod: Object, name: str, attempt: int) -> str:
    """Derived, so that it is the same after a restart of the kubelet."""
    return f"process://{pod['metadata']['uid']}/{name}/{attempt}"
