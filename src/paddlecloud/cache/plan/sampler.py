"""Which samples each rank reads, in which order: Paddle's `DistributedBatchSampler` as pure functions.

The order is a function of (samples, ranks, batch size, epoch) and of nothing else, so it can be known on another
machine, before training begins. The rule, for n samples, R ranks and batches of B:

1. 0…n-1, continued from its own head to m·R entries, where m = ⌈n / R⌉;
2. if it shuffles, `RandomState(epoch).shuffle` of that list; epochs count from 0;
3. rank r takes entries rB … rB+B-1, then those B·R further on, as long as whole rounds last; of the rest every rank
   takes an equal, contiguous part;
4. batches of B; with `drop_last` an incomplete last one is left out.

Worked example, n=10, R=2, B=2: without shuffling rank 0 reads 0 1, 4 5, 8 and rank 1 reads 2 3, 6 7, 9.

`SequenceSampler` (0…n-1 in every process) is this rule with one rank. `RandomSampler` draws from numpy's global state,
which depends on everything the program did before: it cannot be planned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from paddlecloud.cache.plan.mersenne import shuffle as shuffle_in_place


@dataclass(frozen=True)
class SamplerOptions:
    """What the training program gives its sampler, and how its ranks are spread. Defaults are Paddle's."""

    batch_size: int = 1
    """Samples per batch and rank."""
    shuffle: bool = False
    epochs: int = 1
    """Epochs to plan for."""
    start_epoch: int = 0
    """The sampler's epoch when training begins: 0, unless it resumes or calls `set_epoch`."""
    ranks_per_node: int = 1
    drop_last: bool = False

    def __post_init__(self) -> None:
        for name in ("batch_size", "epochs", "ranks_per_node"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be 1 or more, not {getattr(self, name)}")
        if self.start_epoch < 0:
            raise ValueError(f"start_epoch must be 0 or more, not {self.start_epoch}")


def epoch_order(count: int, *, ranks: int, epoch: int = 0, shuffle: bool = False) -> list[int]:
    """What all ranks together read in an epoch, before it is dealt out (steps 1 and 2)."""
    if count < 0 or ranks < 1:
        raise ValueError(f"cannot deal {count} samples to {ranks} ranks")
    if count == 0:
        return []
    total = -(-count // ranks) * ranks
    order = list(range(count)) * (total // count) + list(range(total % count))
    if shuffle:
        shuffle_in_place(order, epoch)
    return order


def deal(order: Sequence[int], *, ranks: int, rank: int, batch_size: int, drop_last: bool = False) -> list[int]:
    """What one rank reads of an epoch's order (steps 3 and 4)."""
    if not 0 <= rank < ranks:
        raise ValueError(f"rank {rank} is none of {ranks}: they count from 0")
    rounds = len(order) - len(order) % (batch_size * ranks)
    mine: list[int] = []
    for start in range(rank * batch_size, rounds, batch_size * ranks):
        mine += order[start : start + batch_size]
    part = (len(order) - rounds) // ranks
    if not drop_last:  # the rest is less than a batch per rank
        mine += order[rounds + rank * part : rounds + (rank + 1) * part]
    return mine


def rank_reads(
    count: int,
    *,
    ranks: int,
    rank: int,
    batch_size: int,
    epoch: int = 0,
    shuffle: bool = False,
    drop_last: bool = False,
) -> list[int]:
    """The samples one rank reads in one epoch, in order."""
    order = epoch_order(count, ranks=ranks, epoch=epoch, shuffle=shuffle)
    return deal(order, ranks=ranks, rank=rank, batch_size=batch_size, drop_last=drop_last)


def batches(reads: Sequence[int], batch_size: int) -> list[list[int]]:
    """A rank's reads as the batches its loader yields."""
    return [list(reads[start : start + batch_size]) for start in range(0, len(reads), batch_size)]
