"""After the end: which pods go, which stay, and when the job itself is forgotten.

A finished job never creates anything. Pods that are kept but still run are ended through their own deadline, which
keeps object and logs; parameter servers, for one, never exit by themselves. Nobody but the program can make that an
exit code of 0, and on clusters kubectl prints `Error` for any other: the pod's annotation and the job's message say
that it was meant.
"""

from __future__ import annotations

from paddlecloud.api.paddlejob.ending import ENDED_ANNOTATION
from paddlecloud.controllers.paddlejob import names
from paddlecloud.controllers.paddlejob.decision.case import JobCase
from paddlecloud.controllers.paddlejob.decision.gang_formation import drop_gang, patch
from paddlecloud.controllers.paddlejob.observe import PodView
from paddlecloud.kube.clock import parse_rfc3339
from paddlecloud.kube.plan import Delete, Plan, set_finalizers
from paddlecloud.kube.resource import PADDLEJOBS, PODS, SERVICES, Object

CLEANED: dict[str, frozenset[str]] = {
    "Always": frozenset({"Completed", "Failed"}),
    "OnCompletion": frozenset({"Completed"}),
    "OnFailure": frozenset({"Failed"}),
    "Running": frozenset(),
    "Never": frozenset(),
}
"""cleanPodPolicy: the phases in which all pods are deleted. `Running` deletes only those that have not ended."""


def clean_up(case: JobCase, plan: Plan, phase: str) -> int:
    """How many pods are ended and kept."""
    settings = case.settings
    ended = 0
    everything = phase in CLEANED[settings.clean_pod_policy]
    for pod in case.observed.pods:
        if pod.deleting:
            continue
        never_started = not pod.ended and not pod.node
        if everything or never_started or (settings.clean_pod_policy == "Running" and not pod.ended):
            plan.delete.append(Delete(PODS, pod.name, settings.namespace, uid=pod.uid))
        elif not pod.ended and not _ending(pod):
            why = {"annotations": {ENDED_ANNOTATION: f"on purpose: its job is {phase}"}}
            plan.patch.append(patch(PODS, pod.raw, {"metadata": why, "spec": {"activeDeadlineSeconds": 1}}))
            ended += 1
    if everything and case.observed.service is not None:
        plan.delete.append(Delete(SERVICES, settings.name, settings.namespace, uid=_uid(case.observed.service)))
    drop_gang(case, plan)
    return ended


def _uid(obj: Object) -> str:
    return str(obj["metadata"].get("uid", ""))


def _ending(pod: PodView) -> bool:
    return pod.spec.get("activeDeadlineSeconds") == 1


def expire(case: JobCase, plan: Plan) -> None:
    """Delete the job when its time after the end is over."""
    ttl, ended = case.settings.ttl_seconds_after_finished, case.old.completion_time
    if ttl is None or not ended:
        return
    left = parse_rfc3339(ended) + ttl - case.now
    if left > 0:
        plan.requeue_after(left)
        return
    meta = case.job["metadata"]
    plan.delete.append(Delete(PADDLEJOBS, meta["name"], meta["namespace"], uid=meta["uid"]))


def remove_original_finalizer(case: JobCase, plan: Plan) -> None:
    """Take off a deleted job what the original operator would have taken off: there is nothing left for it to do."""
    meta = case.job["metadata"]
    marks = meta.get("finalizers") or []
    if names.ORIGINAL_FINALIZER in marks:
        kept = [mark for mark in marks if mark != names.ORIGINAL_FINALIZER]
        plan.patch.append(set_finalizers(case.job, kept))
