"""Which samples of an ordered manifest each partition caches before training begins.

Three strategies share one signature; the table below is all there is to choosing one. `sequence` and `random` mean what
they always meant. Neither knows the sampler, so with P partitions a shuffled epoch finds 1/P of its reads at home.
`sampler` finds all of them.
"""

from __future__ import annotations

import random as randomness
from collections.abc import Callable

from paddlecloud.cache.plan.sampler import SamplerOptions
from paddlecloud.cache.plan.schedule import Schedule, flat

Shards = list[list[int]]
"""For each partition, indices of the manifest in the order in which they should be fetched."""


def warmup_shards(
    strategy: str, count: int, *, partitions: int, seed: int = 0, sampler: SamplerOptions | None = None
) -> Shards:
    """What each partition caches.

    `sampler` plans `sampler.epochs` epochs from `sampler.start_epoch`: each sample at its first use. A sample that
    several partitions read is in each of their shards; one that `drop_last` leaves out of all epochs is in none.
    """
    if strategy not in STRATEGIES:
        raise ValueError(f"there is no warm-up strategy {strategy!r}: choose {', '.join(STRATEGIES)}")
    if count < 0 or partitions < 1:
        raise ValueError(f"cannot spread {count} samples over {partitions} partitions")
    return STRATEGIES[strategy](count, partitions, seed, sampler or SamplerOptions())


def _sequence(count: int, partitions: int, _seed: int, _sampler: SamplerOptions) -> Shards:
    return [list(range(partition, count, partitions)) for partition in range(partitions)]


def _random(count: int, partitions: int, seed: int, _sampler: SamplerOptions) -> Shards:
    shards: Shards = [[] for _ in range(partitions)]
    draw = randomness.Random(seed).random  # noqa: S311 - this stream, unlike randrange's, is the same in every release
    for index in range(count):
        shards[int(draw() * partitions)].append(index)
    return shards


def _sampler(count: int, partitions: int, _seed: int, sampler: SamplerOptions) -> Shards:
    schedule = Schedule(count, partitions, sampler)
    shards: list[dict[int, None]] = [{} for _ in range(partitions)]  # each once, in order of first use
    for epoch in schedule.epochs if sampler.shuffle else schedule.epochs[:1]:  # unshuffled epochs are all alike
        for shard, steps in zip(shards, schedule.epoch(epoch), strict=True):
            shard.update(dict.fromkeys(flat(steps)))
    return [list(shard) for shard in shards]


STRATEGIES: dict[str, Callable[[int, int, int, SamplerOptions], Shards]] = {
    "sequence": _sequence,
    "random": _random,
    "sampler": _sampler,
}
