"""The Job controller's judgement: `decide(job, observed, now)` is pure and says everything to do.

The end of a Job comes in two steps, as in Kubernetes since 1.31: first what it will be (SuccessCriteriaMet,
FailureTarget), at which the remaining pods are ended, then, when they are gone, that it is (Complete, Failed).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from paddlecloud.kube.bursts import burst
from paddlecloud.kube.clock import parse_rfc3339, rfc3339
from paddlecloud.kube.conditions import condition_in, conditions_of, status_in, with_condition
from paddlecloud.kube.plan import Delete, Plan, PlannedEvent
from paddlecloud.kube.resource import JOBS, PODS, Object
from paddlecloud.local.workloads.job import build
from paddlecloud.local.workloads.job.failure import ConditionCause, counted, judge, patience
from paddlecloud.local.workloads.job.index_failures import IndexFailures
from paddlecloud.local.workloads.job.indexes import Indexes
from paddlecloud.local.workloads.job.members import Members, index_of, members_of
from paddlecloud.local.workloads.job.success import REACHED, by_policy
from paddlecloud.local.workloads.ownership import claim
from paddlecloud.local.workloads.pods import is_ready
from paddlecloud.local.workloads.replicaset import BURST, named_pods, worth

CONTROLLER = "kubernetes.io/job-controller"


@dataclass(frozen=True, slots=True)
class Observed:
    pods: tuple[Object, ...] = ()
    orphans: tuple[Object, ...] = ()


@dataclass(slots=True)
class _Case:
    """One pass: the Job, its pods, and what will be written."""

    job: Object
    members: Members
    now: float
    plan: Plan
    conditions: list[Object]
    start: str | None
    completed: Indexes
    failures: IndexFailures
    succeeded: int = 0
    failed: int = 0

    @property
    def spec(self) -> Object:
        return dict(self.job["spec"])

    @property
    def indexed(self) -> bool:
        return bool(self.job["spec"].get("completionMode") == "Indexed")

    def is_true(self, kind: str) -> bool:
        return status_in(self.conditions, kind) == "True"

    def set_condition(self, kind: str, status: str, why: ConditionCause) -> None:
        self.conditions = with_condition(
            self.conditions, kind, status, reason=why.reason, message=why.message, now=self.now
        )


def decide(job: Object, observed: Observed, now: float) -> Plan:
    meta, spec = job["metadata"], job["spec"]
    if meta.get("deletionTimestamp") or spec.get("managedBy", CONTROLLER) != CONTROLLER:
        return Plan()
    case = _open(job, observed, now)
    if case.is_true("Complete") or case.is_true("Failed"):
        return _expire(job, case.conditions, now)
    if not spec.get("suspend") and case.start is None:
        case.start = rfc3339(now)
    cause = _failure(case)
    if cause is not None:
        case.set_condition("FailureTarget", "True", cause)
    elif (success := _success(case)) is not None:
        case.set_condition("SuccessCriteriaMet", "True", success)
    if case.is_true("FailureTarget") or case.is_true("SuccessCriteriaMet"):
        _end(case)
    else:
        _suspend_or_resume(case)
        if spec.get("suspend"):
            _remove(case, case.members.active)
        else:
            _manage(case)
    case.plan.status = _status(case)
    return case.plan


def _open(job: Object, observed: Observed, now: float) -> _Case:
    pods, patches = claim(job, PODS, observed.pods, observed.orphans)
    members = members_of(pods)
    status = job.get("status") or {}
    below = job["spec"].get("completions") or 0
    done = Indexes.of((index for pod in members.succeeded if (index := index_of(pod)) is not None), below=below)
    done |= Indexes.parse(status.get("completedIndexes", ""), below=below)
    known = Indexes.parse(status.get("failedIndexes") or "", below=below)
    failures = IndexFailures(job, members.failed, known)
    case = _Case(job, members, now, Plan(patch=patches), conditions_of(job), status.get("startTime"), done, failures)
    case.succeeded = len(done) if case.indexed else max(len(members.succeeded), int(status.get("succeeded") or 0))
    case.failed = max(len(counted(job, members.failed)), int(status.get("failed") or 0))
    return case


# How it ends


def _failure(case: _Case) -> ConditionCause | None:
    if case.is_true("FailureTarget") or case.is_true("SuccessCriteriaMet"):
        return None  # decided before; nothing that happens now changes it
    if (cause := judge(case.job, case.members, case.failed)) is not None:
        return cause
    return _deadline(case) or case.failures.verdict(case.completed)


def _deadline(case: _Case) -> ConditionCause | None:
    limit = case.spec.get("activeDeadlineSeconds")
    if limit is None or case.spec.get("suspend") or case.start is None:
        return None
    left = parse_rfc3339(case.start) + int(limit) - case.now
    if left <= 0:
        return ConditionCause("DeadlineExceeded", "Job was active longer than specified deadline")
    case.plan.requeue_after(left)
    return None


def _success(case: _Case) -> ConditionCause | None:
    if case.is_true("FailureTarget") or case.is_true("SuccessCriteriaMet"):
        return None
    return by_policy(case.job, case.completed) or (REACHED if _is_done(case) else None)


def _is_done(case: _Case) -> bool:
    completions = case.spec.get("completions")
    if completions is None:  # a work queue: the first success says that the work is done, the others may finish
        return case.succeeded > 0 and not case.members.active and not case.members.leaving
    return case.succeeded >= int(completions)


def _end(case: _Case) -> None:
    """End what still runs; when nothing is left, the Job is over."""
    case.plan.after = None
    _remove(case, case.members.active)
    if case.members.active or case.members.leaving:
        return
    failed = case.is_true("FailureTarget")
    target = condition_in(case.conditions, "FailureTarget" if failed else "SuccessCriteriaMet") or {}
    cause = ConditionCause(target["reason"], target["message"])
    if failed:
        case.set_condition("Failed", "True", cause)
        case.plan.events.append(PlannedEvent(cause.reason, cause.message, type="Warning"))
    else:
        case.set_condition("Complete", "True", cause)
        case.plan.events.append(PlannedEvent("Completed", "Job completed"))


def _expire(job: Object, conditions: list[Object], now: float) -> Plan:
    """A finished Job with a time to live goes when it is over, and its pods with it."""
    ttl = job["spec"].get("ttlSecondsAfterFinished")
    if ttl is None:
        return Plan()
    end = condition_in(conditions, "Complete") or condition_in(conditions, "Failed") or {}
    left = parse_rfc3339(end["lastTransitionTime"]) + int(ttl) - now
    if left > 0:
        return Plan(after=left)
    meta = job["metadata"]
    return Plan(delete=[Delete(JOBS, meta["name"], meta["namespace"], uid=meta["uid"])])


# How it goes on


def _suspend_or_resume(case: _Case) -> None:
    if case.spec.get("suspend"):
        if not case.is_true("Suspended"):
            case.set_condition("Suspended", "True", ConditionCause("JobSuspended", "Job suspended"))
            case.plan.events.append(PlannedEvent("Suspended", "Job suspended"))
        case.start = None
    elif case.is_true("Suspended"):
        case.set_condition("Suspended", "False", ConditionCause("JobResumed", "Job resumed"))
        case.plan.events.append(PlannedEvent("Resumed", "Job resumed"))
        case.start = rfc3339(case.now)


def _manage(case: _Case) -> None:
    """As many pods at once as wanted, and no more than there is work for."""
    parallelism = int(case.spec.get("parallelism", 1))
    wait_for_leaving = case.spec.get("podReplacementPolicy") == "Failed"
    in_the_way = case.members.leaving if wait_for_leaving else ()
    if case.indexed:
        create, surplus = _by_index(case, parallelism, in_the_way)
    else:
        create, surplus = _by_number(case, parallelism, in_the_way)
    _remove(case, surplus)
    if not create:
        return
    if not case.failures.limited:  # with a limit for each index, each waits for itself
        wait = patience(case.members, counted(case.job, case.members.failed), case.now)
        if wait > 0:
            case.plan.requeue_after(wait)
            return
    case.plan.create += create
    case.plan.events.append(
        PlannedEvent("SuccessfulCreate", named_pods("Created", [o["metadata"]["name"] for o in create]), if_done=True)
    )


Changes = tuple[Sequence[Object], Sequence[Object]]
"""Pods to create, and pods there are too many of."""


def _by_number(case: _Case, parallelism: int, in_the_way: Sequence[Object]) -> Changes:
    active = case.members.active
    completions = case.spec.get("completions")
    if completions is not None:
        wanted = min(parallelism, int(completions) - case.succeeded)
    else:
        wanted = min(parallelism, len(active)) if case.succeeded else parallelism
    missing = min(wanted - len(active) - len(in_the_way), BURST)
    if missing > 0:
        return [*build.plain_pods(case.job, burst(case.job["spec"]["template"], missing), _taken(case.members))], ()
    return (), sorted(active, key=worth)[: max(0, len(active) - wanted)]


def _by_index(case: _Case, parallelism: int, in_the_way: Sequence[Object]) -> Changes:
    """One pod for each index that has neither completed nor failed, the lowest first."""
    over = case.completed | case.failures.indexes
    completions = int(case.spec.get("completions") or 0)
    kept: dict[int, Object] = {}
    surplus: list[Object] = []
    for pod in case.members.active:
        index = index_of(pod)
        if index is None or index in kept or index in over or index >= completions:
            surplus.append(pod)
        else:
            kept[index] = pod
    if len(kept) > parallelism:
        surplus += [kept.pop(index) for index in sorted(kept, reverse=True)[: len(kept) - parallelism]]
    blocked = {index_of(pod) for pod in in_the_way}
    room = burst(case.job["spec"]["template"], min(parallelism - len(kept) - len(in_the_way), BURST))
    pending = (i for i in over.missing(below=completions) if i not in kept and i not in blocked)
    chosen = [index for index, _ in zip(pending, range(room), strict=False)]
    waits = {index: wait for index in chosen if (wait := case.failures.wait(index, case.now)) > 0}
    if waits:
        case.plan.requeue_after(min(waits.values()))
    now = [index for index in chosen if index not in waits]
    return [*build.indexed_pods(case.job, now, _taken(case.members), case.failures.annotations)], surplus


def _taken(members: Members) -> list[str]:
    everyone = (*members.active, *members.leaving, *members.succeeded, *members.failed)
    return [pod["metadata"]["name"] for pod in everyone]


def _remove(case: _Case, pods: Iterable[Object]) -> None:
    names = []
    for pod in pods:
        meta = pod["metadata"]
        names.append(meta["name"])
        case.plan.delete.append(Delete(PODS, meta["name"], meta["namespace"], uid=meta["uid"]))
    if names:
        case.plan.events.append(PlannedEvent("SuccessfulDelete", named_pods("Deleted", names), if_done=True))


def _status(case: _Case) -> Object:
    members = case.members
    counts = {"active": len(members.active), "succeeded": case.succeeded, "failed": case.failed}
    status: Object = {
        **{name: count for name, count in counts.items() if count},
        "ready": sum(is_ready(pod) for pod in members.active),
        "terminating": len(members.leaving),
    }
    if case.start:
        status["startTime"] = case.start
    if case.indexed and case.completed:
        status["completedIndexes"] = str(case.completed)
    if case.failures.limited:
        status["failedIndexes"] = str(case.failures.indexes)
    if case.conditions:
        status["conditions"] = case.conditions
    if (complete := condition_in(case.conditions, "Complete")) is not None:
        status["completionTime"] = complete["lastTransitionTime"]
    return status
