"""The cache servers of a set: counted, scaled, and named by the labels of their nodes."""

from __future__ import annotations

from paddlecloud.api.sampleset.spec import RuntimeStatus
from paddlecloud.controllers.sampledata import names
from paddlecloud.controllers.sampledata.sampleset import objects
from paddlecloud.controllers.sampledata.sampleset.case import CacheServer, SampleSetCase
from paddlecloud.controllers.sampledata.sampleset.draft import SampleSetDraft, unlabel
from paddlecloud.controllers.sampledata.servers import transfer
from paddlecloud.controllers.sampledata.servers.requests import Work
from paddlecloud.kube.plan import Patch
from paddlecloud.kube.resource import NODES, STATEFULSETS, Object


def complete(case: SampleSetCase) -> bool:
    """Every partition has a ready server on its own node, and no server is left over."""
    partitions = case.settings.partitions
    ready = {
        server.ordinal: server.node for server in case.observed.cache_servers if server.ready and not server.leaving
    }
    there = {server.ordinal for server in case.observed.cache_servers}
    labelled = all(
        case.observed.nodes.get(node) == names.runtime_pod(case.settings.name, ordinal)
        for ordinal, node in ready.items()
    )
    # Ordinals that are all below the number of partitions, and as many, are every one of them.
    every = len(there) == partitions and all(ordinal < partitions for ordinal in there)
    return every and there == set(ready) and len(set(ready.values())) == partitions and labelled


def what_lacks(case: SampleSetCase) -> str:
    ready = sum(1 for server in case.observed.cache_servers if server.ready)
    troubles = [f"{s.name}: {s.trouble}" for s in case.observed.cache_servers if s.trouble and not s.ready]
    text = f"{ready} of {case.settings.partitions} cache servers are ready"
    return f"{text}; {'; '.join(troubles)}" if troubles else text


def count_servers(draft: SampleSetDraft) -> None:
    case = draft.case
    wanted = case.settings.partitions
    ready = sum(1 for server in case.observed.cache_servers if server.ready)
    draft.set(
        runtime_status=RuntimeStatus(
            runtime_ready=f"{ready}/{wanted}", spec_replicas=wanted, ready_replicas=ready or None
        )
    )
    complete = ready >= wanted
    draft.condition("RuntimeReady", complete, "Ready" if complete else "Starting", "" if complete else what_lacks(case))


def label_nodes(draft: SampleSetDraft) -> None:
    """A node says which cache server it holds; one that holds none any more says nothing."""
    case = draft.case
    holds = {server.node: server.name for server in case.observed.cache_servers if server.running and server.node}
    for node, pod in holds.items():
        if case.observed.nodes.get(node) != pod:
            draft.plan.patch.append(Patch(NODES, node, None, {"metadata": {"labels": {case.label: pod}}}))
    for node in case.observed.nodes:
        if node not in holds:
            draft.plan.patch.append(unlabel(case, node))


def leaving(case: SampleSetCase) -> tuple[CacheServer, ...]:
    """Servers that run and are about to go: all of a set that is deleted, else those beyond its partitions."""
    first = 0 if case.sample_set["metadata"].get("deletionTimestamp") else case.settings.partitions
    return tuple(server for server in case.observed.cache_servers if server.running and server.ordinal >= first)


def clear_work(case: SampleSetCase) -> Work:
    """Empty the caches of servers that leave for good; one that merely restarts keeps what it has."""
    options = {"paths": transfer.clear_paths((), case.cache_dirs)}
    salt = case.sample_set["metadata"].get("deletionTimestamp") or case.sample_set["metadata"].get("generation")
    # "farewell" is part of the job id that servers of earlier releases remember.
    return Work(names.job_id(case.uid, "farewell", options, salt), "clear", options)


def scale(draft: SampleSetDraft) -> None:
    case = draft.case
    found = case.observed.stateful_set
    if found is None or found["spec"].get("replicas") == case.settings.partitions:
        update_template(draft)
        return
    if not case.observed.cleared and (going := leaving(case)):
        work = clear_work(case)
        draft.plan.submit.update({server.name: work for server in going})
        draft.requeue_after(1.0)
        return
    _patch_stateful_set(draft, found, {"spec": {"replicas": case.settings.partitions}})


def update_template(draft: SampleSetDraft) -> None:
    """Servers follow a changed image, toleration or affinity one by one; their caches stay on the nodes."""
    found = draft.case.observed.stateful_set
    if found is None:
        return
    template = objects.build_template(draft.case)
    digest = names.digest_of(template)
    if (found["metadata"].get("annotations") or {}).get(names.TEMPLATE) not in (None, digest):
        change = {"metadata": {"annotations": {names.TEMPLATE: digest}}, "spec": {"template": template}}
        _patch_stateful_set(draft, found, change)


def _patch_stateful_set(draft: SampleSetDraft, found: Object, change: Object) -> None:
    meta = found["metadata"]
    draft.plan.patch.append(Patch(STATEFULSETS, meta["name"], meta["namespace"], change, seen=meta["resourceVersion"]))
