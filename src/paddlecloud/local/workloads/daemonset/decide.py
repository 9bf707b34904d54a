"""The DaemonSet controller's judgement: `decide(daemon_set, observed, now)` is pure and says everything to do.

First every node gets what it lacks and loses what it should not have; only when nothing of that is left are pods
replaced for a new template.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from paddlecloud.kube.bursts import burst
from paddlecloud.kube.conditions import conditions_of
from paddlecloud.kube.plan import Delete, Plan, PlannedEvent
from paddlecloud.kube.pods import is_leaving, phase_of
from paddlecloud.kube.resource import CONTROLLERREVISIONS, PODS, Object
from paddlecloud.local.scheduler.state.snapshot import Node
from paddlecloud.local.workloads import revisions
from paddlecloud.local.workloads.daemonset.placement import NodeDecision, Placement, node_of, pod_for
from paddlecloud.local.workloads.daemonset.rollout import Limits, is_current, replace
from paddlecloud.local.workloads.ownership import claim
from paddlecloud.local.workloads.pods import fresh_names, is_available, is_ready, next_available
from paddlecloud.local.workloads.replicaset import BURST, named_pods
from paddlecloud.local.workloads.revisions import REVISION


@dataclass(frozen=True, slots=True)
class Observed:
    """`replaced_at`: the moment from which a failed pod may be replaced, by its uid."""

    nodes: tuple[Node, ...] = ()
    pods: tuple[Object, ...] = ()
    orphans: tuple[Object, ...] = ()
    revisions: tuple[Object, ...] = ()
    loose_revisions: tuple[Object, ...] = ()
    replaced_at: Mapping[str, float] = field(default_factory=dict)


@dataclass
class _Case:
    """`pods` by the node they are on or for; `revision` is the hash of the template."""

    daemon_set: Object
    observed: Observed
    pods: dict[str, list[Object]]
    revision: str
    now: float
    plan: Plan
    doomed: list[Object] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    @cached_property
    def decisions(self) -> dict[str, NodeDecision]:
        placement = Placement(self.daemon_set)
        return {node.name: placement.on(node) for node in sorted(self.observed.nodes, key=lambda node: node.name)}

    @property
    def desired(self) -> list[str]:
        return [name for name, decision in self.decisions.items() if decision.should_run]

    @property
    def limits(self) -> Limits | None:
        return Limits.of(self.daemon_set, len(self.desired))

    @property
    def min_ready(self) -> int:
        return int(self.daemon_set["spec"].get("minReadySeconds") or 0)

    def is_available(self, pod: Object) -> bool:
        return is_available(pod, self.min_ready, self.now)


def decide(daemon_set: Object, observed: Observed, now: float) -> Plan:
    if daemon_set["metadata"].get("deletionTimestamp"):
        return Plan()
    plan = Plan()
    pods, plan.patch = claim(daemon_set, PODS, observed.pods, observed.orphans)
    named = [obj for obj in observed.loose_revisions if _may_be_of(daemon_set, obj)]
    history, patches = claim(daemon_set, CONTROLLERREVISIONS, observed.revisions, named)
    plan.patch += patches
    newest = revisions.newest(daemon_set, history, plan, label=REVISION)
    case = _Case(daemon_set, observed, _by_node(pods), _hash(newest), now, plan)
    _manage(case)
    if not case.doomed and not case.missing and case.limits is not None:
        _update(case, case.limits)
    _write(case)
    used = {(pod["metadata"].get("labels") or {}).get(REVISION) for pod in pods}
    live = {obj["metadata"]["name"] for obj in history if _hash(obj) in used} | {newest["metadata"]["name"]}
    revisions.forget(daemon_set, history, live, plan)
    plan.status = _status(case)
    if (wait := next_available(pods, case.min_ready, now)) is not None:
        plan.requeue_after(wait)
    return plan


def _may_be_of(daemon_set: Object, revision: Object) -> bool:
    return bool(revision["metadata"]["name"].startswith(f"{daemon_set['metadata']['name']}-"))


def _hash(revision: Object) -> str:
    meta = revision["metadata"]
    return str((meta.get("labels") or {}).get(REVISION) or meta["name"].rpartition("-")[2])


def _by_node(pods: list[Object]) -> dict[str, list[Object]]:
    """The oldest of a node first, and before all others one that has been scheduled."""
    found: dict[str, list[Object]] = {}
    for pod in sorted(pods, key=_seniority):
        if node := node_of(pod):
            found.setdefault(node, []).append(pod)
    return found


def _seniority(pod: Object) -> tuple[bool, str, str]:
    meta = pod["metadata"]
    return not pod["spec"].get("nodeName"), meta.get("creationTimestamp", ""), meta["name"]


# Every node has its pod


def _manage(case: _Case) -> None:
    for node, decision in case.decisions.items():
        pods = case.pods.get(node, [])
        if decision.should_run and not pods:
            case.missing.append(node)
        elif decision.should_continue:
            _keep_one(case, node, decision, pods)
        else:
            case.doomed += [pod for pod in pods if not is_leaving(pod)]
    for node in case.pods.keys() - case.decisions.keys():
        # pods that were bound to a node that is gone are removed with it, by the node controller
        case.doomed += [pod for pod in case.pods[node] if not pod["spec"].get("nodeName") and not is_leaving(pod)]


def _keep_one(case: _Case, node: str, decision: NodeDecision, pods: list[Object]) -> None:
    running = []
    for pod in pods:
        if is_leaving(pod):
            continue
        if phase_of(pod) in ("Failed", "Succeeded"):
            _replace_ended(case, node, pod)
        elif not decision.should_run and not pod["spec"].get("nodeName"):
            case.doomed.append(pod)  # it would wait for a node that takes no new pods any more
        else:
            running.append(pod)
    surges = case.limits is not None and case.limits.surge > 0
    if not surges:
        case.doomed += running[1:]
    elif running:
        case.doomed += _too_many(case, running)
    elif decision.should_run and all(map(is_leaving, pods)):
        case.missing.append(node)  # a surge does not wait for the old pod to be gone


def _replace_ended(case: _Case, node: str, pod: Object) -> None:
    meta = pod["metadata"]
    if phase_of(pod) == "Succeeded":
        text = f"Found succeeded daemon pod {meta['namespace']}/{meta['name']} on node {node}, will try to delete it"
        case.plan.events.append(PlannedEvent("SucceededDaemonPod", text))
    else:
        wait = case.observed.replaced_at.get(meta["uid"], 0.0) - case.now
        if wait > 0:
            case.plan.requeue_after(wait)
            return
        text = f"Found failed daemon pod {meta['namespace']}/{meta['name']} on node {node}, will try to kill it"
        case.plan.events.append(PlannedEvent("FailedDaemonPod", text, type="Warning"))
    case.doomed.append(pod)


def _too_many(case: _Case, running: list[Object]) -> list[Object]:
    """During a surge: the oldest new pod stays, and the oldest old one for as long as it is needed."""
    new = [pod for pod in running if is_current(pod, case.revision)]
    old = [pod for pod in running if not is_current(pod, case.revision)]
    needless = new and old and (not is_ready(old[0]) or case.is_available(new[0]))
    return [*new[1:], *(old if needless else old[1:])]


def _update(case: _Case, limits: Limits) -> None:
    """A node that takes no new pod any more gives up its old one, as in Kubernetes; it never gets a second one."""
    places = {node: case.pods.get(node, []) for node in case.desired}
    if not limits.surge:
        places |= case.pods
    change = replace(dict(sorted(places.items())), case.revision, limits, case.is_available)
    case.doomed += change.delete
    case.missing += change.create


def _write(case: _Case) -> None:
    owner, plan = case.daemon_set, case.plan
    for pod in case.doomed[:BURST]:
        meta = pod["metadata"]
        plan.delete.append(Delete(PODS, meta["name"], meta["namespace"], uid=meta["uid"]))
    if case.doomed:
        gone = [pod["metadata"]["name"] for pod in case.doomed[:BURST]]
        plan.events.append(PlannedEvent("SuccessfulDelete", named_pods("Deleted", gone), if_done=True))
    taken = {pod["metadata"]["name"] for pods in case.pods.values() for pod in pods}
    made = []
    for node in case.missing[: burst(owner["spec"].get("template") or {}, BURST)]:
        made.append(next(fresh_names(owner, taken, place=node)))
        taken.add(made[-1])
        plan.create.append(pod_for(owner, node, name=made[-1], revision=case.revision))
    if made:
        plan.events.append(PlannedEvent("SuccessfulCreate", named_pods("Created", made), if_done=True))


def _status(case: _Case) -> Object:
    """Of each node the oldest pod counts, as in Kubernetes."""
    desired = case.desired
    first = [pods[0] for node in desired if (pods := case.pods.get(node))]
    available = sum(map(case.is_available, first))
    counts = {
        "updatedNumberScheduled": sum(is_current(pod, case.revision) for pod in first),
        "numberAvailable": available,
        "numberUnavailable": len(desired) - available,
    }
    misplaced = [node for node, decision in case.decisions.items() if not decision.should_run and case.pods.get(node)]
    conditions = conditions_of(case.daemon_set)
    return {
        "currentNumberScheduled": len(first),
        "numberMisscheduled": len(misplaced),
        "desiredNumberScheduled": len(desired),
        "numberReady": sum(map(is_ready, first)),
        "observedGeneration": case.daemon_set["metadata"].get("generation", 0),
        **{name: count for name, count in counts.items() if count},
        **({"conditions": conditions} if conditions else {}),
    }
