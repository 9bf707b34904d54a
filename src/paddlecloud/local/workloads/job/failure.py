"""When failed pods end a Job, when they do not count, and how long to wait before the next try. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from paddlecloud.kube.backoff import exponential
from paddlecloud.kube.pods import NODE_SHUTDOWN
from paddlecloud.kube.resource import Object
from paddlecloud.local.workloads.job.members import Members, finished_at, restarts_of

FIRST_DELAY, LONGEST_DELAY = 10.0, 600.0


class ConditionCause(NamedTuple):
    """Why a condition of a Job holds, in the words of Kubernetes."""

    reason: str
    message: str


def counted(job: Object, failed: Iterable[Object]) -> list[Object]:
    """The failed pods that count: all but those the Job's policy ignores."""
    return [pod for pod in without_shutdowns(failed) if action_for(job, pod) != "Ignore"]


def action_for(job: Object, pod: Object) -> str:
    """What the Job's policy does about a failed pod: Count where no rule matches."""
    found = _rule(job, pod)
    return str(found[1]["action"]) if found else "Count"


def without_shutdowns(failed: Iterable[Object]) -> list[Object]:
    """Without pods that ended with the platform: a planned stop is no failure of the Job.

    Kubernetes counts these, unless the Job's policy ignores DisruptionTarget; but there a Job outlives its nodes.
    """
    return [pod for pod in failed if (pod.get("status") or {}).get("reason") != NODE_SHUTDOWN]


def judge(job: Object, members: Members, failures: int) -> ConditionCause | None:
    for pod in without_shutdowns(members.failed):
        if (found := _rule(job, pod)) and found[1]["action"] == "FailJob":
            return ConditionCause(
                "PodFailurePolicy", f"{_what_matched(pod, found[1])} matching FailJob rule at index {found[0]}"
            )
    spec = job["spec"]
    limit = int(spec.get("backoffLimit", 6))
    if failures > limit or _restarted_too_often(spec, members.active, limit):
        return ConditionCause("BackoffLimitExceeded", "Job has reached the specified backoff limit")
    return None


def _restarted_too_often(spec: Object, active: Iterable[Object], limit: int) -> bool:
    """Pods that are restarted in place count by their restarts."""
    if ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy") != "OnFailure":
        return False
    restarts = sum(map(restarts_of, active))
    return restarts > 0 if limit == 0 else restarts >= limit


def patience(members: Members, failed: Sequence[Object], now: float) -> float:
    """Seconds to wait before pods are made again: 10, 20, 40 … after the failures since the last success."""
    last_success = max(map(finished_at, members.succeeded), default=0.0)
    ends = [end for pod in failed if (end := finished_at(pod)) > last_success]
    if not ends:
        return 0.0
    return max(0.0, max(ends) + delay(len(ends)) - now)


def delay(failures: int) -> float:
    return exponential(failures - 1, base=FIRST_DELAY, cap=LONGEST_DELAY)


# podFailurePolicy


def _rule(job: Object, pod: Object) -> tuple[int, Object] | None:
    """The first rule that matches a failed pod, with its place in the list."""
    for index, rule in enumerate((job["spec"].get("podFailurePolicy") or {}).get("rules") or ()):
        if (codes := rule.get("onExitCodes")) and _matching_container(pod, codes) is not None:
            return index, rule
        if any(_has_condition(pod, pattern) for pattern in rule.get("onPodConditions") or ()):
            return index, rule
    return None


def _matching_container(pod: Object, codes: Object) -> Object | None:
    status = pod.get("status") or {}
    for container in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        if codes.get("containerName") not in (None, container["name"]):
            continue
        code = int(((container.get("state") or {}).get("terminated") or {}).get("exitCode") or 0)
        if code and (code in codes["values"]) == (codes["operator"] == "In"):
            return dict(container)
    return None


def _has_condition(pod: Object, pattern: Object) -> bool:
    return any(
        condition.get("type") == pattern["type"] and condition.get("status") == pattern.get("status", "True")
        for condition in (pod.get("status") or {}).get("conditions") or ()
    )


def _what_matched(pod: Object, rule: Object) -> str:
    name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
    if (codes := rule.get("onExitCodes")) and (container := _matching_container(pod, codes)):
        code = container["state"]["terminated"]["exitCode"]
        return f"Container {container['name']} for pod {name} failed with exit code {code}"
    kinds = next(p["type"] for p in rule["onPodConditions"] if _has_condition(pod, p))
    return f"Pod {name} has condition {kinds}"
