"""Mutexes and semaphores (`synchronization`): who holds them is in the statuses of the workflows. Pure.

As Argo's `workflow/sync`, with the same names and the same status. A lock is of the workflow's own namespace. It is
taken in one pass and used from the next one on: that a node holds it is stored before its pod is made, so no crash
leaves a pod without its lock. It is held while its node is not over; a workflow that is over or gone holds nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from paddlecloud.kube.resource import Object
from paddlecloud.local.workflow.nodes import Nodes, is_over
from paddlecloud.local.workflow.templates import TemplateError

MUTEX, SEMAPHORE = "mutex", "semaphore"
SYNCHRONIZATION = "synchronization"


@dataclass(frozen=True, slots=True)
class LockRequest:
    """`name` is as Argo writes it: `default/Mutex/NAME`, `default/ConfigMap/NAME/KEY`."""

    kind: str
    name: str
    config_map: tuple[str, str] | None = None
    of_database: bool = False
    """Never granted, as on an Argo without a database for locks."""


@dataclass(frozen=True, slots=True)
class Lock:
    """What others make of a lock: `holders` hold it, `ahead` workflows wait for it and come first.

    `limit` is how many may hold it; None where the ConfigMap does not say.
    """

    limit: int | None = 1
    holders: tuple[str, ...] = ()
    ahead: int = 0


Locks = Callable[[LockRequest], Lock]


def wanted(synchronization: Mapping[str, Any], namespace: str) -> list[LockRequest]:
    mutexes = [*_one(synchronization.get("mutex")), *(synchronization.get("mutexes") or ())]
    semaphores = [*_one(synchronization.get("semaphore")), *(synchronization.get("semaphores") or ())]
    made = [_mutex(each, namespace) for each in mutexes]
    for each in semaphores:
        if database := each.get("database"):
            made.append(LockRequest(SEMAPHORE, f"{namespace}/Database/{database.get('key', '')}", of_database=True))
            continue
        reference = each["configMapKeyRef"]
        name, key = str(reference["name"]), str(reference["key"])
        made.append(LockRequest(SEMAPHORE, f"{namespace}/ConfigMap/{name}/{key}", (name, key)))
    return list(dict.fromkeys(made))


def _mutex(mutex: Mapping[str, Any], namespace: str) -> LockRequest:
    if mutex.get("database"):
        return LockRequest(MUTEX, f"{namespace}/Database/{mutex['name']}", of_database=True)
    return LockRequest(MUTEX, f"{namespace}/Mutex/{mutex['name']}")


def _one(value: Any) -> list[Any]:
    return [value] if value else []


def holdings(status: Any, namespace: str) -> dict[str, list[str]]:
    """Lock to holders, of a status that anybody who may write the workflow may have written."""
    found: dict[str, list[str]] = {}
    for kind, entry in _entries(status, "holding"):
        holders = [entry.get("holder")] if kind == MUTEX else entry.get("holders")
        name = entry.get(kind)
        if isinstance(name, str) and name.startswith(f"{namespace}/") and isinstance(holders, list):
            found.setdefault(name, []).extend(each for each in holders if isinstance(each, str))
    return found


def waits_for(status: Any) -> set[str]:
    return {str(entry.get(kind)) for kind, entry in _entries(status, "waiting")}


def is_waiting(status: Any) -> bool:
    return next(iter(_entries(status, "waiting")), None) is not None


def _entries(status: Any, part: str) -> Iterable[tuple[str, Mapping[str, Any]]]:
    whole = status.get(SYNCHRONIZATION) if isinstance(status, Mapping) else None
    for kind in (MUTEX, SEMAPHORE):
        side = whole.get(kind) if isinstance(whole, Mapping) else None
        entries = side.get(part) if isinstance(side, Mapping) else None
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, Mapping):
                yield kind, entry


class Holding:
    """The locks of one workflow in one pass. `others` are the holders and waiters of other workflows."""

    def __init__(self, workflow: Object, nodes: Nodes, others: Locks) -> None:
        meta = workflow["metadata"]
        self._namespace = meta["namespace"]
        self._self = f"{meta['namespace']}/{meta['name']}"
        self._others = others
        self._nodes = nodes
        stored = holdings(workflow.get("status"), self._namespace)
        self._stored = {name: set(holders) for name, holders in stored.items()}
        self._held: dict[str, list[str]] = {
            name: [each for each in dict.fromkeys(holders) if self._is_alive(each)] for name, holders in stored.items()
        }
        self._waiting: dict[LockRequest, Lock] = {}

    def _is_alive(self, holder: str) -> bool:
        if holder == self._self:
            return True
        node = self._nodes.by_id.get(holder.removeprefix(f"{self._self}/"))
        return node is not None and holder.startswith(f"{self._self}/") and not is_over(node)

    def take(self, synchronization: Mapping[str, Any], node: str = "") -> tuple[bool, str, str]:
        """Whether a node, or the workflow itself, may go on; else the lock that it waits for, and a message.

        All of its locks are taken together or none. One that was taken right now may be used in the next pass.
        """
        holder = f"{self._self}/{node}" if node else self._self
        locks = wanted(synchronization, self._namespace)
        missing = [each for each in locks if holder not in self._held.get(each.name, ())]
        for each in missing:
            if each.of_database:
                raise TemplateError(f"database session is not available for {each.kind} {each.name}")
            lock = self._others(each)
            if lock.limit is None:
                raise TemplateError(f"failed to initialize semaphore {each.name} with limit: no whole number is there")
            free = lock.limit - len(lock.holders) - len(self._held.get(each.name, ()))
            if free - lock.ahead <= 0:
                self._waiting[each] = lock
                return False, each.name, f"Waiting for {each.name} lock. Lock status: {max(free, 0)}/{lock.limit}"
        for each in missing:
            self._held.setdefault(each.name, []).append(holder)
        is_stored = all(holder in self._stored.get(each.name, ()) for each in locks)
        return is_stored, "", ""

    def status(self) -> Object | None:
        """As `.status.synchronization` has it: of nodes that ended in this pass nothing is held any more."""
        made: Object = {}
        for name, holders in self._held.items():
            alive = [each for each in holders if self._is_alive(each)]
            if not alive:
                continue
            if name.startswith(f"{self._namespace}/Mutex/"):
                made.setdefault(MUTEX, {}).setdefault("holding", []).append({MUTEX: name, "holder": alive[0]})
            else:
                entry = {SEMAPHORE: name, "holders": alive}
                made.setdefault(SEMAPHORE, {}).setdefault("holding", []).append(entry)
        for each, lock in self._waiting.items():
            current = [*lock.holders, *self._held.get(each.name, ())]
            entry = {each.kind: each.name}
            entry |= {"holder": current[0] if current else ""} if each.kind == MUTEX else {"holders": current}
            made.setdefault(each.kind, {}).setdefault("waiting", []).append(entry)
        return made or None
