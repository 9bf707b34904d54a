"""Next-use hand-over: when the nodes together can hold the set, every sample waits where it will be read next.

A shuffled epoch sends each sample to another node than the last one with probability 1 - 1/P. Reading it from the node
that happens to have it puts that transfer before the training step. But the next reader is known while the sample is
being used, so it can be sent there at once, in the background, with an epoch's time to arrive: the same transfers, none
of them waited for, and after the first epoch nothing is read from the origin.

A node gives away a sample it has read and receives others at the same pace, not at the same moment. How far apart the
two drift is the slack its cache needs beyond its share; `Epoch.peak` is exact for a given plan. It grows as the square
root of a node's samples: about 1.5 % of the share at 5,000 samples a node, 0.1 % at a million.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from paddlecloud.cache.plan.schedule import Schedule, Steps


class Move(NamedTuple):
    """After its use in `step`, `sample` goes to `target`, which reads it in `needed_epoch` at `needed_step`."""

    step: int
    sample: int
    target: int
    needed_epoch: int
    needed_step: int


@dataclass(frozen=True)
class Epoch:
    """What moves during one epoch, and what it takes."""

    epoch: int
    moves: list[list[Move]]
    """For each node, what it sends, in order."""
    local: int
    """Reads that find their sample on their own node."""
    peer: int
    """Reads that have to fetch their sample from another node."""
    origin: int
    """Reads of samples no node has yet."""
    peak: list[int]
    """For each node, the most samples it holds at once, when moves take effect at the end of their step."""


def hand_over(schedule: Schedule) -> Iterator[Epoch]:
    """The moves of every planned epoch, each found by looking at the next.

    A sample that `drop_last` leaves out of the next epoch stays where it is; its later reader fetches it from there.
    """
    homes: dict[int, tuple[int, ...]] = {}  # sample → nodes it is on; more than one where padding repeats a sample
    coming: list[list[Steps]] = []
    for number, epoch in enumerate(schedule.epochs):
        while len(coming) < 2 and number + len(coming) < len(schedule.epochs):
            coming.append(schedule.epoch(epoch + len(coming)))
        yield _epoch(epoch, coming[0], _uses(coming[1], epoch + 1) if len(coming) > 1 else {}, homes)
        coming.pop(0)


Uses = dict[int, list[tuple[int, int, int]]]
"""Sample → its uses in an epoch: (epoch, step, node)."""


def _uses(nodes: list[Steps], epoch: int) -> Uses:
    uses: Uses = {}
    for node, steps in enumerate(nodes):
        for step, samples in enumerate(steps):
            for sample in samples:
                uses.setdefault(sample, []).append((epoch, step, node))
    return uses


def _epoch(epoch: int, nodes: list[Steps], following: Uses, homes: dict[int, tuple[int, ...]]) -> Epoch:
    held = [0] * len(nodes)
    for places in homes.values():
        for node in places:
            held[node] += 1
    moves: list[list[Move]] = [[] for _ in nodes]
    peak = list(held)
    local = peer = origin = 0
    left = {sample: len(uses) for sample, uses in _uses(nodes, epoch).items()}
    for step in range(max((len(steps) for steps in nodes), default=0)):
        changed: list[tuple[int, tuple[int, ...], tuple[int, ...]]] = []
        for node, steps in enumerate(nodes):
            for sample in steps[step] if step < len(steps) else ():
                here = homes.get(sample, ())
                local += node in here
                peer += bool(here) and node not in here
                origin += not here
                left[sample] -= 1
                if left[sample]:  # padding: another node, or this one, reads it later in this very epoch
                    after = here if node in here else (*here, node)
                else:
                    wanted = following.get(sample, [])
                    after = tuple(dict.fromkeys(target for _, _, target in wanted)) or (node,)
                    moves[node] += [Move(step, sample, n, e, s) for e, s, n in wanted if n != node and n not in here]
                homes[sample] = after
                changed.append((sample, here, after))
        for _, here, after in changed:
            for node in here:
                held[node] -= 1
            for node in after:
                held[node] += 1
        peak = [max(pair) for pair in zip(peak, held, strict=True)]
    return Epoch(epoch, moves, local, peer, origin, peak)


def fits(schedule: Schedule, capacity: int) -> bool:
    """Whether nodes that hold `capacity` samples each can run the hand-over without the origin after one epoch."""
    return all(max(epoch.peak) <= capacity for epoch in hand_over(schedule))
