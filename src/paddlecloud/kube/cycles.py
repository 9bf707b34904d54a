"""Tasks, containers and components that need each other in a cycle. Pure."""

from __future__ import annotations

from collections.abc import Mapping


def cycle_in(needs: Mapping[str, list[str]]) -> list[str]:
    """The names of one cycle, or nothing. Those that need nothing are taken away until none is left."""
    left = {name: len(each) for name, each in needs.items()}
    needed_by: dict[str, list[str]] = {name: [] for name in needs}
    for name, each in needs.items():
        for other in each:
            needed_by[other].append(name)
    free = [name for name, count in left.items() if not count]
    while free:
        done = free.pop()
        del left[done]
        for name in needed_by[done]:
            left[name] -= 1
            if not left[name]:
                free.append(name)
    if not left:
        return []
    path = {min(left): None}
    while (following := min(each for each in needs[next(reversed(path))] if each in left)) not in path:
        path[following] = None
    cycle = list(path)
    return [*cycle[cycle.index(following) :], following]
