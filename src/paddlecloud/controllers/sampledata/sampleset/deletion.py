"""The end of a SampleSet, in order: nobody reads it, nodes are unlabelled, caches emptied, servers, claim, volume go.

The data itself stays where it is (the volume's policy is Retain): a set is a way to data, not the data.
"""

from __future__ import annotations

from paddlecloud.controllers.sampledata import names
from paddlecloud.controllers.sampledata.sampleset import adoption, server_pods
from paddlecloud.controllers.sampledata.sampleset.draft import SampleSetDraft, unlabel
from paddlecloud.kube.plan import Delete, set_finalizers
from paddlecloud.kube.resource import Object, resource_of

AGAIN = 2.0
READERS_NAMED = 5


def leave(draft: SampleSetDraft) -> None:
    """One step of the way out; the finalizer goes last."""
    case = draft.case
    observed = case.observed
    if observed.readers:
        text = f"deletion waits for {_listed(observed.readers)} to end"
        draft.condition("InUse", True, "InUse", text)
        draft.set(message=text)
        draft.requeue_after(AGAIN)
        return
    draft.condition("InUse", False, "Unused")
    draft.plan.patch.extend(unlabel(case, node) for node in observed.nodes)
    made = [observed.stateful_set, observed.service, observed.claim]  # the Secret goes with its owner
    ours = [obj for obj in made if obj is not None and case.is_ours(obj)]
    if unmarked := [patch for obj in ours for patch in adoption.take_over(case, obj)]:
        draft.plan.patch.extend(unmarked)  # what is not marked as ours is not watched
        draft.requeue_after(AGAIN)
        return
    if observed.stateful_set in ours:
        _stop_servers(draft)
        return
    if observed.cache_servers:
        draft.set(message="waiting for the cache servers to stop")
        draft.requeue_after(AGAIN)
        return
    if ours or observed.volume is not None:
        # Kubernetes deletes claims before their volumes; the finalizers of both keep that order.
        doomed = [obj for obj in (*ours, observed.volume) if obj is not None and not _is_going(obj)]
        draft.plan.delete.extend(_delete(obj) for obj in doomed)
        held = f": {_listed(observed.holders)} must be deleted first" if observed.holders else ""
        draft.set(message=f"waiting for the volume to go{held}")
        draft.requeue_after(AGAIN)
        return
    marks = [mark for mark in case.sample_set["metadata"]["finalizers"] if mark != names.finalizer(case.settings.name)]
    draft.plan.patch.append(set_finalizers(case.sample_set, marks))


def _stop_servers(draft: SampleSetDraft) -> None:
    case = draft.case
    if not case.observed.cleared and case.access:
        work = server_pods.clear_work(case)
        draft.plan.submit.update({server.name: work for server in server_pods.leaving(case)})
        draft.set(message="emptying the caches")
        draft.requeue_after(AGAIN)
        return
    stateful_set = case.observed.stateful_set
    if stateful_set is not None and not _is_going(stateful_set):
        draft.plan.delete.append(_delete(stateful_set))
    draft.set(message="waiting for the cache servers to stop")
    draft.requeue_after(AGAIN)


def _delete(obj: Object) -> Delete:
    meta = obj["metadata"]
    return Delete(resource_of(obj), meta["name"], meta.get("namespace"), uid=meta["uid"])


def _is_going(obj: Object) -> bool:
    return bool(obj["metadata"].get("deletionTimestamp"))


def _listed(names_: tuple[str, ...]) -> str:
    more = f" and {len(names_) - READERS_NAMED} more" if len(names_) > READERS_NAMED else ""
    return ", ".join(names_[:READERS_NAMED]) + more
