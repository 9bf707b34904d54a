"""Which node reads what, at which step of which epoch.

Ranks are numbered node by node, as a PaddleJob does it: node i runs ranks i·k … i·k+k-1, k ranks per node. All ranks
take their steps together, so what a node reads at a step is one batch of each of its ranks. Read order within a step is
by rank.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from paddlecloud.cache.plan.sampler import SamplerOptions, batches, deal, epoch_order

Steps = list[list[int]]
"""For each step, the samples read in it."""


@dataclass(frozen=True)
class Schedule:
    """All reads of a training run, computed epoch by epoch when asked for."""

    count: int
    """Samples in the set."""
    nodes: int
    sampler: SamplerOptions

    def __post_init__(self) -> None:
        if self.nodes < 1:
            raise ValueError(f"a schedule needs a node, not {self.nodes}")

    @property
    def ranks(self) -> int:
        return self.nodes * self.sampler.ranks_per_node

    @property
    def epochs(self) -> range:
        return range(self.sampler.start_epoch, self.sampler.start_epoch + self.sampler.epochs)

    def epoch(self, epoch: int) -> list[Steps]:
        """For each node, what it reads at each step of that epoch. One shuffle serves all nodes."""
        order = self._order(epoch)
        return [self._steps(order, self._ranks_of(node)) for node in range(self.nodes)]

    def node(self, node: int, epoch: int) -> Steps:
        """The same for one node."""
        if not 0 <= node < self.nodes:
            raise ValueError(f"node {node} is none of {self.nodes}: they count from 0")
        return self._steps(self._order(epoch), self._ranks_of(node))

    def of_ranks(self, ranks: Iterable[int], epoch: int) -> Steps:
        """The same for any ranks that share a cache."""
        return self._steps(self._order(epoch), ranks)

    def _order(self, epoch: int) -> list[int]:
        return epoch_order(self.count, ranks=self.ranks, epoch=epoch, shuffle=self.sampler.shuffle)

    def _ranks_of(self, node: int) -> range:
        k = self.sampler.ranks_per_node
        return range(node * k, node * k + k)

    def _steps(self, order: list[int], ranks: Iterable[int]) -> Steps:
        size, drop_last = self.sampler.batch_size, self.sampler.drop_last
        dealt = [deal(order, ranks=self.ranks, rank=rank, batch_size=size, drop_last=drop_last) for rank in ranks]
        each = [batches(reads, size) for reads in dealt]
        return [[sample for batch in step for sample in batch] for step in zip(*each, strict=True)]


def flat(steps: Steps) -> list[int]:
    """The reads of steps, one after the other."""
    return [sample for step in steps for sample in step]
