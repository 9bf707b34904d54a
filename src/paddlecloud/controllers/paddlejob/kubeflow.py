"""Kubeflow's PaddleJob, run by ours: a job of `kubeflow.org/v1` owns one of `batch.paddlepaddle.org/v1`.

The second is converted from the first (`api.kubeflow`), kept in step with it, and what becomes of it is written to the
first in Kubeflow's words. Nothing else is done here: pods, restarts and limits are the PaddleJob controller's business.
Not for clusters where Kubeflow's own training operator looks after the kind.
"""

from __future__ import annotations

from typing import Any

from paddlecloud.api import kubeflow
from paddlecloud.api.paddlejob import validate
from paddlecloud.api.problems import DecodeError, encode
from paddlecloud.controllers.operator import Operator
from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import Clock, rfc3339
from paddlecloud.kube.conditions import condition_in, conditions_of, dated
from paddlecloud.kube.controller import Hooks
from paddlecloud.kube.plan import Patch, Plan, PlannedEvent, merge_diff
from paddlecloud.kube.resource import (
    KUBEFLOW_PADDLEJOBS,
    PADDLEJOBS,
    Object,
    controller_of,
    key_of,
    owner_reference,
)

_TYPES = ("Created", "Running", "Restarting", "Succeeded", "Failed", "Suspended")
"""Conditions that mean the same in both kinds; Kubeflow's column shows the last one of the list."""

_REPLICAS = {"ps": "Master", "worker": "Worker"}


def decide(job: Object, ours: Object | None, now: float) -> Plan:
    """Make or adjust the converted job, and mirror its status. `ours` is the PaddleJob of the same name."""
    if job["metadata"].get("deletionTimestamp"):
        return Plan()
    try:
        converted = kubeflow.convert(kubeflow.decode(job))
    except DecodeError as error:
        return _refuse(job, str(error), now)
    wanted = encode(converted)
    problems = "; ".join(map(str, validate(converted)))
    if ours is None and problems:
        return _refuse(job, problems, now)
    if ours is None:
        return Plan(
            create=[_child(job, wanted)],
            events=[PlannedEvent("Created", "created a PaddleJob to run this one", if_done=True)],
        )
    if (controller_of(ours) or {}).get("uid") != job["metadata"]["uid"]:
        text = f"a PaddleJob {ours['metadata']['name']} exists that is not made from this one: rename either"
        return Plan(status=_refused(job, text, now))
    plan = Plan(status=_mirror(job, ours, now))
    changes = merge_diff(ours.get("spec") or {}, wanted["spec"])
    if changes and problems:  # what runs goes on as it was: its API would refuse the change
        plan.events.append(PlannedEvent("InvalidSpec", f"the job goes on unchanged: {problems}", "Warning"))
    elif changes:
        meta = ours["metadata"]
        patch = Patch(PADDLEJOBS, meta["name"], meta["namespace"], {"spec": changes}, seen=meta.get("resourceVersion"))
        plan.patch.append(patch)
    return plan


def _refuse(job: Object, text: str, now: float) -> Plan:
    return Plan(status=_refused(job, text, now), events=[PlannedEvent("InvalidSpec", text, "Warning")])


def _child(job: Object, wanted: Object) -> Object:
    meta = job["metadata"]
    wanted["metadata"] = {
        "name": meta["name"],
        "namespace": meta["namespace"],
        "labels": dict(meta.get("labels") or {}),
        "annotations": {kubeflow.ORIGIN_ANNOTATION: kubeflow.DECLARATION.api_version},
        "ownerReferences": [owner_reference(job)],
    }
    return wanted


def _mirror(job: Object, ours: Object, now: float) -> Object:
    """Kubeflow's status: its conditions in order of time, counters by replica type, and the times."""
    status = ours.get("status") or {}
    conditions = [dict(condition) for condition in status.get("conditions") or () if condition["type"] in _TYPES]
    conditions.sort(key=lambda c: (c["status"] == "True", c.get("lastTransitionTime") or "", _TYPES.index(c["type"])))
    mirrored: Object = {"conditions": conditions, "replicaStatuses": {}}
    for role, name in _REPLICAS.items():
        counts = status.get(role)
        if counts:
            active = sum(int(counts.get(state) or 0) for state in ("starting", "running"))
            found = {"active": active, "succeeded": counts.get("succeeded"), "failed": counts.get("failed")}
            kept: dict[str, Any] = {key: value for key, value in found.items() if value}
            mirrored["replicaStatuses"][name] = {**kept, "selector": counts.get("selector", "")}
    for field in ("startTime", "completionTime"):
        if status.get(field):
            mirrored[field] = status[field]
    old = {key: value for key, value in (job.get("status") or {}).items() if key != "lastReconcileTime"}
    return {**mirrored, "lastReconcileTime": rfc3339(now)} if mirrored != old else dict(job["status"])


def _refused(job: Object, text: str, now: float) -> Object:
    failed = {"type": "Failed", "status": "True", "reason": "InvalidSpec", "message": text}
    return {"conditions": [dated(failed, condition_in(conditions_of(job), "Failed"), now)]}


class KubeflowPaddleJobController(Operator[Object | None, Plan]):
    """What it observes is the PaddleJob of the same name."""

    def __init__(
        self,
        client: Client,
        *,
        namespace: str | None = None,
        clock: Clock | None = None,
        workers: int = 2,
        hooks: Hooks | None = None,
    ) -> None:
        super().__init__(
            client,
            "kubeflow-paddlejob",
            component="kubeflow-paddlejob-controller",
            namespace=namespace,
            clock=clock,
            workers=workers,
            hooks=hooks,
        )
        theirs = self.informer(KUBEFLOW_PADDLEJOBS)
        self.primary = (theirs,)
        self._ours = self.informer(PADDLEJOBS)
        self.controller.watch(theirs, expectations=self.expectations)
        self.controller.watch_owned(self._ours, owner_kind=KUBEFLOW_PADDLEJOBS, expectations=self.expectations)

    async def observe(self, job: Object) -> Object | None:
        return self._ours.cache.get(key_of(job))

    def decide(self, job: Object, ours: Object | None, now: float) -> Plan:
        return decide(job, ours, now)
