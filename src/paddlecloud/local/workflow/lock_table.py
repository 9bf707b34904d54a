"""Who holds and who waits for the locks of a namespace, over all its workflows: the edge of `decision/locks.py`.

Everything is read from the statuses in the cache, so nothing is left of a workflow that is gone. Two passes must not
give the same lock away: a pass that takes a lock is carried out only if nobody took one in the namespace since it
observed, and what it takes counts from then on, until the cache has the workflow's next version.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from paddlecloud.kube.cache import Cache
from paddlecloud.kube.plan import Plan
from paddlecloud.kube.resource import Key, Object
from paddlecloud.local.workflow.decision.locks import (
    MUTEX,
    SYNCHRONIZATION,
    Lock,
    LockRequest,
    Locks,
    holdings,
    is_waiting,
    waits_for,
)
from paddlecloud.local.workflow.expressions.budget import take_work
from paddlecloud.local.workflow.nodes import is_ended

INDEX = "locks"
_READ = 1000
"""Steps of a pass that reading a ConfigMap counts as: it may have a megabyte."""
ConfigMap = Callable[[str, str, str], "str | None"]
"""Namespace, name, key."""


def index(workflow: Object) -> Iterable[str]:
    """By namespace: workflows that hold a lock or wait for one."""
    status = workflow.get("status")
    if isinstance(status, dict) and status.get(SYNCHRONIZATION) and not is_ended(workflow):
        yield workflow["metadata"]["namespace"]


def may_wake_others(old: Object | None, new: Object | None) -> bool:
    """Whether a change of a workflow may have freed a lock."""
    before = (old or {}).get("status")
    held = isinstance(before, dict) and bool(before.get(SYNCHRONIZATION))
    return held and _synchronization(new) != _synchronization(old)


def _synchronization(workflow: Object | None) -> object:
    if workflow is None or is_ended(workflow):
        return None
    status = workflow.get("status")
    return status.get(SYNCHRONIZATION) if isinstance(status, dict) else None


class LockTable:
    def __init__(self, cache: Cache, config_map: ConfigMap) -> None:
        self._cache = cache
        self._config_map = config_map
        self._taken: Counter[str] = Counter()
        """By namespace: how often a lock was taken."""
        self._claims: dict[str, Object] = {}
        """By uid: a workflow as a pass found it, with the locks that the pass writes."""

    def waiting(self, namespace: str) -> list[Object]:
        return [each for each in self._cache.by_index(INDEX, namespace) if is_waiting(each.get("status"))]

    def observed(self, workflow: Object) -> tuple[int, Locks]:
        """The locks as one workflow finds them now, and the moment by which `admit` judges.

        The statuses are read in the thread of the pass, and only if it asks for a lock: tenants choose their size.
        """
        namespace, uid = workflow["metadata"]["namespace"], workflow["metadata"]["uid"]
        involved = [each for each in self._involved(namespace) if each["metadata"]["uid"] != uid]

        @functools.cache
        def others() -> tuple[dict[str, list[str]], Counter[str]]:
            holders: dict[str, list[str]] = {}
            ahead: Counter[str] = Counter()
            for other in involved:
                for name, each in holdings(other.get("status"), namespace).items():
                    take_work(1 + len(each))
                    holders.setdefault(name, []).extend(each)
                if not _is_held_back(other) and _rank(other) < _rank(workflow):
                    waiting = waits_for(other.get("status"))
                    take_work(len(waiting))
                    ahead.update(waiting)
            return holders, ahead

        @functools.cache
        def lock(wanted: LockRequest) -> Lock:
            holders, ahead = others()
            limit = 1 if wanted.kind == MUTEX else self._limit(namespace, wanted)
            return Lock(limit, tuple(holders.get(wanted.name, ())), ahead[wanted.name])

        return self._taken[namespace], lock

    def admit(self, workflow: Object, moment: int, plan: Plan) -> bool:
        """Whether the plan may be carried out; one that takes locks counts from now on."""
        meta = workflow["metadata"]
        namespace, uid = meta["namespace"], meta["uid"]
        status = _written(workflow, plan)
        before, after = holdings(workflow.get("status"), namespace), holdings(status, namespace)
        if all(set(holders) <= set(before.get(name, ())) for name, holders in after.items()):
            self._claims.pop(uid, None)
            return True
        if self._taken[namespace] != moment:
            return False
        self._taken[namespace] += 1
        self._claims = {key: claim for key, claim in self._claims.items() if self._counts(claim)}
        self._claims[uid] = {**workflow, "status": status}
        return True

    def _involved(self, namespace: str) -> list[Object]:
        """Workflows of the cache that have to do with locks, and those that took one which is not there yet."""
        found = {each["metadata"]["uid"]: each for each in self._cache.by_index(INDEX, namespace)}
        claims = [each for each in self._claims.values() if each["metadata"]["namespace"] == namespace]
        return list((found | {each["metadata"]["uid"]: each for each in claims if self._counts(each)}).values())

    def _counts(self, claim: Object) -> bool:
        """Until the cache has another version: then the write is there, or somebody else wrote first."""
        meta = claim["metadata"]
        current = self._cache.get(Key(meta["namespace"], meta["name"]))
        return current is not None and current["metadata"]["resourceVersion"] == meta["resourceVersion"]

    def _limit(self, namespace: str, wanted: LockRequest) -> int | None:
        name, key = wanted.config_map or ("", "")
        take_work(_READ)
        text = self._config_map(namespace, name, key)
        try:
            return None if text is None else int(text)
        except ValueError:
            return None


def _rank(workflow: Object) -> tuple[int, str, str]:
    """The order in which workflows get a lock: by priority, then by age, as Argo's queue has them."""
    meta, priority = workflow["metadata"], (workflow.get("spec") or {}).get("priority")
    return (-priority if isinstance(priority, int) else 0, str(meta.get("creationTimestamp", "")), str(meta["name"]))


def _is_held_back(workflow: Object) -> bool:
    spec = workflow.get("spec") or {}
    return bool(spec.get("suspend") or spec.get("shutdown") or workflow["metadata"].get("deletionTimestamp"))


def _written(workflow: Object, plan: Plan) -> Object:
    """The part of the status that is about locks, as a plan leaves it."""
    before = workflow.get("status")
    status: Object = {SYNCHRONIZATION: before.get(SYNCHRONIZATION)} if isinstance(before, dict) else {}
    for patch in plan.patch:
        changes = patch.patch.get("status") if isinstance(patch.patch, dict) else None
        if isinstance(changes, dict) and SYNCHRONIZATION in changes:
            status = _merged(status, {SYNCHRONIZATION: changes[SYNCHRONIZATION]})
    return status


def _merged(old: Any, patch: Any) -> Any:
    """A JSON merge patch, applied."""
    if not isinstance(patch, dict):
        return patch
    made = dict(old) if isinstance(old, dict) else {}
    for name, value in patch.items():
        if value is None:
            made.pop(name, None)
        else:
            made[name] = _merged(made.get(name), value)
    return made
