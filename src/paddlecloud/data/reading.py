"""What the ranks that share a cache will read, from their present epoch on, and when each sample is wanted again.

Alone, a node wants a sample again when one of its own ranks reads it. Together with others (`peers`) it keeps a sample
for the rank that reads it next: in the next epoch, at a step that the plan of all ranks gives.

Positions count the node's reads from the beginning of its present epoch. Ranks take their steps together, so the step
of another node is a position here as well.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping

from paddlecloud.cache.plan.eviction import NEVER, Clairvoyant, next_uses
from paddlecloud.cache.plan.sampler import deal, epoch_order
from paddlecloud.cache.plan.schedule import Schedule, flat

HORIZON = 16
LONGEST_PLAN = 2_000_000
"""Epochs, and reads, that are looked ahead: what is not used in them is as good as never used."""


class Plan:
    def __init__(self, schedule: Schedule, per_epoch: int, *, together: bool) -> None:
        """`per_epoch` is how many reads a rank does in an epoch."""
        self._schedule, self._per_epoch, self._together = schedule, per_epoch, together
        self._members: tuple[int, ...] = ()
        self._epoch = -1
        self._known: dict[int, array[int]] = {}
        self._uses: dict[int, _Uses] = {}
        self._reads = array("q")  # arrays: a list of a million numbers takes several times the room
        self._own: dict[int, int] = {}
        self.first: Mapping[int, int] = {}
        """Where each sample is wanted first."""
        self.done = self.ahead = 0
        """Reads that are done, and the first one not looked at by the fetcher."""

    def next_read(self) -> int | None:
        return self._reads[self.ahead] if self.ahead < len(self._reads) else None

    def last_reader(self, sample: int) -> int | None:
        """The rank that reads a sample in the epoch before the read at `ahead`; None if nobody does."""
        before = self._uses.get(self._epoch + self.ahead // self._node_epoch - 1)
        return None if before is None or before.rank[sample] < 0 else before.rank[sample]

    def is_free(self, sample: int) -> bool:
        """Whether the last reader of a sample should be done with it, as far as our own progress shows."""
        epoch = self.ahead // self._node_epoch - 1
        before = self._uses.get(self._epoch + epoch)
        if before is None or before.rank[sample] < 0:
            return True
        return epoch * self._node_epoch + before.position[sample] < self.done

    def is_wanted_here(self, sample: int) -> bool:
        """Whether one of our own ranks has yet to read a sample in this epoch."""
        return self._own.get(sample, -1) >= self.done

    @property
    def _node_epoch(self) -> int:
        return self._per_epoch * len(self._members)

    def follow(self, positions: dict[int, int], kept: Clairvoyant) -> None:
        """Go on to where the last of the ranks is; what they have read is wanted at its next use."""
        if not positions or not self._per_epoch:
            return
        members = tuple(sorted(positions))
        passed, offset = divmod(min(positions.values()), self._per_epoch)
        epoch = self._schedule.epochs[0] + passed
        if members != self._members or epoch != self._epoch:
            self._plan(members, epoch, kept)
        size = self._schedule.sampler.batch_size
        done = min(offset // size * size * len(members), len(self._reads))
        for place in range(self.done, done):
            if (sample := self._reads[place]) in kept:
                kept.use(sample, self._following[place])
        self.done = max(self.done, done)
        self.ahead = max(self.ahead, self.done)

    def _plan(self, members: tuple[int, ...], epoch: int, kept: Clairvoyant) -> None:
        if members != self._members:
            self._known.clear()
            self._uses.clear()
        self._members, self._epoch = members, epoch
        per_epoch = self._node_epoch
        many = 2 if self._together else max(2, min(HORIZON, LONGEST_PLAN // per_epoch))
        coming = [number for number in range(epoch, epoch + many) if number in self._schedule.epochs]
        self._known = {
            number: self._known.get(number) or array("q", flat(self._schedule.of_ranks(members, number)))
            for number in coming
        }
        self._reads = array("q")
        for number in coming:
            self._reads.extend(self._known[number])
        self._own = {sample: place for place, sample in enumerate(self._reads[:per_epoch])} if self._together else {}
        if self._together and coming:
            self._following, self.first = self._next_uses_of_all(coming, per_epoch)
        else:
            self._following, self.first = next_uses(self._reads)
        self.done = self.ahead = 0
        kept.plan_anew(self.first)

    def _next_uses_of_all(self, coming: list[int], per_epoch: int) -> tuple[array[int], dict[int, int]]:
        """As `next_uses`, over the reads of all ranks. An epoch reads every sample, so the next use is in the next."""
        known = [number for number in (self._epoch - 1, *coming, coming[-1] + 1) if number in self._schedule.epochs]
        self._uses = {number: self._uses.get(number) or self._uses_in(number) for number in known}
        following = array("q", bytes(8 * len(self._reads)))
        for start, number in enumerate(coming):
            then = self._uses.get(number + 1)
            for place in range(start * per_epoch, start * per_epoch + per_epoch):
                after = NEVER if then is None else then.position[self._reads[place]]
                following[place] = after if after == NEVER else (start + 1) * per_epoch + after
        now = self._uses[coming[0]].position
        return following, {sample: now[sample] for sample in range(self._schedule.count)}

    def _uses_in(self, epoch: int) -> _Uses:
        schedule, size = self._schedule, self._schedule.sampler.batch_size
        order = epoch_order(schedule.count, ranks=schedule.ranks, epoch=epoch, shuffle=schedule.sampler.shuffle)
        uses = _Uses(schedule.count)
        for rank in range(schedule.ranks):
            reads = deal(order, ranks=schedule.ranks, rank=rank, batch_size=size, drop_last=schedule.sampler.drop_last)
            for offset, sample in enumerate(reads):
                uses.position[sample] = offset // size * size * len(self._members)
                uses.rank[sample] = rank
        return uses


class _Uses:
    """By sample: at which step of an epoch it is read, as a position of ours, and by which rank."""

    def __init__(self, count: int) -> None:
        self.position = array("q", [NEVER]) * count
        self.rank = array("q", [-1]) * count
