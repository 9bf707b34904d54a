"""One true sentence on why an object is as it is: the first line of `describe`, the verdict of `explain KIND/NAME`.

Pure: (object, its pods, its events, now) → text. The sentence comes from what the cluster wrote down (deletion,
conditions, container states, phase, the last Warning event), in that order of weight, and from nowhere else. Of a
PaddleJob it is the sentence of its status: both are found by `api.paddlejob.cause`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from paddlecloud.api import mounts
from paddlecloud.api.names import ENDPOINT
from paddlecloud.api.outputs import first_and_last, verdict_of
from paddlecloud.api.paddlejob import gate
from paddlecloud.api.paddlejob.cause import ON_THE_WAY, Cause, first_cause
from paddlecloud.api.paddlejob.ending import ENDED_REASON, planned_end
from paddlecloud.api.signals import with_signal
from paddlecloud.cli import times
from paddlecloud.cli.objects import outcome
from paddlecloud.cli.phrases import say
from paddlecloud.kube.argo import WORKFLOWS
from paddlecloud.kube.pods import CONTAINER_UNKNOWN, is_finished
from paddlecloud.kube.resource import PADDLEJOBS, Object, controller_of

OK, WAITING, FAILED, DELETING = "ok", "waiting", "failed", "deleting"


class Verdict(NamedTuple):
    state: str
    text: str
    reason: str = ""
    """A word a program can match, such as Unschedulable or ImagePullBackOff."""
    details: tuple[str, ...] = ()
    """The last lines of the output that the sentence was taken from, where there are more."""


BAD_WHEN_TRUE = (
    "Failed",
    "Degraded",
    "Stalled",
    "ReplicaFailure",
    "MemoryPressure",
    "DiskPressure",
    "PIDPressure",
    "NetworkUnavailable",
)
BAD_WHEN_FALSE = (
    "Ready",
    "Available",
    "Progressing",
    "Established",
    "NamesAccepted",
    "PodScheduled",
    "RoutesReady",
    "CanaryEndpointReady",
)

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

_HOLDS_STEP = SELF_EXPLAINING | {"Unschedulable", "SchedulingGated"}
"""Reasons why the pod of a step does not start that say more than that it is on its way."""

GOOD_PHASES = frozenset(("Running", "Active", "Bound", "Ready", "Available", "Inqueue"))
GOOD_PHASES_OF = {"SampleSet": frozenset(("Ready",))}
"""Where a word means something else: a set that is Bound has a volume, and nothing that serves it yet."""

MOST_LINES = 10


def why(
    obj: Object, *, pods: Sequence[Object] = (), events: Sequence[Object] = (), now: float, language: str = "en"
) -> Verdict:
    """The verdict. `pods` are those the object owns or selects; `events` are about it or its pods, oldest first."""
    if obj.get("kind") == "Pod":
        obj = dict(mounts.explained(obj, events))
    pods = [dict(mounts.explained(pod, events)) for pod in pods]
    return _Judge(language, now).verdict(obj, pods, events)


def last_warning(events: Sequence[Object]) -> Object | None:
    """The start barrier of a job is no trouble, whatever kubelets call it."""
    return next((e for e in reversed(events) if e.get("type") == "Warning" and not gate.event_awaited(e)), None)


_POD_FAILED = re.compile(r"(?P<pod>\S+) failed: (?P<kind>[A-Za-z]+)(?: \(exit code (?P<code>\d+)\))?")


class _Judge:
    def __init__(self, language: str, now: float) -> None:
        self._say = functools.partial(say, language)
        self._now = now

    def verdict(self, obj: Object, pods: Sequence[Object], events: Sequence[Object]) -> Verdict:
        verdict = self._deletion(obj) or (self._pod(obj) if obj.get("kind") == "Pod" else self._of_owner(obj, pods))
        warning = last_warning(events)
        status = obj.get("status") or {}
        ended = bool(status.get("completionTime") and status.get("message"))  # what came later is no cause
        explained = ended or verdict.reason in SELF_EXPLAINING or verdict.reason == "Unschedulable"
        explained = explained or _cause(obj, pods) is not None or _says_all(obj, verdict)
        if verdict.state in (OK, DELETING) or explained or warning is None:
            return verdict
        message = _line(warning.get("message"))
        if message in verdict.text or any(said in message for said in _reported(obj)):
            return verdict
        about = warning.get("involvedObject") or {}
        other = about.get("name") not in (None, obj["metadata"].get("name"))
        name = f"{str(about.get('kind', '')).lower()}/{about.get('name')}"
        where = self._say("where", object=name) if other else ""
        said = self._detail(str(warning.get("reason") or ""), message)
        return verdict._replace(text=self._say("warning", text=verdict.text, where=where, warning=said))

    def _deletion(self, obj: Object) -> Verdict | None:
        meta = obj["metadata"]
        if not meta.get("deletionTimestamp"):
            return None
        finalizers = meta.get("finalizers") or ()
        if not finalizers:
            return Verdict(DELETING, self._say("deleting-grace"), "GracePeriod")
        holders = ", ".join(str(name) for name in finalizers)
        since = times.age(meta["deletionTimestamp"], self._now)
        if said := outcome.holding_deletion(obj):
            return Verdict(DELETING, self._say("deleting-waits", since=since, what=_line(said)), "InUse")
        return Verdict(DELETING, self._say("deleting-held", since=since, holders=holders), "Finalizers")

    # Pods

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
        return Verdict(OK, self._say("ended", why=_line(why)), ENDED_REASON)

    def _unplaced(self, pod: Object, spec: Object) -> Verdict | None:
        message = outcome.unschedulable(pod)
        if message:
            return Verdict(WAITING, self._say("unschedulable", message=_line(message)), "Unschedulable")
        gates = spec.get("schedulingGates") or ()
        if gates and not spec.get("nodeName"):
            names = ", ".join(str(gate.get("name")) for gate in gates)
            return Verdict(WAITING, self._say("gated", names=names), "SchedulingGated")
        return None

    def _container_trouble(self, pod: Object, status: Object) -> Verdict | None:
        job = str((controller_of(pod) or {}).get("name") or "")
        for name, state, last, restarts in _containers(status):
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
                return Verdict(FAILED, text, str(ended.get("reason") or "Error"), _last_lines(ended.get("message")))
        return None

    def _container_waits(self, name: str, waiting: Object, last: Object, restarts: int) -> Verdict:
        reason = str(waiting["reason"])
        state = FAILED if reason in SELF_EXPLAINING else WAITING
        if reason == "CrashLoopBackOff" and last:
            key = "crashed-once" if restarts == 1 else "crash-loop"
            text = self._say(key, name=name, ending=self._ending(last), restarts=restarts)
            return Verdict(state, text, reason, _last_lines(last.get("message")))
        what = self._detail(reason, first_and_last(str(waiting.get("message") or "")))
        text = self._say("container-waits", name=name, what=what)
        return Verdict(state, text, reason, _last_lines(waiting.get("message")))

    def _ending(self, terminated: Object) -> str:
        reason = str(terminated.get("reason") or "")
        detail = f" ({reason})" if reason not in ("", "Error", "Completed") else ""
        text = self._say("ending", code=terminated.get("exitCode"), detail=detail)
        said = verdict_of(str(terminated.get("message") or ""))
        return self._detail(text, said if detail else with_signal(terminated.get("exitCode"), said))

    def _pod_phase(self, phase: str, status: Object, spec: Object) -> Verdict:
        if phase == "Failed":
            reason = str(status.get("reason") or "Failed")
            what = self._detail(reason, _line(status.get("message")))
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

    # Workflows

    def _workflow(self, workflow: Object, pods: Sequence[Object]) -> Verdict | None:
        """What failed, or waits for somebody or for a node; none where a workflow succeeded or goes on."""
        from paddlecloud.cli.objects import workflow_steps

        status, name = workflow.get("status") or {}, workflow["metadata"]["name"]
        if (end := outcome.finished(workflow)) is not None:
            if end.state == "succeeded":
                return None
            text = self._detail(self._say("failed"), _line(workflow_steps.failure(workflow)))
            return Verdict(FAILED, text, str(status.get("phase")))
        if (workflow.get("spec") or {}).get("suspend"):
            return Verdict(WAITING, self._say("workflow-suspended", name=name), "Suspended")
        steps = workflow_steps.steps_of(workflow)
        if (step := workflow_steps.suspended(steps)) is not None:
            return Verdict(WAITING, self._say("step-suspended", step=step, name=name), "Suspended")
        for pod in pods:
            verdict = self._pod(pod) if not is_finished(pod) else None
            if verdict is not None and verdict.reason in _HOLDS_STEP:
                step = workflow_steps.step_of(pod, steps)
                return verdict._replace(text=self._say("step", step=step, text=verdict.text))
        if (found := workflow_steps.waiting(steps)) is not None:
            return Verdict(WAITING, self._say("step", step=found.step, text=_line(found.message)), "Pending")
        return None

    # Everything else

    def _of_owner(self, obj: Object, pods: Sequence[Object]) -> Verdict:
        """Its own verdict, and of a service whose newest revision does not answer, which one does."""
        verdict = self._owner(obj, pods)
        if not (serving := outcome.failed_beside(obj)):
            return verdict
        text = self._say("still-serves", text=verdict.text, serving=serving, name=obj["metadata"]["name"])
        return verdict._replace(text=text)

    def _owner(self, obj: Object, pods: Sequence[Object]) -> Verdict:
        if obj.get("kind") == WORKFLOWS.kind and (found := self._workflow(obj, pods)) is not None:
            return found
        refused = self._condition(obj, "Valid", "False")
        if refused is not None and outcome.finished(obj) is None:
            return refused  # all else follows from an older spec, or from none
        if (found := self._rollout(obj) or self._failed_canary(obj, pods)) is not None:
            return found
        own = self._conditions(obj) or self._phase(obj)
        if own is not None and (own.state == FAILED or own.reason == "Unschedulable"):
            return own._replace(details=_last_output(obj)) if own.state == FAILED else own
        if (cause := _cause(obj, pods)) is not None:
            text = self._detail(str((obj.get("status") or {})["phase"]), _line(cause.text))
            return Verdict(WAITING, text, cause.reason)
        if own is not None and _forms(obj) and outcome.message_of(obj):
            return own  # its controller says what it waits for
        verdicts = [(pod, self._pod(pod)) for pod in pods if not pod["metadata"].get("deletionTimestamp")]
        for state in (FAILED, WAITING):
            stuck = [(pod, verdict) for pod, verdict in verdicts if verdict.state == state]
            if stuck and (own is None or own.state != OK):
                pod, verdict = stuck[0]
                values = {"name": pod["metadata"]["name"], "text": verdict.text}
                if len(stuck) > 1:
                    return verdict._replace(
                        text=self._say("some-pods", count=len(stuck), total=len(verdicts), **values)
                    )
                return verdict._replace(text=self._say("one-pod", **values))
        return own or Verdict(OK, self._say("fine"))

    def _rollout(self, obj: Object) -> Verdict | None:
        """Of a service that serves, by which revision: the newest is still being rolled out, or went back."""
        found = outcome.rollout_of(obj)
        if not found or not outcome.is_true(obj, "Ready"):
            return None
        phase, said = str(found["phase"]), _line(found.get("message"))
        names = {"latest": found["latest"], "serving": found["serving"]}
        if phase == "WentBack":
            return Verdict(OK, self._say("went-back", why=said, name=obj["metadata"]["name"], **names), phase)
        due = f", {self._say('next-step', time=found['nextStepTime'])}" if found.get("nextStepTime") else ""
        text = self._say("rolling-out", percent=found.get("percent") or 0, step=found.get("step") or 0, **names)
        return Verdict(OK, self._detail(text + due, said), f"Rollout{phase}")

    def _failed_canary(self, obj: Object, pods: Sequence[Object]) -> Verdict | None:
        """Of a service that serves, and whose canary alone does not."""
        entry = outcome.condition(obj, "CanaryEndpointReady")
        if entry is None or entry.get("status") == "True" or not outcome.is_true(obj, "Ready"):
            return None
        own = [pod for pod in pods if (pod["metadata"].get("labels") or {}).get(ENDPOINT) == "canary"]
        canary = self._owner({**obj, "status": {"conditions": [entry]}}, own)
        if entry.get("status") != "False" and canary.state != FAILED:
            return None
        return Verdict(OK, self._say("canary-failed", text=canary.text), "CanaryFailed", canary.details)

    def _conditions(self, obj: Object) -> Verdict | None:
        """What the conditions say. The end of a job comes first, since a finished job is not Ready."""
        status = obj.get("status") or {}
        end = outcome.finished(obj)
        if end is not None:
            state = OK if end.state == "succeeded" else FAILED
            text = self._detail(self._say(end.state), self._failure_of(_line(end.message)))
            text = self._restarted(text, status) if state == OK else text
            return Verdict(state, text, str(status.get("reason") or end.state.title()))
        if outcome.is_true(obj, "Suspended") or status.get("phase") == "Suspended":
            return Verdict(WAITING, self._say("suspended"), "Suspended")
        message = outcome.unschedulable(obj)
        if message:
            return Verdict(WAITING, self._say("unschedulable", message=_line(message)), "Unschedulable")
        for names, bad in ((BAD_WHEN_TRUE, "True"), (BAD_WHEN_FALSE, "False"), (BAD_WHEN_FALSE, "Unknown")):
            for name in names:
                if (verdict := self._condition(obj, name, bad)) is not None:
                    return verdict
        if (obj.get("spec") or {}).get("unschedulable"):
            return Verdict(WAITING, self._say("cordoned"), "Cordoned")
        ready = outcome.condition(obj, "Ready") or outcome.condition(obj, "Available")
        if status.get("unavailableReplicas"):
            return None  # a Deployment that may lack all of its pods is Available without one: they say why
        return Verdict(OK, self._detail(self._say("ready"), outcome.remark(obj)), "Ready") if ready else None

    def _failure_of(self, message: str) -> str:
        """How the controller of training jobs says which pod failed (`failure.cause`), in the user's language; any
        other message as it is."""
        found = _POD_FAILED.match(message)
        if found is None:
            return message
        code = self._say("exit-code", code=found["code"]) if found["code"] else ""
        return self._say("job-pod-failed", pod=found["pod"], kind=found["kind"], code=code) + message[found.end() :]

    def _condition(self, obj: Object, name: str, bad: str) -> Verdict | None:
        entry = outcome.condition(obj, name)
        if entry is None or entry.get("status") != bad:
            return None
        said = self._detail(str(entry.get("reason") or ""), _line(entry.get("message")))
        text = self._say("condition", name=name, status=bad, what=said or self._say("no-reason"))
        return Verdict(WAITING, text, str(entry.get("reason") or name))

    def _phase(self, obj: Object) -> Verdict | None:
        status = obj.get("status") or {}
        phase = str(status.get("phase") or "")
        if phase:
            text = self._detail(phase, _line(outcome.message_of(obj)))
            good = phase in GOOD_PHASES_OF.get(str(obj.get("kind")), GOOD_PHASES)
            if good:
                return Verdict(OK, self._restarted(text, status), str(status.get("reason") or phase))
            return Verdict(WAITING, text, str(status.get("reason") or phase))
        wanted = (obj.get("spec") or {}).get("replicas")
        ready = int(status.get("readyReplicas") or 0)
        if isinstance(wanted, int) and ready < wanted:
            return Verdict(WAITING, self._say("replicas", ready=ready, wanted=wanted), "ReplicasNotReady")
        return None

    def _restarted(self, text: str, status: Object) -> str:
        """How often a training job was started again, and after what: a job that runs shows none of it otherwise.

        The first number is that of the column RESTARTS, which backoffLimit is about; what is nobody's fault is apart.
        """
        failures = status.get("failures") or [{}]
        last, count = failures[-1], int(status.get("restarts") or 0)
        ignored = sum(1 for one in failures if one.get("action") == "Ignore")
        uncounted = int(status.get("disruptions") or 0) + ignored
        if not count + uncounted or not last.get("time"):
            return text
        since = times.age(last["time"], self._now)
        key = "restarted-uncounted" if uncounted else "restarted"
        values = {"count": count, "uncounted": uncounted, "pod": last.get("pod"), "kind": last.get("failureClass")}
        return self._say(key, text=text, since=since, **values)

    def _detail(self, what: str, detail: str) -> str:
        repeats = what == detail  # conditions often carry their reason as message
        return self._say("detail", what=what, detail=detail) if what and detail and not repeats else what or detail


def _containers(status: Object) -> Iterator[tuple[str, Object, Object, int]]:
    """(name, state, how it ended last time, restarts), init containers first."""
    for field in ("initContainerStatuses", "containerStatuses"):
        for entry in status.get(field) or ():
            yield (
                str(entry.get("name")),
                entry.get("state") or {},
                (entry.get("lastState") or {}).get("terminated") or {},
                int(entry.get("restartCount") or 0),
            )


FORMING = frozenset(("Pending", "Starting", "Restarting", "Scaling"))


def _forms(obj: Object) -> bool:
    """Whether it is a training job that should run and does not yet."""
    return obj.get("kind") == PADDLEJOBS.kind and (obj.get("status") or {}).get("phase") in FORMING


def _cause(obj: Object, pods: Sequence[Object]) -> Cause | None:
    """Why a training job does not run, as its controller finds it; none where it could not even make its objects."""
    created = outcome.condition(obj, "Created") or {}
    if not _forms(obj) or created.get("status") == "False":
        return None
    return first_cause(pods, str(obj["metadata"]["name"]))


def _says_all(obj: Object, verdict: Verdict) -> bool:
    """Of a workflow that failed the step is known; its event only repeats that it failed."""
    return obj.get("kind") == WORKFLOWS.kind and (verdict.state == FAILED or verdict.reason == "Suspended")


def _reported(obj: Object) -> list[str]:
    """What the containers of a pod say of their state: an event that says it again adds nothing."""
    states = [part for _, state, _, _ in _containers(obj.get("status") or {}) for part in state.values()]
    return [said for part in states if isinstance(part, dict) and (said := _line(part.get("message")))]


def _last_output(obj: Object) -> tuple[str, ...]:
    """The end of what the program of a failed job printed."""
    failures = (obj.get("status") or {}).get("failures") or [{}]
    return _last_lines(failures[-1].get("message")) if isinstance(failures[-1], dict) else ()


def _last_lines(text: object) -> tuple[str, ...]:
    """The end of an output of several lines; one line is in the sentence already."""
    lines = str(text or "").strip().splitlines()
    return tuple(lines[-MOST_LINES:]) if len(lines) > 1 else ()


def _line(text: object) -> str:
    return " ".join(str(text or "").split())
