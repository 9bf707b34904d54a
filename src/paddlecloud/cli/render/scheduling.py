"""The scheduler's verdict on what waits, for people: needs, what is free, who holds it, what would change it.

The same code that decides in the embedded platform is run here on the present state of the cluster, so the verdict is
as true as the next round. On a cluster with another scheduler its own words stand (`why`), and this module is silent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from paddlecloud.cli.phrases import say
from paddlecloud.cli.session import Session
from paddlecloud.kube.errors import Forbidden, NotFound
from paddlecloud.kube.resource import NODES, PADDLEJOBS, PODGROUPS, PODS, QUEUES, Object, Resource, is_owned_by
from paddlecloud.sdk.members import member

if TYPE_CHECKING:
    from paddlecloud.local.scheduler.explanation.explain import Explanation, Offer
    from paddlecloud.local.scheduler.explanation.remedies import Remedy
    from paddlecloud.local.scheduler.state.snapshot import Snapshot

MOST_NODES = 3
LABEL_WIDTH = 16


class Cluster(NamedTuple):
    """Everything the scheduler looks at."""

    nodes: list[Object]
    pods: list[Object]
    groups: list[Object]
    queues: list[Object]
    budgets: list[Object]
    priorities: dict[str, int]

    def snapshot(self) -> Snapshot:
        from paddlecloud.local.scheduler.state.snapshot import snapshot_of

        return snapshot_of(
            self.nodes,
            self.pods,
            groups=self.groups,
            queues=self.queues,
            budgets=self.budgets,
            priorities=self.priorities,
        )


class SchedulingExplanation(NamedTuple):
    lines: list[str]
    body: Object


def is_ours(session: Session) -> bool:
    """Whether the server's scheduler is this project's."""
    return "paddlecloud" in str(session.api.json("/version").get("gitVersion", ""))


def fetch(session: Session) -> Cluster:
    """The present state of the cluster. Kinds that the server does not serve count as none."""
    from paddlecloud.kube.resource import COSCHEDULING_PODGROUPS, PODDISRUPTIONBUDGETS, PRIORITYCLASSES

    def every(resource: Resource) -> list[Object]:
        try:
            return session.api.do(session.api.client.list(resource, limit=500)).items
        except NotFound:
            return []

    return Cluster(
        nodes=every(NODES),
        pods=every(PODS),
        groups=every(PODGROUPS) + every(COSCHEDULING_PODGROUPS),
        queues=every(QUEUES),
        budgets=every(PODDISRUPTIONBUDGETS),
        priorities={obj["metadata"]["name"]: int(obj.get("value") or 0) for obj in every(PRIORITYCLASSES)},
    )


def waits_for_a_node(pod: Object) -> bool:
    from paddlecloud.local.scheduler.state.state import NAMES

    spec, phase = pod.get("spec") or {}, (pod.get("status") or {}).get("phase") or "Pending"
    return (
        phase == "Pending"
        and not spec.get("nodeName")
        and not spec.get("schedulingGates")
        and not pod["metadata"].get("deletionTimestamp")
        and spec.get("schedulerName", "default-scheduler") in NAMES
    )


def scheduling(session: Session, obj: Object, pods: Sequence[Object], *, language: str) -> SchedulingExplanation | None:
    """The verdict on the first of an object's pods that waits for a node, or on its PodGroup while it has none.

    None if neither waits, or we may not know.
    """
    about = next(filter(waits_for_a_node, pods), None)
    try:
        group = None if pods else _group_of(session, obj)
        if (about is None and group is None) or not is_ours(session):
            return None
        cluster = fetch(session)
    except Forbidden:
        return None  # who may not see nodes gets what the scheduler wrote on the pod
    found = explanation(cluster, about) if about is not None else entry(cluster, group or {})
    if found is None:
        return None
    from paddlecloud.local.scheduler.explanation.explain import machine_readable

    lines, body = lines_of(found, language), machine_readable(found)
    if not found.placed and (fewer := fitting_workers(obj, pods)):
        text = say(language, "remedy-replicas", workers=fewer, job=obj["metadata"]["name"])
        lines += _row("" if found.remedies else say(language, "would-start"), [text])
        body["wouldStartIf"].append({"change": "replicas", "replicas": fewer})
    return SchedulingExplanation(lines, body)


def fitting_workers(obj: Object, pods: Sequence[Object]) -> int:
    """How many workers of an elastic job have a node, if it may run with so many; else 0."""
    spec = obj.get("spec") or {}
    worker = spec.get("worker") or {}
    if obj.get("kind") != PADDLEJOBS.kind or not spec.get("elastic"):
        return 0
    placed = sum(1 for pod in pods if member(pod).role == "worker" and (pod.get("spec") or {}).get("nodeName"))
    least = int(worker.get("requests") or 1)
    return placed if max(1, least) <= placed < int(worker.get("replicas") or 0) else 0


def _group_of(session: Session, obj: Object) -> Object | None:
    """The PodGroup of an object without pods, if it waits to be let in: its own, or one of a job's name."""
    namespace, uid = obj["metadata"].get("namespace"), obj["metadata"].get("uid")
    if not namespace:
        return None
    try:
        groups = session.api.do(session.api.client.list(PODGROUPS, namespace)).items
    except NotFound:
        return None

    def is_its(group: Object) -> bool:
        same_name = obj.get("kind") == "PaddleJob" and group["metadata"]["name"] == obj["metadata"]["name"]
        waits = (group.get("status") or {}).get("phase") in (None, "", "Pending")
        return waits and (group["metadata"].get("uid") == uid or is_owned_by(group, uid) or same_name)

    return next(filter(is_its, groups), None)


def entry(cluster: Cluster, group: Object) -> Explanation:
    from paddlecloud.local.scheduler.decision.gang_admission import explain_entry
    from paddlecloud.local.scheduler.state.snapshot import gang_view

    snapshot = cluster.snapshot()
    view = gang_view(group)
    return explain_entry(snapshot, snapshot.gangs.get(view.key, view))


def explanation(cluster: Cluster, about: Object) -> Explanation | None:
    from paddlecloud.local.scheduler.explanation.explain import explain
    from paddlecloud.local.scheduler.state.snapshot import pod_view

    waiting = [pod_view(obj) for obj in cluster.pods if waits_for_a_node(obj)]
    return explain(cluster.snapshot(), waiting, str(about["metadata"].get("uid")))


# In words


def lines_of(found: Explanation, language: str) -> list[str]:
    if found.placed:
        return [say(language, "placed", node=found.node)]
    if found.code == "LetIn":
        return [say(language, "let-in")]
    rows = [(say(language, "needs"), [_needs(found, language)])]
    if found.offers:
        rows.append((say(language, "free"), _free(found, language)))
    if found.blockers:
        rows.append((say(language, "held-by"), [_blocker(blocker, language) for blocker in found.blockers]))
    if found.evictions:
        leaving = [say(language, "leaving", pod=str(e.pod.key), node=e.node) for e in found.evictions]
        rows.append((say(language, "makes-room"), leaving))
    if found.remedies:
        label = "would-start" if found.unit.pods else "would-be-let-in"
        rows.append((say(language, label), [remedy_text(r, found, language) for r in found.remedies]))
    return [line for label, texts in rows for line in _row(label, texts)]


def _row(label: str, texts: list[str]) -> list[str]:
    # A Chinese character takes two columns.
    width = sum(2 if ord(char) > 0x2E80 else 1 for char in label)
    first = label + " " * max(1, LABEL_WIDTH - width)
    return [(first if number == 0 else " " * LABEL_WIDTH) + text for number, text in enumerate(texts)]


def amounts(resources: Mapping[str, int]) -> str:
    from paddlecloud.kube.quantity import written

    named = written({name: amount for name, amount in resources.items() if name != "pods"})
    return ", ".join(f"{name} {text}" for name, text in sorted(named.items()))


def _needs(found: Explanation, language: str) -> str:
    each = amounts(found.each) or say(language, "nothing")
    gang = found.unit.gang
    if gang is None:
        return say(language, "needs-one", each=each) if amounts(found.each) else say(language, "needs-any")
    if not found.unit.pods:
        return say(language, "needs-all", count=gang.min_member, all=each)
    return say(language, "needs-gang", count=gang.min_member, placed=gang.placed, each=each)


def _free(found: Explanation, language: str) -> list[str]:
    texts = [_offer(offer, language) for offer in found.offers[:MOST_NODES]]
    more = len(found.offers) - MOST_NODES
    if more > 0:
        texts.append(say(language, "more-nodes", count=more))
    if len(found.offers) > 1:
        texts.append(say(language, "in-all", amounts=amounts(found.total_free()) or say(language, "nothing")))
    return texts


def _offer(offer: Offer, language: str) -> str:
    from paddlecloud.local.scheduler.decision.filters import shown

    parts = [
        say(language, "of", name=name, free=shown(name, offer.free[name]), have=shown(name, have))
        for name, have in sorted(offer.allocatable.items())
        if name != "pods" or not offer.free["pods"]
    ]
    detail = "" if offer.rule in ("", "resources") else offer.detail
    if not parts:  # it asks for nothing that a node could run out of
        return f"{offer.node}: {detail or offer.reason}"
    return f"{offer.node}: {', '.join(parts)}" + (f" ({detail})" if detail else "")


def _blocker(blocker: Any, language: str) -> str:
    return say(
        language,
        "blocker",
        pod=str(blocker.pod.key),
        node=blocker.node,
        amounts=amounts(blocker.holds) or say(language, "a-place"),
        priority=blocker.pod.priority,
    )


def remedy_text(remedy: Remedy, found: Explanation, language: str) -> str:
    values: dict[str, Any] = dict(remedy.data)
    if remedy.kind == "end":
        values["pods"] = ", ".join(f"{entry['pod']} ({entry['node']})" for entry in values["pods"])
    for name in ("atMost", "atLeast", "capacity"):
        if isinstance(values.get(name), dict):
            values[name] = ", ".join(f"{key} {text}" for key, text in sorted(values[name].items()) if key != "pods")
    if remedy.kind == "tolerate":
        value = f"={values['value']}" if values["value"] else ""
        values["taint"] = f"{values['key']}{value}:{values['effect']}"
    if "labels" in values:
        values["pairs"] = ",".join(f"{key}={text}" for key, text in sorted(values["labels"].items()))
    plain = remedy.kind == "node" and not values["capacity"]
    text = say(language, "remedy-any-node" if plain else f"remedy-{remedy.kind}", **values)
    command = command_of(remedy)
    return f"{text}  ({command})" if command else text


def command_of(remedy: Remedy) -> str:
    """The command that does it, where one does."""
    data = remedy.data
    if remedy.kind == "uncordon":
        return f"kubectl uncordon {data['node']}"
    if remedy.kind == "label":
        pairs = " ".join(f"{key}={value}" for key, value in sorted(data["labels"].items()))
        return f"kubectl label node {data['node']} {pairs} --overwrite"
    if remedy.kind == "node":
        capacity = ",".join(f"{name}={text}" for name, text in sorted(data["capacity"].items()) if name != "pods")
        labels = ",".join(f"{key}={value}" for key, value in sorted(data["labels"].items()))
        flags = [f" --{flag} {text}" for flag, text in (("capacity", capacity), ("labels", labels)) if text]
        return "pdc node add NAME" + "".join(flags)
    return ""
