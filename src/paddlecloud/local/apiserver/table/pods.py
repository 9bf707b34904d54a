"""One word for the state of a pod, as `kubectl get pods` has taught everyone to read it.

A pod's phase says too little (a crash loop is "Running"), so the word comes from its containers: the first init
container that is not done, otherwise what the containers wait for or ended with.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from paddlecloud.kube.conditions import condition_of, has_condition, status_in
from paddlecloud.kube.resource import Object
from paddlecloud.kube.times import moment_of
from paddlecloud.local.apiserver.table.humanize import NONE, human_duration, since

_TERMINAL_PHASES = ("Succeeded", "Failed")


@dataclass(slots=True)
class PodSummary:
    """What the READY, STATUS and RESTARTS cells say."""

    reason: str
    ready: int = 0
    total: int = 0
    restarts: int = 0
    last_restart: float | None = None

    def restarts_text(self, now: float) -> str:
        if self.restarts and self.last_restart is not None:
            return f"{self.restarts} ({human_duration(now - self.last_restart)} ago)"
        return str(self.restarts)


def summarize(pod: Object) -> PodSummary:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    phase = status.get("phase") or "Unknown"
    summary = PodSummary(status.get("reason") or phase)
    if (condition_of(pod, "PodScheduled") or {}).get("reason") == "SchedulingGated":
        summary.reason = "SchedulingGated"
    init_specs = spec.get("initContainers") or ()
    sidecars = {c.get("name") for c in init_specs if c.get("restartPolicy") == "Always"}
    summary.total = len(spec.get("containers") or ()) + len(sidecars)

    initializing = _read_init_containers(summary, status, sidecars, len(init_specs))
    if not initializing or has_condition(pod, "Initialized"):
        _read_containers(summary, status, sidecars)

    if pod["metadata"].get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            summary.reason = "Unknown"
        elif phase not in _TERMINAL_PHASES:
            summary.reason = "Terminating"
    return summary


def _read_init_containers(summary: PodSummary, status: Object, sidecars: set[Any], count: int) -> bool:
    """Whether initialisation still goes on; if so the summary is about the init container that runs."""
    for position, container in enumerate(status.get("initContainerStatuses") or ()):
        _add_restarts(summary, [container])
        state = container.get("state") or {}
        terminated, waiting = state.get("terminated"), state.get("waiting") or {}
        if terminated is not None and not terminated.get("exitCode"):
            continue
        if container.get("name") in sidecars and container.get("started"):
            summary.ready += bool(container.get("ready"))
            continue
        if terminated is not None:
            summary.reason = f"Init:{_ended(terminated)}"
        elif waiting.get("reason") not in (None, "", "PodInitializing"):
            summary.reason = f"Init:{waiting['reason']}"
        else:
            summary.reason = f"Init:{position}/{count}"
        return True
    return False


def _read_containers(summary: PodSummary, status: Object, sidecars: set[Any]) -> None:
    """From the last container to the first, so that of several reasons the one of the first container is shown."""
    containers = status.get("containerStatuses") or ()
    summary.restarts, summary.last_restart = 0, None  # those of finished init containers no longer matter
    _add_restarts(summary, (c for c in status.get("initContainerStatuses") or () if c.get("name") in sidecars))
    _add_restarts(summary, containers)
    has_running = False
    for container in reversed(containers):
        state = container.get("state") or {}
        terminated, waiting = state.get("terminated"), state.get("waiting") or {}
        if waiting.get("reason"):
            summary.reason = waiting["reason"]
        elif terminated is not None:
            summary.reason = _ended(terminated)
        elif container.get("ready") and state.get("running") is not None:
            has_running = True
            summary.ready += 1
    if summary.reason == "Completed" and has_running:
        summary.reason = "Running" if status_in(status.get("conditions") or (), "Ready") == "True" else "NotReady"


def _ended(terminated: Object) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _add_restarts(summary: PodSummary, containers: Iterable[Object]) -> None:
    for container in containers:
        summary.restarts += container.get("restartCount") or 0
        last = ((container.get("lastState") or {}).get("terminated") or {}).get("finishedAt")
        moment = moment_of(last)
        if moment is not None:
            summary.last_restart = max(moment, summary.last_restart or moment)


def pod_row(pod: Object, now: float) -> list[Any]:
    """All cells at once: three of them come from one pass over the containers."""
    summary = summarize(pod)
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    gates = [gate.get("conditionType") for gate in spec.get("readinessGates") or ()]
    return [
        pod["metadata"]["name"],
        f"{summary.ready}/{summary.total}",
        summary.reason,
        summary.restarts_text(now),
        since(pod["metadata"].get("creationTimestamp"), now),
        status.get("podIP") or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        f"{sum(has_condition(pod, gate) for gate in gates)}/{len(gates)}" if gates else NONE,
    ]
