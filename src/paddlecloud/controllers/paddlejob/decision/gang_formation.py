"""Bringing a generation of the gang into being: its group, service, pods and configuration.

Everything that can be made is made in one pass, up to `AT_ONCE` pods; of a large gang a first burst, which shows
whether pods may be made at all (slowStartBatch of kubernetes/pkg/controller/controller_utils.go). Pods are created
together and hold their places; their programs start together, when the ConfigMap that names all addresses exists
(`env.gates`).
"""

from __future__ import annotations

from collections import Counter

from paddlecloud.api.paddlejob import gate
from paddlecloud.api.paddlejob.cause import first_cause, waiting_reason
from paddlecloud.controllers.paddlejob import names
from paddlecloud.controllers.paddlejob.decision.case import REPLICAS, WRITTEN, JobCase
from paddlecloud.controllers.paddlejob.gang import podgroup, scheduler_message
from paddlecloud.controllers.paddlejob.observe import PodView, started_at
from paddlecloud.controllers.paddlejob.pods import data, env, hosts, objects
from paddlecloud.kube.backoff import exponential
from paddlecloud.kube.bursts import ROOM, ROOM_IN_A_THREAD, burst
from paddlecloud.kube.clock import parse_rfc3339
from paddlecloud.kube.plan import Delete, Patch, Plan, PlannedEvent, merge_diff
from paddlecloud.kube.resource import CONFIGMAPS, PODS, Object, Resource, controller_of

GANG_GRACE = 3
"""Seconds a pod gets when the gang is torn down: its peers are gone, there is nothing left to finish."""

FORCE_AFTER = 30.0
"""Seconds after its grace period at which a pod that does not go is removed by force: its node is not coming back."""

BACKOFF_BASE, BACKOFF_CAP = 2.0, 60.0

AT_ONCE = 10_000
"""Pods that one pass creates at most: other jobs wait while they are written down."""

LARGE = 1000
"""Pods of a job from which on decisions about it are taken in a thread."""

FIRST_BURST, GROWTH = 500, 8
"""Pods that are made before any is there, and for each one that is. A job of few bytes may ask for 100,000 pods in a
namespace whose quota has room for five: what would be refused is not even written down."""


def clear_stale(case: JobCase, plan: Plan) -> bool:
    """Delete pods that no longer belong; True while some are still there, because their names are needed again.

    Pods that leave a gang have nothing to finish. Those that leave an elastic job alone get the time they asked for.
    """
    for pod in case.stale:
        if not pod.deleting:
            plan.delete.append(_delete(case, pod, grace=None if case.etcd else GANG_GRACE))
            continue
        if is_stuck(case, pod):
            plan.delete.append(_delete(case, pod, grace=0))
        else:
            plan.requeue_after(_force_at(case, pod) - case.now)
    return bool(case.stale)


def is_stuck(case: JobCase, pod: PodView) -> bool:
    """Whether a pod that was deleted should long be gone."""
    return pod.deleting and case.now >= _force_at(case, pod)


def _force_at(case: JobCase, pod: PodView) -> float:
    return (pod.deletion_due or case.now) + FORCE_AFTER


def _delete(case: JobCase, pod: PodView, *, grace: int | None) -> Delete:
    return Delete(PODS, pod.name, case.settings.namespace, uid=pod.uid, grace_period=grace)


def patch(resource: Resource, seen: Object, change: Object) -> Patch:
    """A patch of an object as it was seen; the next decision waits until the cache shows it."""
    meta = seen["metadata"]
    return Patch(resource, meta["name"], meta["namespace"], change, seen=meta.get("resourceVersion"))


def replace_pods(case: JobCase, plan: Plan) -> None:
    """Remove the pods that failed; the next pass makes them anew."""
    for pod in case.current.values():
        if pod.state == "failed" and not pod.deleting:
            plan.delete.append(_delete(case, pod, grace=0))


def restart_delay(case: JobCase) -> float:
    """Seconds until the next generation may be created: none after the first failure, doubling from two."""
    restarts = case.old.restarts or 0
    failures = case.old.failures or []
    if restarts < 2 or not failures or not failures[-1].time:
        return 0.0
    pause = exponential(restarts - 2, base=BACKOFF_BASE, cap=BACKOFF_CAP)
    return max(0.0, parse_rfc3339(failures[-1].time) + pause - case.now)


def ensure_gang(case: JobCase, plan: Plan) -> str:
    """The PodGroup, created or kept in step; what is awaited from it, empty when pods may be created."""
    settings, engine, group = case.settings, case.gang, case.pod_group
    if engine is None:
        return ""
    if group is None:
        age = case.now - parse_rfc3339(case.job["metadata"]["creationTimestamp"])
        if not settings.scheduling.requested and age < podgroup.WAIT_FOR_USERS:
            plan.requeue_after(podgroup.WAIT_FOR_USERS - age)
            return f"waiting for a PodGroup {settings.name} made by the user"
        meta = objects.metadata(case.job, settings.name, labels={names.JOB: settings.name})
        plan.create.append(podgroup.build(meta, settings, engine))
        return "waiting for the PodGroup to be queued" if engine.queues else ""
    if is_ours(case, group):
        changes = merge_diff(group.get("spec") or {}, podgroup.spec_of(settings, engine))
        changes = {field: value for field, value in changes.items() if value is not None}
        if changes:
            plan.patch.append(patch(engine.resource, group, {"spec": changes}))
    if not engine.queues:
        return ""
    phase = (group.get("status") or {}).get("phase") or "Pending"
    if phase != "Pending":
        return ""
    plan.requeue_after(scheduler_message.ASK_EVERY)
    return f"waiting for the PodGroup to be queued: {_gang_message(case, group)}"


def _gang_message(case: JobCase, group: Object) -> str:
    """What the gang asks for, and what the scheduler last said about it."""
    spec = group.get("spec") or {}
    needs = ", ".join(f"{name} {amount}" for name, amount in sorted((spec.get("minResources") or {}).items()))
    asked = f"{spec.get('minMember', 0)} pods" + (f" need {needs} together" if needs else "")
    conditions = (group.get("status") or {}).get("conditions") or ()
    said = [str(c.get("message") or c.get("reason") or "") for c in conditions if c.get("status") == "True"]
    answer = said[-1] if said else case.observed.gang_message or "the scheduler has not taken it up yet"
    return f"{asked}; {answer}"


def drop_gang(case: JobCase, plan: Plan) -> None:
    """Delete the PodGroup, if it is ours to delete."""
    group, engine = case.pod_group, case.gang
    if group is not None and engine is not None and is_ours(case, group):
        meta = group["metadata"]
        plan.delete.append(Delete(engine.resource, meta["name"], meta["namespace"], uid=meta.get("uid")))


def is_ours(case: JobCase, obj: Object) -> bool:
    owner = controller_of(obj)
    return owner is not None and owner.get("uid") == case.job["metadata"]["uid"]


def ensure_pods(case: JobCase, plan: Plan, port: int) -> None:
    """The missing pods, and the Service that names them; one event for the batch. A later pass creates the rest."""
    settings = case.settings
    if settings.intranet == "Service" and case.observed.service is None:
        plan.create.append(objects.build_service(case.job, settings, port=port))
    roles = {role.name: role for role in settings.roles}
    most = min(AT_ONCE, max(FIRST_BURST, GROWTH * len(case.current)))
    if missing := {name for name, _ in case.missing}:
        room = ROOM if settings.total <= LARGE else ROOM_IN_A_THREAD
        most = min(burst(roles[name].template, most, room=room) for name in missing)
    batch = case.missing[:most]
    plan.create += [objects.build_pod(case, roles[name], index, port=port) for name, index in batch]
    if made := Counter(name for name, _ in batch):
        parts = ", ".join(f"{number} {role}" for role, number in made.items())
        plan.events.append(PlannedEvent("Created", f"created pods: {parts}", if_done=True))


def ensure_config(case: JobCase, plan: Plan, port: int) -> str:
    """The ConfigMap, as soon as every pod has an address; later, where workers wait for it, that the servers listen.

    Returns what stands in the way, if anything but time does.
    """
    if case.etcd:
        return ""
    addresses = {role.name: [""] * role.replicas for role in case.settings.roles}
    for (role, index), pod in case.current.items():
        addresses[role][index] = case.host(pod)
    everyone = [host for entries in addresses.values() for host in entries]
    if not all(everyone):
        return ""
    if shared := [host for host, number in Counter(everyone).items() if number > 1]:
        # Paddle would take them for one rank: two servers of one table, or two jobs of one worker each.
        return f"several pods share the address {min(shared)}: intranet Host needs a node of its own for every pod"
    wanted = objects.build_config(case.job, case.settings, addresses, generation=case.generation, port=port)
    if case.options.hosts_files and hosts.wanted(case.settings):
        wanted["data"][hosts.key(case.generation)] = hosts.content(case.current.values())
    if env.holds_workers(case.settings) and _let_workers_go(case, plan):
        wanted["data"][env.servers_ready_key(case.generation)] = "1"
    existing = case.observed.config
    content = merge_diff((existing or {}).get("data") or {}, wanted["data"])
    annotations = {REPLICAS: case.replicas, WRITTEN: f"{case.now:.3f}"}
    if existing is None:
        wanted["metadata"]["annotations"] = annotations
        plan.create.append(wanted)
    elif content:
        change = {"metadata": {"annotations": annotations}, "data": content}
        plan.patch.append(patch(CONFIGMAPS, existing, change))
    else:
        _nudge(case, plan, existing)
    return ""


def _servers_listen(case: JobCase) -> bool:
    """Said once per generation: a server that is unready for a moment later does not take the word back."""
    if case.workers_let_go:
        return True
    servers = [pod for pod in case.current.values() if pod.role == "ps"]
    return all(pod.state in ("running", "succeeded") for pod in servers)


def _servers_unready_since(case: JobCase) -> float | None:
    """Since when all servers run, though some do not listen; None while a server has not even started."""
    servers = [pod for pod in case.current.values() if pod.role == "ps"]
    starts = [started_at(pod) for pod in servers]
    if not all(starts):
        return None
    return max((parse_rfc3339(moment) for moment in starts), default=None)


def _let_workers_go(case: JobCase, plan: Plan) -> bool:
    """Whether workers may start: the servers listen, or have had all the time one can need.

    A program that never opens its port is no parameter server, or waits for its workers; both want them to start.
    """
    if _servers_listen(case):
        return True
    since = _servers_unready_since(case)
    if since is None:
        return False
    left = since + case.options.servers_patience - case.now
    if left > 0:
        plan.requeue_after(left)
        return False
    text = f"the servers do not listen on their port after {case.options.servers_patience:.0f} seconds"
    plan.events.append(PlannedEvent("ServersDeaf", f"{text}: workers start without waiting for them", type="Warning"))
    return True


def _nudge(case: JobCase, plan: Plan, config: Object) -> None:
    """Touch pods whose kubelet has not noticed the ConfigMap: Kubernetes' own looks again only after ten seconds or so.

    The embedded kubelet watches what its pods wait for, so nothing is left to touch there.
    """
    written = float((config["metadata"].get("annotations") or {}).get(WRITTEN) or 0)
    late = [pod for pod in case.current.values() if _waits_for_config(case, pod, config)]
    if not late:
        return
    due = written + case.options.nudge_after - case.now
    if due > 0:
        plan.requeue_after(due)
        return
    for pod in late:
        change = {"metadata": {"annotations": {names.NUDGED: f"{written:.3f}"}}}
        plan.patch.append(patch(PODS, pod.raw, change))


def _waits_for_config(case: JobCase, pod: PodView, config: Object) -> bool:
    reason, message = waiting_reason(pod.raw)
    if not gate.awaited(reason, message, case.settings.name):
        return False
    written = (config["metadata"].get("annotations") or {}).get(WRITTEN)
    if (pod.raw["metadata"].get("annotations") or {}).get(names.NUDGED) == f"{float(written or 0):.3f}":
        return False  # touched since the last change
    keys = config.get("data") or {}
    return all(entry["name"] in keys for entry in env.gates(case.settings, pod.role, case.generation))


def awaited(case: JobCase) -> str:
    """One sentence about what a job that is not running yet waits for."""
    if (found := first_cause((pod.raw for pod in case.current.values()), case.settings.name)) is not None:
        return found.text
    if missing := data.missing(case.settings, case.observed):
        return missing
    unaddressed = [pod.name for pod in case.current.values() if not pod.ip]
    if case.missing or unaddressed:
        return f"waiting for the addresses of {len(case.missing) + len(unaddressed)} of {case.settings.total} pods"
    if env.holds_workers(case.settings) and not _servers_listen(case):
        return "workers wait for the parameter servers to listen"
    return "containers are starting"
