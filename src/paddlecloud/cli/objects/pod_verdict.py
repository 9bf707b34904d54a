"""Why a pod is as it is, in a sentence: it was not placed, a container does not start, waits, or ended. Pure."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import NamedTuple

from paddlecloud.api import mounts
from paddlecloud.api.outputs import first_and_last, verdict_of
from paddlecloud.api.paddlejob import gate
from paddlecloud.api.paddlejob.cause import ON_THE_WAY
from paddlecloud.api.paddlejob.ending import ENDED_REASON, planned_end
from paddlecloud.api.signals import with_signal
from paddlecloud.cli.objects import outcome
from paddlecloud.cli.phrases import say
from paddlecloud.kube.pods import CONTAINER_UNKNOWN
from paddlecloud.kube.resource import Object, controller_of

OK, WAITING, FAILED, DELETING = "ok", "waiting", "failed", "deleting"


class Verdict(NamedTuple):
    state: str
    text: str
    reason: str = ""
    """A word a program can match, such as Unschedulable or ImagePullBackOff."""
    details: tuple[str, ...] = ()
    """The last lines of the output that the sentence was taken from, where there are more."""


SELF_EXPLAINING = frozenset(
    (
        "CrashLoopBackOff",
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
        mounts.REASON,
    )
)
"""Reasons why a container waits that somebody has to mend; no event says more."""

MOST_LINES = 10


class PodJudge:
    """In one language, at one moment."""

    def __init__(self, language: str, now: float) -> None:
        self._say = functools.partial(say, language)
        self._now = now

    def _pod(self, pod: Object) -> Verdict:
        status, spec = pod.get("status") or {}, pod.get("spec") or {}
        return (
            self._ended_on_purpose(pod, status)
            or self._unplaced(pod, spec)
            or self._container_trouble(pod, status)
            or self._pod_phase(str(status.get("phase") or "Pending"), status, spec)
        )

    def _ended_on_purpose(self, pod: Object, status: Object) -> Verdict | None:
        why = planned_end(pod)
        if not why or status.get("phase") not in ("Failed", "Succeeded"):
            return None
        return Verdict(OK, self._say("ended", why=line(why)), ENDED_REASON)

    def _unplaced(self, pod: Object, spec: Object) -> Verdict | None:
        message = outcome.unschedulable(pod)
        if message:
            return Verdict(WAITING, self._say("unschedulable", message=line(message)), "Unschedulable")
        gates = spec.get("schedulingGates") or ()
        if gates and not spec.get("nodeName"):
            names = ", ".join(str(gate.get("name")) for gate in gates)
            return Verdict(WAITING, self._say("gated", names=names), "SchedulingGated")
        return None

    def _container_trouble(self, pod: Object, status: Object) -> Verdict | None:
        job = str((controller_of(pod) or {}).get("name") or "")
        for name, state, last, restarts in containers(status):
            waiting, ended = state.get("waiting") or {}, state.get("terminated") or {}
            reason, message = str(waiting.get("reason") or ""), str(waiting.get("message") or "")
            if others := gate.awaited(reason, message, job):
                return Verdict(WAITING, others, "Starting")
            if reason not in ON_THE_WAY:
                return self._container_waits(name, waiting, last, restarts)
            if message:  # the volume that does not come
                reason = mounts.REASON if mounts.has_failed(waiting) else reason
                text = self._say("container-waits", name=name, what=self._detail(reason, first_and_last(message)))
                return Verdict(FAILED if reason in SELF_EXPLAINING else WAITING, text, reason)
            if ended.get("exitCode") and ended.get("reason") != CONTAINER_UNKNOWN:
                text = self._say("container-ended", name=name, ending=self._ending(ended))
                return Verdict(FAILED, text, str(ended.get("reason") or "Error"), last_lines(ended.get("message")))
        return None

    def _container_waits(self, name: str, waiting: Object, last: Object, restarts: int) -> Verdict:
        reason = str(waiting["reason"])
        state = FAILED if reason in SELF_EXPLAINING else WAITING
        if reason == "CrashLoopBackOff" and last:
            key = "crashed-once" if restarts == 1 else "crash-loop"
            text = self._say(key, name=name, ending=self._ending(last), restarts=restarts)
            return Verdict(state, text, reason, last_lines(last.get("message")))
        what = self._detail(reason, first_and_last(str(waiting.get("message") or "")))
        text = self._say("container-waits", name=name, what=what)
        return Verdict(state, text, reason, last_lines(waiting.get("message")))

    def _ending(self, terminated: Object) -> str:
        reason = str(terminated.get("reason") or "")
        detail = f" ({reason})" if reason not in ("", "Error", "Completed") else ""
        text = self._say("ending", code=terminated.get("exitCode"), detail=detail)
        said = verdict_of(str(terminated.get("message") or ""))
        return self._detail(text, said if detail else with_signal(terminated.get("exitCode"), said))

    def _pod_phase(self, phase: str, status: Object, spec: Object) -> Verdict:
        if phase == "Failed":
            reason = str(status.get("reason") or "Failed")
            what = self._detail(reason, line(status.get("message")))
            return Verdict(FAILED, self._say("pod-failed", what=what), reason)
        if phase == "Succeeded":
            return Verdict(OK, self._say("pod-succeeded"), "Succeeded")
        if phase == "Pending":
            if spec.get("nodeName"):
                return Verdict(WAITING, self._say("starting", node=spec["nodeName"]), "Starting")
            return Verdict(WAITING, self._say("not-scheduled"), "NotScheduled")
        unready = [str(c.get("name")) for c in status.get("containerStatuses") or () if not c.get("ready")]
        if phase == "Running" and unready:
            return Verdict(WAITING, self._say("not-ready", names=", ".join(unready)), "ContainersNotReady")
        return Verdict(OK, self._say("running") if phase == "Running" else phase, phase)

    def _detail(self, what: str, detail: str) -> str:
        repeats = what == detail  # conditions often carry their reason as message
        return self._say("detail", what=what, detail=detail) if what and detail and not repeats else what or detail


def containers(status: Object) -> Iterator[tuple[str, Object, Object, int]]:
    """(name, state, how it ended last time, restarts), init containers first."""
    for field in ("initContainerStatuses", "containerStatuses"):
        for entry in status.get(field) or ():
            yield (
                str(entry.get("name")),
                entry.get("state") or {},
                (entry.get("lastState") or {}).get("terminated") or {},
                int(entry.get("restartCount") or 0),
            )


def last_lines(text: object) -> tuple[str, ...]:
    """The end of an output of several lines; one line is in the sentence already."""
    lines = str(text or "").strip().splitlines()
    return tuple(lines[-MOST_LINES:]) if len(lines) > 1 else ()


def line(text: object) -> str:
    return " ".join(str(text or "").split())
