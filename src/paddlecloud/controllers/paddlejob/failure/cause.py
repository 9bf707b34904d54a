"""Why a pod failed. What the job does about it is decided in `policy`.

A failure has a class that a person understands and a rule can match. Some classes are nobody's fault: a lost node, an
eviction, a preemption. Those restart the job on their own budget, so that a busy cluster cannot use up the
restarts meant for the program.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

from paddlecloud.api.outputs import after_the_exception, first_and_last, verdict_of
from paddlecloud.api.paddlejob import JobSettings
from paddlecloud.api.paddlejob.cause import waiting_reason
from paddlecloud.api.signals import with_signal
from paddlecloud.controllers.paddlejob.observe import PodView, first_container
from paddlecloud.kube.conditions import condition_in
from paddlecloud.kube.pods import CONTAINER_UNKNOWN

SHUTDOWN = "NodeShutdown"
"""The class of a pod whose node was stopped on purpose, such as by `pdc down`: it counts against no budget."""

DISRUPTIONS = frozenset({"Evicted", "Preempted", "NodeLost", "Deleted", "Rejected", SHUTDOWN})
"""Classes that are nobody's fault."""

MESSAGE_LIMIT = 800
"""Characters of a failure's text kept in the status: the end of a traceback fits."""

_POD_REASONS = {
    "Evicted": "Evicted",
    "Preempting": "Preempted",
    "Preempted": "Preempted",
    "NodeLost": "NodeLost",
    "NodeShutdown": SHUTDOWN,
    "Shutdown": SHUTDOWN,
    "Terminated": SHUTDOWN,
    "DeadlineExceeded": "Deadline",
    "UnexpectedAdmissionError": "Rejected",
    "NodeAffinity": "Rejected",
    "OutOfcpu": "Rejected",
    "OutOfmemory": "Rejected",
    "OutOfpods": "Rejected",
}
_DISRUPTION_REASONS = {
    "PreemptionByScheduler": "Preempted",
    "EvictionByEvictionAPI": "Evicted",
    "TerminationByKubelet": "Evicted",
    "DeletionByTaintManager": "NodeLost",
    "DeletionByPodGC": "NodeLost",
}
_CONTAINER_REASONS = {
    "OOMKilled": "OOM",
    "ContainerCannotRun": "StartError",
    "StartError": "StartError",
}
_HOPELESS_IMAGES = frozenset({"InvalidImageName", "ErrImageNeverPull"})

_TEXTS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("NoParameterServer", re.compile(r"cannot import name 'CommContext'|no attribute 'DistFleetWrapper'")),
    ("NoHostName", re.compile(r"network \S+: cannot be obtained.*name resolution")),
    ("DiskFull", re.compile(r"No space left on device|Disk quota exceeded")),
    ("OOM", re.compile(r"\bMemoryError\b|std::bad_alloc|[Cc]annot allocate memory|out of memory", re.IGNORECASE)),
    (
        "RendezvousTimeout",
        re.compile(r"(rendezvous|tcp ?store|gloo|connect\w*|peer\w*)[^\n]{0,120}\b(timed? ?out)\b", re.IGNORECASE),
    ),
    ("PeerLost", re.compile(r"Connection (reset|closed) by (peer|remote)|SIGABRT", re.IGNORECASE)),
)
"""Classes recognised by the last lines of output, tried in order; everything else is the program's own error."""


_NEW_PROGRAMS = re.compile(
    r"triggers bool\(Tensor\)|paddle\.static\.nn\.cond\(pred"
    r"|\bclone\(\): incompatible function arguments|; kwargs: for_test="
)
"""How a Paddle whose static programs parameter servers cannot use stumbles over one, before it misses the servers."""

_HINTS = {
    "NoParameterServer": "this build of Paddle cannot train with parameter servers: use 2.6.2, or 3.0.0 with "
    "FLAGS_enable_pir_api=0",
    "NoHostName": "gloo cannot resolve the host name of its machine: let nodes resolve their own names, or set "
    "GLOO_SOCKET_IFNAME to the interface to use",
}
LATE = "StartTimeout"
"""The class of a pod that did not come to run in the time its job had."""

SECONDARY = frozenset({"PeerLost", "RendezvousTimeout"})
"""Classes that report an absent peer: where another pod failed too, that one is the cause."""

_UNSTARTED = frozenset({"Image", "Config", "Mount", "StartError"})
"""Classes of containers whose program never began: what is reported is the platform's message, not an output."""

_NO_PROGRAM = re.compile(r'exec: "([^"]+)": (?:executable file not found|stat \S+ no such file|no such file)')
"""How container runtimes report that the command's first word is no program."""

_NOT_IN_TMP = re.compile(
    r"(?<![\w.])/tmp/[^\n]*(?:No such file|\bnot found\b|does(?: not|n't) exist)|No such file[^\n]*?(?<![\w.])/tmp/"
)
_OWN_TMP = "(/tmp is the pod's own: what it needs of the machine's must be mounted)"

PROGRAMS = ("python", "python3", "bash", "sh", "paddle", "mpirun", "torchrun", "env", "sleep", "cat", "echo")
"""Names that a misspelt command may have meant."""

_SILENT = frozenset({"Killed", "PeerLost"})
"""Classes whose cause is elsewhere: the last line the program wrote says nothing about it."""


class Failure(NamedTuple):
    pod: str
    role: str
    node: str
    kind: str
    reason: str
    exit_code: int | None
    message: str
    finished: str

    @property
    def is_disruption(self) -> bool:
        return self.kind in DISRUPTIONS

    def describe(self) -> str:
        """One line: `train-worker-1 failed: UserError (exit code 1)`."""
        code = "" if self.exit_code is None else f" (exit code {self.exit_code})"
        said = _HINTS.get(self.kind) or ("" if self.kind in _SILENT else _sentence(self.kind, self.message))
        if self.kind == "UserError":
            said = with_signal(self.exit_code, said)
        verb = "ended" if self.kind == SHUTDOWN else "failed"
        return f"{self.pod} {verb}: {self.kind}{code}" + (f": {said}" if said else "")


def _sentence(kind: str, message: str) -> str:
    if kind in _UNSTARTED:
        said = start_error(message) if kind == "StartError" else first_and_last(message)
    else:
        said = verdict_of(message)
    # The embedded platform's kubelet may have named it already.
    is_unexplained = kind != "Mount" and _NOT_IN_TMP.search(said) and "cannot be seen in the container" not in said
    return f"{said} {_OWN_TMP}" if is_unexplained else said


def start_error(message: str) -> str:
    """Why a container could not start: the program it names is not in its image, or what its runtime reports."""
    found = _NO_PROGRAM.search(message)
    if found is None:
        return f"the container could not start: check its command and image: {verdict_of(message)}"
    near = get_close_matches(found[1], PROGRAMS, n=1)
    return f"{found[1]}: not found" + (f"; did you mean {near[0]}?" if near else " in the image: check its command")


def last_lines(text: str, limit: int) -> str:
    """The end of an output, cut between lines; between words where it is one long line.

    Nothing marks the cut: rules of the job search this text.
    """
    kept = text[-limit:]
    if len(text) > limit:
        for boundary in ("\n", " "):
            rest = kept.partition(boundary)[2]
            if rest.strip():
                return rest
    return kept


def failures(pods: Iterable[PodView]) -> list[Failure]:
    """Failures among pods, the likely cause first: who ended first, and secondary failures after primary ones."""
    pods = tuple(pods)
    found = [failure for pod in pods if (failure := classify(pod)) is not None]
    if any(pod.role == "ps" for pod in pods):
        found = [_in_a_job_with_servers(failure) for failure in found]
    return sorted(found, key=lambda f: (f.kind in SECONDARY, f.finished or "~", f.pod))


def _in_a_job_with_servers(failure: Failure) -> Failure:
    if failure.kind == "UserError" and _NEW_PROGRAMS.search(failure.message):
        return failure._replace(kind="NoParameterServer")
    return failure


def classify(pod: PodView) -> Failure | None:
    """What is wrong with a pod, or None while it may still do its work."""
    if pod.state == "failed":
        return _of_ended(pod)
    if pod.state != "succeeded" and (doom := _disruption(pod)) is not None:
        return _failure(pod, doom, doom, message=f"the pod is about to go: {doom} on node {pod.node}")
    if pod.deleting and pod.state != "succeeded":
        return _failure(pod, "Deleted", "Deleted", message="the pod was deleted")
    if pod.state == "unknown":
        return _failure(pod, "NodeLost", "NodeLost", message=f"node {pod.node} does not answer")
    reason, message = waiting_reason(pod.raw)
    if reason in _HOPELESS_IMAGES:
        return _failure(pod, "Image", reason, message=message)
    return None


def lost(settings: JobSettings, missing: Iterable[tuple[str, int]], gone: Iterable[PodView]) -> list[Failure]:
    """Members that vanished. Who was about to be evicted when it was last seen says so; the others left no trace."""
    known = {(pod.role, pod.index): pod for pod in gone}
    found = []
    for role, index in missing:
        pod = known.get((role, index))
        kind = (_disruption(pod) if pod is not None else None) or "Deleted"
        node = pod.node if pod is not None else ""
        text = "the pod is gone" + (f", and so is its node {node}" if kind == "NodeLost" else "")
        found.append(Failure(f"{settings.name}-{role}-{index}", role, node, kind, kind, None, text, ""))
    return sorted(found, key=lambda failure: failure.kind == "Deleted")


def restarts_in_place(pods: Iterable[PodView]) -> int:
    """How often kubelets have restarted the training container of these pods."""
    return sum(int(first_container(pod).get("restartCount") or 0) for pod in pods)


def worn_out(settings: JobSettings, pods: Sequence[PodView]) -> Failure | None:
    """Where kubelets restart, the pod that used up most of a budget that is gone; None while there is some left."""
    if restarts_in_place(pods) <= settings.backoff_limit:
        return None
    worst = max(pods, key=lambda pod: restarts_in_place([pod]))
    return _of_ended(worst)


def _of_ended(pod: PodView) -> Failure:
    status = pod.status
    reason = str(status.get("reason") or "")
    if _POD_REASONS.get(reason) == SHUTDOWN:  # how the program took its signal says nothing
        return _failure(pod, SHUTDOWN, reason, message=str(status.get("message") or ""))
    container = first_container(pod)
    ended: dict[str, Any] = next(
        (
            state["terminated"]
            for field in ("state", "lastState")
            if "terminated" in (state := container.get(field) or {})
        ),
        {},
    )
    if ended.get("reason") == CONTAINER_UNKNOWN:
        ended = {}
    text = str(ended.get("message") or status.get("message") or "")
    code = ended.get("exitCode")
    kind = (
        _disruption(pod)
        or _POD_REASONS.get(reason)
        or _CONTAINER_REASONS.get(str(ended.get("reason") or ""))
        or next((name for name, pattern in _TEXTS if pattern.search(text)), None)
        or ("PeerLost" if code == 134 else "Killed" if code == 137 else "UserError")
    )
    return Failure(
        pod=pod.name,
        role=pod.role,
        node=pod.node,
        kind=kind,
        reason=reason or str(ended.get("reason") or "Error"),
        exit_code=code,
        message=after_the_exception(text, last_lines(text, MESSAGE_LIMIT)),
        finished=str(ended.get("finishedAt") or ""),
    )


def _disruption(pod: PodView) -> str | None:
    target = condition_in(pod.status.get("conditions") or (), "DisruptionTarget")
    if target is None or target.get("status") != "True":
        return None
    return _DISRUPTION_REASONS.get(str(target.get("reason")), "Evicted")


def _failure(pod: PodView, kind: str, reason: str, *, message: str) -> Failure:
    return Failure(pod.name, pod.role, pod.node, kind, reason, None, message, "")
