"""What to do next for a pod: a pure function of its object, what was observed, and the time.

The rules are those of Kubernetes' kubelet (computePodActions of pkg/kubelet/kuberuntime/kuberuntime_manager.go; the
times of pkg/kubelet/kubelet.go, MaxContainerBackOff): init containers one after the other, sidecars (init containers
that restart always) before and beside the main ones, restart policies, back-off of 10 s · 2ⁿ after repeated failures,
deadlines, graceful deletion; ephemeral containers run once. Nothing here talks to a process or to the API.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from paddlecloud.api.paddlejob.ending import ENDED_REASON, planned_end
from paddlecloud.kube.backoff import exponential
from paddlecloud.kube.clock import parse_rfc3339
from paddlecloud.kube.pods import NODE_SHUTDOWN
from paddlecloud.kube.resource import Object
from paddlecloud.local.kubelet.pod.pod_state import (
    SHUTDOWN_REASON,
    ContainerRun,
    Observed,
    Waiting,
    containers_of,
    ephemeral_containers_of,
    init_containers_of,
    is_sidecar,
)

BACKOFF_BASE = 10.0
BACKOFF_CAP = 300.0
BACKOFF_RESET = 2 * BACKOFF_CAP
"""A run at least this long counts as a success for the back-off."""

DEFAULT_GRACE = 30.0
SIDECAR_GRACE = 2.0
"""What a sidecar gets at least, when the main containers used up the grace period."""

EVICTION_GRACE = 1.0
"""Seconds left to a pod that took more than it may: what it does to its neighbours ends at once."""

DEADLINE_REASON = "DeadlineExceeded"
DEADLINE_MESSAGE = "Pod was active on the node longer than the specified deadline"


class Start(NamedTuple):
    name: str
    attempt: int
    streak: int


class Stop(NamedTuple):
    name: str
    grace: float
    hook: bool
    """Whether the preStop hook runs first: it does unless nothing is left of the grace period."""


class PodEnd(NamedTuple):
    """How a pod ended."""

    phase: str
    reason: str = ""
    message: str = ""


@dataclass(slots=True)
class Plan:
    start: list[Start] = field(default_factory=list)
    stop: list[Stop] = field(default_factory=list)
    waiting: dict[str, Waiting] = field(default_factory=dict)
    initialized: bool = False
    outcome: PodEnd | None = None
    done: bool = False
    """No process is left and none will start: the shim may go."""
    remove: bool = False
    """Deleted and done: its object may go."""
    requeue_at: float | None = None
    """When time alone will change this plan."""

    def requeue_no_later_than(self, moment: float) -> None:
        self.requeue_at = moment if self.requeue_at is None else min(self.requeue_at, moment)


def backoff_delay(streak: int) -> float:
    """Seconds between the end of the n-th failure in a row and the next start: 0, 10, 20, 40 … 300."""
    return 0.0 if streak <= 1 else exponential(streak - 2, base=BACKOFF_BASE, cap=BACKOFF_CAP)


def streak_after(run: ContainerRun) -> int:
    """Ends in a row that count for the back-off, this one included; a long run starts the count anew.

    Kubernetes counts a restart after success too (restartPolicy Always): a program that ends at once is a loop.
    """
    if run.reason == SHUTDOWN_REASON:
        return run.streak
    lasted = (run.finished or 0.0) - (run.started or run.finished or 0.0)
    return 1 if lasted >= BACKOFF_RESET else run.streak + 1


def decide(pod: Object, observed: Observed, now: float) -> Plan:
    plan = Plan()
    ended = _already_ended(pod) or _removal(observed) or _deadline(pod, observed, now, plan)
    deleting = pod["metadata"].get("deletionTimestamp") is not None
    if ended or deleting or _is_complete(pod, observed):
        plan.initialized = _initialized(pod, observed)
        _wind_down(pod, observed, now, plan)
        # Without a word of its own, a pod is over only after its sidecars are.
        plan.outcome = ended or (_natural_outcome(pod, observed) if plan.done else None)
        plan.remove = deleting and plan.done
        return plan
    for added in ephemeral_containers_of(pod):  # also while an init container runs, which may be why they were added
        _advance(pod, added, observed, now=now, plan=plan, policy="Never")
    if _advance_init(pod, observed, now, plan):
        plan.initialized = True
        policy = _policy(pod)
        for main in containers_of(pod):
            _advance(pod, main, observed, now=now, plan=plan, policy=policy)
    return plan


def _policy(pod: Object) -> str:
    return str(pod["spec"].get("restartPolicy", "Always"))


def _is_complete(pod: Object, observed: Observed) -> bool:
    """Every main container ended for good, or an init container did that had to succeed."""
    policy = _policy(pod)
    runs = [observed.runs.get(container["name"]) for container in containers_of(pod)]
    if all(run is not None and run.ended and not _restarts(policy, run) for run in runs):
        return True
    firsts = [observed.runs.get(c["name"]) for c in init_containers_of(pod) if not is_sidecar(c)]
    return policy == "Never" and any(run is not None and run.failed for run in firsts)


def _already_ended(pod: Object) -> PodEnd | None:
    """A terminal phase that was published is final, whatever runs."""
    status = pod.get("status") or {}
    if status.get("phase") in ("Succeeded", "Failed"):
        return PodEnd(status["phase"], status.get("reason", ""), status.get("message", ""))
    return None


def _removal(observed: Observed) -> PodEnd | None:
    if observed.rejection is not None:
        return PodEnd("Failed", observed.rejection.reason, f"Pod was rejected: {observed.rejection.message}")
    return PodEnd("Failed", "Evicted", observed.evicted) if observed.evicted else None


def _deadline(pod: Object, observed: Observed, now: float, plan: Plan) -> PodEnd | None:
    seconds = pod["spec"].get("activeDeadlineSeconds")
    if seconds is None or observed.start_time is None:
        return None
    due = observed.start_time + float(seconds)
    if now >= due:
        why = planned_end(pod)
        return PodEnd("Failed", ENDED_REASON, why) if why else PodEnd("Failed", DEADLINE_REASON, DEADLINE_MESSAGE)
    plan.requeue_no_later_than(due)
    return None


def _advance_init(pod: Object, observed: Observed, now: float, plan: Plan) -> bool:
    """Bring the init containers one step further; True when the main containers may run."""
    for container in init_containers_of(pod):
        name = container["name"]
        run = observed.runs.get(name)
        if is_sidecar(container):
            _advance(pod, container, observed, now=now, plan=plan, policy="Always")
            if not observed.is_started(name) and not _main_began(pod, observed):
                return False
            continue
        if run is not None and run.ended and not run.failed:
            continue
        if _main_began(pod, observed):
            continue  # its record was lost with a shim; what it prepared was not
        _advance(pod, container, observed, now=now, plan=plan, policy="OnFailure")
        return False
    return True


def _initialized(pod: Object, observed: Observed) -> bool:
    return _main_began(pod, observed) or all(
        observed.is_started(c["name"]) if is_sidecar(c) else _succeeded(observed.runs.get(c["name"]))
        for c in init_containers_of(pod)
    )


def _succeeded(run: ContainerRun | None) -> bool:
    return run is not None and run.ended and not run.failed


def _main_began(pod: Object, observed: Observed) -> bool:
    return any(container["name"] in observed.runs for container in containers_of(pod))


def _advance(pod: Object, container: Object, observed: Observed, *, now: float, plan: Plan, policy: str) -> None:
    """Start, restart or end one container as its state asks."""
    name = container["name"]
    run = observed.runs.get(name)
    if run is not None and not run.ended:
        if name in observed.unhealthy:
            plan.stop.append(Stop(name, observed.probe_grace.get(name, _granted_grace(pod)), hook=True))
        return
    attempt, streak = 0, 0
    if run is not None:
        if not _restarts(policy, run):
            return
        attempt, streak = run.attempt + 1, streak_after(run)
        due = min(run.finished or now, now) + backoff_delay(streak)  # an end in the future: the clock was set back
        if now < due:
            text = f"back-off {int(backoff_delay(streak))}s restarting failed container={name}"
            plan.waiting[name] = Waiting("CrashLoopBackOff", text)
            plan.requeue_no_later_than(due)
            return
    if name in observed.blocked:
        plan.waiting[name] = observed.blocked[name]
        return
    plan.start.append(Start(name, attempt, streak))


def _restarts(policy: str, run: ContainerRun) -> bool:
    return policy == "Always" or (policy == "OnFailure" and run.failed)


def _wind_down(pod: Object, observed: Observed, now: float, plan: Plan) -> None:
    """End what runs: the main containers together, then the sidecars in reverse order of their start."""
    grace = min(_granted_grace(pod), EVICTION_GRACE) if observed.evicted else _granted_grace(pod)
    sidecars = [c for c in reversed(init_containers_of(pod)) if is_sidecar(c) and _alive(c, observed)]
    others = [c for c in init_containers_of(pod) if not is_sidecar(c) and _alive(c, observed)]
    others += [c for c in (*containers_of(pod), *ephemeral_containers_of(pod)) if _alive(c, observed)]
    for container in others:
        plan.stop.append(Stop(container["name"], grace, hook=grace > 0))
    if grace <= 0:
        plan.stop.extend(Stop(container["name"], 0.0, hook=False) for container in sidecars)
    elif not others and sidecars:
        plan.stop.append(Stop(sidecars[0]["name"], max(SIDECAR_GRACE, _until_gone(pod, now)), hook=True))
    plan.done = not (others or sidecars)


def _alive(container: Object, observed: Observed) -> bool:
    run = observed.runs.get(container["name"])
    return run is not None and not run.ended


def _granted_grace(pod: Object) -> float:
    """Counted from the first order to stop, which a shim remembers: repeating it never lengthens the grace."""
    meta = pod["metadata"]
    if meta.get("deletionTimestamp") is not None:
        return float(meta.get("deletionGracePeriodSeconds") or 0)
    return float(pod["spec"].get("terminationGracePeriodSeconds", DEFAULT_GRACE))


def _until_gone(pod: Object, now: float) -> float:
    """deletionTimestamp is the moment by which a pod should be gone: it includes the grace period."""
    deadline = pod["metadata"].get("deletionTimestamp")
    return parse_rfc3339(deadline) - now if deadline else _granted_grace(pod)


def _natural_outcome(pod: Object, observed: Observed) -> PodEnd:
    """A pod without a run of every main container, or with one that failed, has failed."""
    runs = [observed.runs.get(container["name"]) for container in containers_of(pod)]
    if all(_succeeded(run) for run in runs):
        return PodEnd("Succeeded")
    if any(run.reason == SHUTDOWN_REASON for run in observed.runs.values()):
        return PodEnd("Failed", NODE_SHUTDOWN, "the platform was stopped while the pod ran")
    return PodEnd("Failed")
