"""What the kubelet knows of a pod beyond its API object: the input of every decision, as plain values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from paddlecloud.kube.resource import Object

STARTING, RUNNING, EXITED = "starting", "running", "exited"
LOST_CODE = 137
SHUTDOWN_REASON = "NodeShutdown"
"""Of containers that ran when the platform was stopped on purpose."""


class ContainerRun(NamedTuple):
    """One attempt of one container, as its shim recorded it."""

    attempt: int
    phase: str
    created: float
    started: float | None = None
    finished: float | None = None
    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""
    message: str = ""
    streak: int = 0
    pid: int = 0
    log: str = ""
    namespace: str = ""

    @property
    def ended(self) -> bool:
        return self.phase == EXITED

    @property
    def failed(self) -> bool:
        return self.phase == EXITED and self.exit_code != 0


def read_runs(records: Mapping[str, Mapping[str, Any]]) -> dict[str, ContainerRun]:
    return {name: ContainerRun(**record) for name, record in records.items()}


def settle_lost(state: dict[str, Any], now: float) -> dict[str, Any]:
    """The record of a dead shim with what it can no longer see ended, in the words Kubernetes has for that."""
    text = "The container could not be located when the pod was terminated: its supervisor is gone"
    return _settled(state, now, "ContainerStatusUnknown", text)


def settle_shutdown(state: dict[str, Any], now: float) -> dict[str, Any]:
    """The record of a pod whose node is switched off on purpose: what runs ends with it."""
    return _settled(state, now, SHUTDOWN_REASON, "the platform was stopped while the container ran")


def _settled(state: dict[str, Any], now: float, reason: str, message: str) -> dict[str, Any]:
    containers = {}
    for name, record in (state.get("containers") or {}).items():
        if record["phase"] != EXITED:
            record = {
                **record,
                "phase": EXITED,
                "finished": now,
                "exit_code": LOST_CODE,
                "reason": reason,
                "message": message,
            }
        containers[name] = record
    return {**state, "containers": containers}


class Rejection(NamedTuple):
    """Of a pod by its node: a reason as Kubernetes has it, and what is in the way."""

    reason: str
    message: str


class Waiting(NamedTuple):
    """Why a container does not run yet, for `state.waiting`."""

    reason: str
    message: str = ""
    expected: bool = False
    """Part of the usual way to start: no Event warns about it."""


@dataclass(frozen=True, slots=True)
class Observed:
    """All that a decision about a pod may depend on besides its object and the time."""

    runs: Mapping[str, ContainerRun] = field(default_factory=dict)
    previous: Mapping[str, ContainerRun] = field(default_factory=dict)
    start_time: float | None = None
    """When this kubelet took the pod up."""
    pod_ip: str = ""
    host_ip: str = ""
    blocked: Mapping[str, Waiting] = field(default_factory=dict)
    """Containers that cannot start because of their image, configuration or volumes."""
    started: Mapping[str, bool] = field(default_factory=dict)
    """Result of the startup probe; a container without one counts as started when it runs."""
    ready: Mapping[str, bool] = field(default_factory=dict)
    """Result of the readiness probe; a container without one is ready when it is started."""
    unhealthy: Mapping[str, str] = field(default_factory=dict)
    """Containers whose liveness or startup probe, or postStart hook, asks for an end, with the message."""
    probe_grace: Mapping[str, float] = field(default_factory=dict)
    """How long those may take whose failed probe says so itself."""
    evicted: str = ""
    """Why the machine must end the pod, if it must."""
    rejection: Rejection | None = None
    """Why the node does not take the pod, if it does not."""
    degraded: str = ""
    """Why the pod has no mounts, names and ports of its own, where the machine allows no namespaces."""
    unlimited: str = ""
    """Why the kernel does not hold the pod to its limits, although this machine could."""
    images: Mapping[str, str] = field(default_factory=dict)
    """Identity of the image each container runs."""
    stand_ins: Mapping[str, str] = field(default_factory=dict)
    """Of containers whose image holds something else than its name promises, the sentence that says so."""

    def is_started(self, name: str) -> bool:
        run = self.runs.get(name)
        return run is not None and run.phase == RUNNING and self.started.get(name, True)

    def is_ready(self, name: str) -> bool:
        return self.is_started(name) and self.ready.get(name, True)


def all_reported(pod: Object) -> dict[str, Object]:
    """The status of each container that is published already: what an earlier kubelet knew."""
    status = pod.get("status") or {}
    fields = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
    return {entry["name"]: entry for field in fields for entry in status.get(field) or ()}


def reported(pod: Object, name: str) -> Object:
    return dict(all_reported(pod).get(name, {}))


def containers_of(pod: Object) -> list[Object]:
    return list(pod["spec"].get("containers") or ())


def init_containers_of(pod: Object) -> list[Object]:
    return list(pod["spec"].get("initContainers") or ())


def ephemeral_containers_of(pod: Object) -> list[Object]:
    """Those that were added while the pod ran, to look into it."""
    return list(pod["spec"].get("ephemeralContainers") or ())


def is_sidecar(container: Object) -> bool:
    """An init container that keeps running beside the others."""
    return container.get("restartPolicy") == "Always"


def all_containers(pod: Object) -> Iterator[Object]:
    yield from init_containers_of(pod)
    yield from containers_of(pod)
    yield from ephemeral_containers_of(pod)
