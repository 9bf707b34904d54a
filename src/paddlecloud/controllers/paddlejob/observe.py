"""What the caches hold about one job, in the words the decision needs.

Nothing here decides. A `PodView` reads a pod once and answers the questions the rest of the controller asks of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from paddlecloud.controllers.paddlejob import names
from paddlecloud.controllers.paddlejob.reports.report import Reports
from paddlecloud.kube.clock import parse_rfc3339
from paddlecloud.kube.resource import Object, Resource

State = Literal["pending", "starting", "running", "succeeded", "failed", "unknown"]


@dataclass(frozen=True, slots=True)
class PodView:
    raw: Object
    name: str
    uid: str
    role: str
    index: int
    generation: int
    state: State
    ip: str
    node: str
    deleting: bool

    @property
    def ended(self) -> bool:
        return self.state in ("succeeded", "failed")

    @property
    def spec(self) -> dict[str, Any]:
        return dict(self.raw.get("spec") or {})

    @property
    def status(self) -> dict[str, Any]:
        return dict(self.raw.get("status") or {})

    @property
    def deletion_due(self) -> float | None:
        """When the grace period of a deleted pod is over."""
        text = self.raw["metadata"].get("deletionTimestamp")
        return parse_rfc3339(text) if text else None


@dataclass(frozen=True, slots=True)
class Observed:
    """Everything owned by the job (by uid, so nothing of an earlier job of that name) and what it refers to."""

    pods: tuple[PodView, ...] = ()
    gone: tuple[PodView, ...] = ()
    """Pods that were deleted since the last pass, as they were last seen: they may say why."""
    config: Object | None = None
    service: Object | None = None
    pod_groups: Mapping[Resource, Object] = field(default_factory=dict)
    """The PodGroups of the job's name, one per scheduler that has such, made by this controller or not."""
    gang_message: str = ""
    """What a scheduler said about a PodGroup that it has not queued, where the group itself does not say."""
    claim: Object | None = None
    """The PersistentVolumeClaim that `sampleSetRef` names, in the job's namespace."""
    sample_set: Object | None = None
    mounted_sets: tuple[Object, ...] = ()
    """Sample sets that pods of the job mount, by `sampleSetRef` or by a volume of the template that names the claim."""
    cache_nodes: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    """Node label (key, value) of the nodes that cache partition i of the sample set."""
    leftovers: int = 0
    """Objects of an earlier job of the same name that the garbage collector has not taken yet."""
    blockers: tuple[str, ...] = ()
    """Objects of the names we need that belong to somebody else, as `kind/name`."""
    ports_in_use: frozenset[int] = frozenset()
    """Port blocks of other jobs that have not ended."""
    last_log_line: float | None = None
    """When a running pod is last known to have written a line; None where logs are not followed."""
    reports: Reports | None = None
    """What the pods of this generation have reported; None where nobody listens."""
    trouble: str = ""
    """Why the last pass could not do what it wanted, such as a quota."""
    retry_at: float | None = None
    """When pods that were refused are asked for again."""


def view(pod: Object) -> PodView | None:
    """The pod as a member of its job; None for a pod that carries no role and index, which is none of ours."""
    meta = pod["metadata"]
    labels = meta.get("labels") or {}
    try:
        role, index = labels[names.ROLE], int(labels[names.INDEX])
        generation = int(labels.get(names.GENERATION, 0))
    except (KeyError, ValueError):
        return None
    status = pod.get("status") or {}
    return PodView(
        raw=pod,
        name=meta["name"],
        uid=meta.get("uid", ""),
        role=role,
        index=index,
        generation=generation,
        state=_state(status),
        ip=_address(status),
        node=(pod.get("spec") or {}).get("nodeName", ""),
        deleting="deletionTimestamp" in meta,
    )


_ENDED: dict[str, State] = {"Succeeded": "succeeded", "Failed": "failed", "Unknown": "unknown"}


def _state(status: dict[str, Any]) -> State:
    phase = status.get("phase") or "Pending"
    if phase in _ENDED:
        return _ENDED[phase]
    if phase == "Pending":
        # With an address the pod is on its node and only its containers wait: for each other, or for an image.
        return "starting" if status.get("podIP") else "pending"
    states = [(c.get("state") or {}, c.get("ready")) for c in status.get("containerStatuses") or ()]
    # A helper beside the program that has done its work is not awaited: it will never be ready again.
    busy = [(state, ready) for state, ready in states if (state.get("terminated") or {}).get("exitCode") != 0]
    return "running" if busy and all(ready and "running" in state for state, ready in busy) else "starting"


def _address(status: dict[str, Any]) -> str:
    """The pod's address, IPv4 where it has one: Paddle splits endpoints at the first colon."""
    addresses = [str(entry.get("ip", "")) for entry in status.get("podIPs") or ()]
    addresses.append(str(status.get("podIP") or ""))
    return next((a for a in addresses if a and ":" not in a), next((a for a in addresses if a), ""))


def first_container(pod: PodView) -> dict[str, Any]:
    """Status of the training container: by name of the template's first one, whatever order the kubelet reports."""
    containers = pod.spec.get("containers") or ()
    wanted = containers[0].get("name") if containers else None
    statuses = pod.status.get("containerStatuses") or ()
    found: dict[str, Any] = next((s for s in statuses if s.get("name") == wanted), statuses[0] if statuses else {})
    return found


def is_running(pod: PodView) -> bool:
    """Whether the training program runs, ready or not."""
    return "running" in (first_container(pod).get("state") or {})


def started_at(pod: PodView) -> str:
    """When the training program began, by the kubelet's clock; empty while it has not."""
    for moment in ("state", "lastState"):
        for state in (first_container(pod).get(moment) or {}).values():
            if state.get("startedAt"):
                return str(state["startedAt"])
    return ""
