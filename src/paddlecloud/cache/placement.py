"""Which file goes to which level of a node's cache, and what has to go for it. Pure.

Files come in the order in which they will be read. Those that are cached stay where they are; the others fill the
levels from the fastest on, so that what is read first lies fastest. What the plan does not name goes only when room is
needed, the longest unused first, and what does not fit at all is reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class WantedFile(NamedTuple):
    path: str
    size: int


class Held(NamedTuple):
    """A cached file."""

    size: int
    level: int
    used: float


@dataclass
class Placement:
    fetch: list[tuple[str, int]] = field(default_factory=list)
    """Paths to bring, with their levels, in reading order."""
    evict: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def place(wanted: Sequence[WantedFile], held: Mapping[str, Held], capacities: Sequence[float]) -> Placement:
    """`capacities` are bytes per level for everything we keep there; infinity where nothing limits it."""
    result = Placement()
    planned = {item.path for item in wanted}
    room = list(capacities)
    dropped = set()
    for want in wanted:
        if (item := held.get(want.path)) is not None:
            if room[item.level] >= item.size:
                room[item.level] -= item.size
            else:  # the quota became smaller
                dropped.add(want.path)
    others: list[list[tuple[float, str, int]]] = [[] for _ in capacities]
    for path, item in held.items():
        if path not in planned:
            others[item.level].append((item.used, path, item.size))
    taken = [0] * len(capacities)
    for want in wanted:
        if want.path in held and want.path not in dropped:
            continue
        level = next((index for index in range(len(room)) if room[index] - taken[index] >= want.size), None)
        if level is None:
            result.left_out.append(want.path)
            continue
        taken[level] += want.size
        result.fetch.append((want.path, level))
    result.evict += [path for path in held if path in dropped]
    for level, candidates in enumerate(others):
        spare = room[level] - taken[level] - sum(size for _, _, size in candidates)
        for _, path, size in sorted(candidates):
            if spare >= 0:
                break
            result.evict.append(path)
            spare += size
    return result
