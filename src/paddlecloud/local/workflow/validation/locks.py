"""What is refused in `synchronization` when a workflow is written: locks of other namespaces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from paddlecloud.local.workflow.validation.problems import Problem, forbidden, invalid, required

MOST_LOCKS = 100
_FIELDS = ("mutex", "mutexes", "semaphore", "semaphores")


def lock_problems(holder: Mapping[str, Any], path: str) -> Iterator[Problem]:
    whole = holder.get("synchronization")
    if whole is None:
        return
    path = f"{path}.synchronization"
    if not isinstance(whole, dict):
        yield invalid(path, "must be a map with mutexes or semaphores")
        return
    for field in whole:
        if field not in _FIELDS:
            yield forbidden(f"{path}.{str(field)[:60]}")
    for kind, one, many in (("mutex", "mutex", "mutexes"), ("semaphore", "semaphore", "semaphores")):
        locks = [(f"{path}.{one}", whole[one])] if whole.get(one) else []
        listed = whole.get(many) or []
        if not isinstance(listed, list) or len(listed) > MOST_LOCKS:
            yield invalid(f"{path}.{many}", f"must be a list of at most {MOST_LOCKS} locks")
            continue
        locks += [(f"{path}.{many}[{at}]", each) for at, each in enumerate(listed)]
        for place, lock in locks:
            yield from _lock(kind, lock, place)


def _lock(kind: str, lock: Any, path: str) -> Iterator[Problem]:
    if not isinstance(lock, dict):
        yield invalid(path, "must be a map")
        return
    if lock.get("namespace"):
        yield forbidden(f"{path}.namespace", "locks are of the workflow's own namespace")
    source, fields = "", ["name"]
    if kind == "semaphore":  # one of a database is judged when it is taken: there is none here, as on most Argos
        source, fields = ("database", ["key"]) if lock.get("database") else ("configMapKeyRef", ["name", "key"])
    reference = lock.get(source) or {} if source else lock
    place = f"{path}.{source}" if source else path
    for field in fields:
        value = reference.get(field) if isinstance(reference, dict) else None
        if not isinstance(value, str) or not value or "/" in value:
            yield required(f"{place}.{field}", "a name without slashes")
