"""The StatefulSet controller's judgement: `decide(stateful_set, observed, now)` is pure and says everything to do.

With the policy OrderedReady one thing happens at a time: numbers come into being upwards, each when all below are
available, and leave downwards. Parallel drops the waiting, not the identities; a pass creates `BURST` pods at most. An
update replaces pods downwards to the partition, the next when the last is available. One thing is better than in
Kubernetes: a pod of an update that never gets ready does not block the next one, so `kubectl rollout undo` heals a
broken update. A pod of the revision that all pods had is waited for, as there, unless no pod of the set is ready.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from paddlecloud.kube.bursts import burst
from paddlecloud.kube.conditions import conditions_of
from paddlecloud.kube.plan import Delete, Plan, PlannedEvent
from paddlecloud.kube.pods import is_finished, is_leaving
from paddlecloud.kube.resource import PERSISTENTVOLUMECLAIMS, PODS, Object
from paddlecloud.local.workloads import revisions
from paddlecloud.local.workloads.ownership import claim
from paddlecloud.local.workloads.pods import is_available, is_ready, next_available
from paddlecloud.local.workloads.replicaset import BURST
from paddlecloud.local.workloads.statefulset.identity import (
    claim_name,
    claim_templates,
    claims_for,
    ordinal_of,
    ordinals,
    pod_for,
    retention,
    revision_of,
)

HASH = "controller.kubernetes.io/hash"


@dataclass(frozen=True, slots=True)
class Observed:
    """`claims` are those of the namespace that a template of the set could have made."""

    pods: tuple[Object, ...] = ()
    orphans: tuple[Object, ...] = ()
    revisions: tuple[Object, ...] = ()
    claims: tuple[Object, ...] = ()


class _Revisions(NamedTuple):
    """Names of the revision all pods had and of the one they are to get, and the templates behind names."""

    current: str
    update: str
    templates: dict[str, Object]


@dataclass(slots=True)
class _Case:
    stateful_set: Object
    pods: dict[int, Object]
    claims: dict[str, Object]
    revisions: _Revisions
    now: float
    plan: Plan

    @property
    def min_ready(self) -> int:
        return int(self.stateful_set["spec"].get("minReadySeconds") or 0)

    @property
    def in_order(self) -> bool:
        return bool(self.stateful_set["spec"].get("podManagementPolicy") != "Parallel")

    @property
    def partition(self) -> int | None:
        """Numbers from here on get the newest template; None when nobody but a user replaces pods."""
        strategy = self.stateful_set["spec"].get("updateStrategy") or {}
        if strategy.get("type") == "OnDelete":
            return None
        return ordinals(self.stateful_set).start + int((strategy.get("rollingUpdate") or {}).get("partition") or 0)

    def wanted_revision(self, ordinal: int) -> str:
        behind = self.partition is not None and ordinal < self.partition
        return self.revisions.current if behind else self.revisions.update

    def is_good(self, pod: Object) -> bool:
        return not is_leaving(pod) and is_available(pod, self.min_ready, self.now)


def decide(stateful_set: Object, observed: Observed, now: float) -> Plan:
    if stateful_set["metadata"].get("deletionTimestamp"):
        return Plan()
    plan = Plan()
    named = [pod for pod in observed.orphans if ordinal_of(stateful_set, pod["metadata"]["name"]) is not None]
    pods, plan.patch = claim(stateful_set, PODS, observed.pods, named)
    numbered = {
        ordinal: pod for pod in pods if (ordinal := ordinal_of(stateful_set, pod["metadata"]["name"])) is not None
    }
    claims = {claim["metadata"]["name"]: claim for claim in observed.claims}
    found = _settle(stateful_set, observed.revisions, plan)
    case = _Case(stateful_set, numbered, claims, found, now, plan)
    if _provide(case) and _condemn(case):
        _update(case)
    _drop_claims(case)
    plan.status = _status(case)
    live = {found.current, found.update, *map(revision_of, numbered.values())}
    revisions.forget(stateful_set, observed.revisions, live, plan)
    plan.after = next_available(numbered.values(), case.min_ready, now)
    return plan


def _settle(stateful_set: Object, known: Sequence[Object], plan: Plan) -> _Revisions:
    same = revisions.newest(stateful_set, known, plan, label=HASH)
    templates = {revision["metadata"]["name"]: revisions.template_in(revision) for revision in (*known, same)}
    update = same["metadata"]["name"]
    current = (stateful_set.get("status") or {}).get("currentRevision") or update
    return _Revisions(current if current in templates else update, update, templates)


def _provide(case: _Case) -> bool:
    """Every number its pod, upwards; True when all are there and nothing has to be waited for.

    Numbers beyond the first `BURST` missing ones, fewer of a large template, are left to later passes: a set may ask
    for two billion.
    """
    complete, created = True, 0
    most = burst(case.stateful_set["spec"], BURST)
    for ordinal in ordinals(case.stateful_set):
        pod = case.pods.get(ordinal)
        if pod is None:
            if created >= most:
                return False
            created += _create(case, ordinal)
        elif is_finished(pod):
            _delete(case, pod, "RecreatingFailedPod")
        elif case.is_good(pod):
            continue
        elif case.in_order and _blocks_the_way(case, ordinal, pod):
            _delete(case, pod, "RecreatingOutdatedPod")
        if case.in_order:
            return False
        complete = complete and pod is not None and not is_finished(pod)
    return complete


def _blocks_the_way(case: _Case, ordinal: int, pod: Object) -> bool:
    if case.partition is None or is_ready(pod) or is_leaving(pod):
        return False
    revision = revision_of(pod)
    proven = revision == case.revisions.current and any(map(is_ready, case.pods.values()))
    return revision != case.wanted_revision(ordinal) and not proven


def _condemn(case: _Case) -> bool:
    """Numbers beyond the wanted ones go, downwards; True when none is left.

    In order, a pod that is not available holds this up unless it is the only one: its peers may need it to hand over
    their data (processCondemned in pkg/controller/statefulset/stateful_set_control.go).
    """
    wanted = ordinals(case.stateful_set)
    condemned = sorted((ordinal for ordinal in case.pods if ordinal not in wanted), reverse=True)
    lowest_ill = min((ordinal for ordinal, pod in case.pods.items() if not case.is_good(pod)), default=None)
    for ordinal in condemned:
        pod = case.pods[ordinal]
        if case.in_order and not case.is_good(pod) and ordinal != lowest_ill:
            return False
        if not is_leaving(pod):
            _delete(case, pod)
        if case.in_order:
            return False
    return not condemned


def _update(case: _Case) -> None:
    """The highest pod that is behind is replaced, once those above it are available again."""
    for ordinal in reversed(ordinals(case.stateful_set)):
        if case.partition is None or ordinal < case.partition:
            return
        pod = case.pods[ordinal]
        if revision_of(pod) != case.revisions.update and not is_leaving(pod):
            _delete(case, pod)
            return
        if not case.is_good(pod):
            return


def _create(case: _Case, ordinal: int) -> bool:
    """Whether the pod can be created now."""
    owner = case.stateful_set
    revision = case.wanted_revision(ordinal)
    pod = pod_for(owner, case.revisions.templates[revision], ordinal, revision)
    name, set_name = pod["metadata"]["name"], owner["metadata"]["name"]
    for wanted in claims_for(owner, ordinal):
        held = case.claims.get(wanted["metadata"]["name"])
        if held is None:
            case.plan.create.append(wanted)
            text = f"create Claim {wanted['metadata']['name']} Pod {name} in StatefulSet {set_name} success"
            case.plan.events.append(PlannedEvent("SuccessfulCreate", text, if_done=True))
        elif held["metadata"].get("deletionTimestamp"):
            return False  # a pod must not start on data that is about to go
    case.plan.create.append(pod)
    case.plan.events.append(
        PlannedEvent("SuccessfulCreate", f"create Pod {name} in StatefulSet {set_name} successful", if_done=True)
    )
    return True


def _delete(case: _Case, pod: Object, reason: str = "SuccessfulDelete") -> None:
    meta = pod["metadata"]
    case.plan.delete.append(Delete(PODS, meta["name"], meta["namespace"], uid=meta["uid"]))
    text = f"delete Pod {meta['name']} in StatefulSet {case.stateful_set['metadata']['name']} successful"
    case.plan.events.append(PlannedEvent(reason, text, if_done=True))


def _drop_claims(case: _Case) -> None:
    """Where scaling down is to free the volumes too: the claims of numbers that are gone."""
    owner = case.stateful_set
    if retention(owner, "whenScaled") != "Delete":
        return
    wanted = ordinals(owner)
    for template in claim_templates(owner):
        for name, held in case.claims.items():
            ordinal = ordinal_of(owner, name, prefix=f"{template['metadata']['name']}-")
            if ordinal is None or ordinal in wanted or ordinal in case.pods:
                continue
            meta = held["metadata"]
            if not meta.get("deletionTimestamp"):
                assert name == claim_name(owner, template, ordinal)
                case.plan.delete.append(Delete(PERSISTENTVOLUMECLAIMS, name, meta["namespace"], uid=meta["uid"]))


def _status(case: _Case) -> Object:
    owner, (current, update, _) = case.stateful_set, case.revisions
    pods = [pod for pod in case.pods.values() if not is_finished(pod)]
    staying = [pod for pod in pods if not is_leaving(pod)]
    wanted = int(owner["spec"].get("replicas", 1))
    ready = sum(map(is_ready, pods))
    updated = sum(revision_of(pod) == update for pod in staying)
    if case.partition is not None and updated == wanted == ready == len(pods):
        current = update  # the rollout is complete
    counts = {
        "readyReplicas": ready,
        "currentReplicas": sum(revision_of(pod) == current for pod in staying),
        "updatedReplicas": updated,
    }
    conditions = conditions_of(owner)
    return {
        "observedGeneration": owner["metadata"].get("generation", 0),
        "replicas": len(pods),
        **{name: count for name, count in counts.items() if count},
        "availableReplicas": sum(case.is_good(pod) for pod in pods),
        "currentRevision": current,
        "updateRevision": update,
        "collisionCount": 0,
        **({"conditions": conditions} if conditions else {}),
    }
