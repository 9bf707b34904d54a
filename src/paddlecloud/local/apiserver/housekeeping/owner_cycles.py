"""Owner references that lead back to where they began: objects of which each waits for the next one's deletion.

Pure. The author of the references may be hostile: the work is bounded, whatever the objects refer to.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Set
from typing import TypeVar

T = TypeVar("T")

MOST_STEPS = 10_000
"""References looked at, in some milliseconds. A cycle that is not found within them holds its members until one of
them loses its finalizer, as every cycle does in kube-controller-manager whose members were all deleted by hand."""


def in_a_cycle(start: T, dependents: Set[T], waiting_owners: Callable[[T], Iterable[T | None]]) -> bool:
    """Whether each of the dependents is itself waiting for `start`, directly or through others.

    `waiting_owners` gives for each reference of an object the owner that waits for this object to go first, None if
    there is no such owner. Those nearest to `start` are looked at first, so that many objects that all own each
    other are found at once.
    """
    missing = set(dependents)
    found: set[T] = set()
    todo = deque([start])
    steps = 0
    while todo and missing:
        for owner in waiting_owners(todo.popleft()):
            steps += 1
            if steps > MOST_STEPS:
                return False
            if owner is not None and owner not in found:
                found.add(owner)
                missing.discard(owner)
                todo.append(owner)
    return not missing
