"""One true sentence on why an object is as it is: the first line of `describe`, the verdict of `explain KIND/NAME`.

Pure: (object, its pods, its events, now) → text. The sentence comes from what the cluster wrote down (deletion,
conditions, container states, phase, the last Warning event), in that order of weight, and from nowhere else. Of a
PaddleJob it is the sentence of its status: both are found by `api.paddlejob.cause`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from paddlecloud.api import mounts
from paddlecloud.api.names import ENDPOINT
from paddlecloud.api.paddlejob import gate
from paddlecloud.api.paddlejob.cause import Cause, first_cause
from paddlecloud.cli import times
from paddlecloud.cli.objects import outcome
from paddlecloud.cli.objects.pod_verdict import DELETING as DELETING
from paddlecloud.cli.objects.pod_verdict import FAILED as FAILED
from paddlecloud.cli.objects.pod_verdict import OK as OK
from paddlecloud.cli.objects.pod_verdict import SELF_EXPLAINING, PodJudge, containers, last_lines, line
from paddlecloud.cli.objects.pod_verdict import WAITING as WAITING
from paddlecloud.cli.objects.pod_verdict import Verdict as Verdict
from paddlecloud.kube.argo import WORKFLOWS
from paddlecloud.kube.pods import is_finished
from paddlecloud.kube.resource import PADDLEJOBS, Object

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

_HOLDS_STEP = SELF_EXPLAINING | {"Unschedulable", "SchedulingGated"}
"""Reasons why the pod of a step does not start that say more than that it is on its way."""

GOOD_PHASES = frozenset(("Running", "Active", "Bound", "Ready", "Available", "Inqueue"))
GOOD_PHASES_OF = {"SampleSet": frozenset(("Ready",))}
"""Where a word means something else: a set that is Bound has a volume, and nothing that serves it yet."""


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


class _Judge(PodJudge):
    def verdict(self, obj: Object, pods: Sequence[Object], events: Sequence[Object]) -> Verdict:
        verdict = self._deletion(obj) or (self._pod(obj) if obj.get("kind") == "Pod" else self._of_owner(obj, pods))
        warning = last_warning(events)
        status = obj.get("status") or {}
        ended = bool(status.get("completionTime") and status.get("message"))  # what came later is no cause
        explained = ended or verdict.reason in SELF_EXPLAINING or verdict.reason == "Unschedulable"
        explained = explained or _cause(obj, pods) is not None or _says_all(obj, verdict)
        if verdict.state in (OK, DELETING) or explained or warning is None:
            return verdict
        message = line(warning.get("message"))
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
            return Verdict(DELETING, self._say("deleting-waits", since=since, what=line(said)), "InUse")
        return Verdict(DELETING, self._say("deleting-held", since=since, holders=holders), "Finalizers")

    # Workflows

    def _workflow(self, workflow: Object, pods: Sequence[Object]) -> Verdict | None:
        """What failed, or waits for somebody or for a node; none where a workflow succeeded or goes on."""
        from paddlecloud.cli.objects import workflow_steps

        status, name = workflow.get("status") or {}, workflow["metadata"]["name"]
        if (end := outcome.finished(workflow)) is not None:
            if end.state == "succeeded":
                return None
            text = self._detail(self._say("failed"), line(workflow_steps.failure(workflow)))
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
            return Verdict(WAITING, self._say("step", step=found.step, text=line(found.message)), "Pending")
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
            text = self._detail(str((obj.get("status") or {})["phase"]), line(cause.text))
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
        phase, said = str(found["phase"]), line(found.get("message"))
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
            text = self._detail(self._say(end.state), self._failure_of(line(end.message)))
            text = self._restarted(text, status) if state == OK else text
            return Verdict(state, text, str(status.get("reason") or end.state.title()))
        if outcome.is_true(obj, "Suspended") or status.get("phase") == "Suspended":
            return Verdict(WAITING, self._say("suspended"), "Suspended")
        message = outcome.unschedulable(obj)
        if message:
            return Verdict(WAITING, self._say("unschedulable", message=line(message)), "Unschedulable")
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
        said = self._detail(str(entry.get("reason") or ""), line(entry.get("message")))
        text = self._say("condition", name=name, status=bad, what=said or self._say("no-reason"))
        return Verdict(WAITING, text, str(entry.get("reason") or name))

    def _phase(self, obj: Object) -> Verdict | None:
        status = obj.get("status") or {}
        phase = str(status.get("phase") or "")
        if phase:
            text = self._detail(phase, line(outcome.message_of(obj)))
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
    states = [part for _, state, _, _ in containers(obj.get("status") or {}) for part in state.values()]
    return [said for part in states if isinstance(part, dict) and (said := line(part.get("message")))]


def _last_output(obj: Object) -> tuple[str, ...]:
    """The end of what the program of a failed job printed."""
    failures = (obj.get("status") or {}).get("failures") or [{}]
    return last_lines(failures[-1].get("message")) if isinstance(failures[-1], dict) else ()
