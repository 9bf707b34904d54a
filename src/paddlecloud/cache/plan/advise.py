"""What if: from a few measured figures, how long training will wait for data, and which cache would end the waiting.

The model, for n samples on P nodes (q = 1/P is a node's share of an epoch) and a cache for c·n samples on each:

A sample that a node has read is read there again g epochs later with probability p(g) = q·(1-q)^(g-1). Kept for that,
it is in the cache at g ends of an epoch. An epoch begins q·n·p(g) such intervals, so keeping all of length g takes
q·n·g·p(g) places, and saves a share p(g) of the reads. Clairvoyant eviction keeps the short ones first:

    hit ratio = p(1) + p(2) + … + the part of p(G) for which places are left

Worked example, P = 4, c = 0.25: lengths 1, 2, 3 take .0625 + .09375 + .1055 = .2617 of n. The first two fit, and .889
of the third: .25 + .1875 + .889·.1406 = .5625, once training has run for more than three epochs; in epoch e (from 1)
only intervals shorter than e can have begun, so epochs 2 … 10 average (.25 + .4375 + 7·.5625)/9 = .514. The simulator
of `eviction` counts .515.

One node gives p(1) = 1: the hit ratio is c, the textbook result. An unshuffled epoch repeats itself on every node: c·P.
When the nodes together hold the set, the hand-over (`handover`) leaves nothing to fetch.

With prefetching the link works while the training computes, so an epoch takes the longer of the two.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from paddlecloud.kube.sizes import binary_size as size
from paddlecloud.kube.times import precise_duration as duration

HANDOVER_SLACK = 1.05
"""Room beyond its share that a node needs for the hand-over; `handover` computes it exactly for a given plan."""


@dataclass(frozen=True)
class Measured:
    """What is known about a training run. `samples_per_second` is measured where data does not hold it up."""

    samples: int
    sample_bytes: float
    """On average."""
    samples_per_second: float
    """Of the whole job, all ranks together."""
    link_bytes_per_second: float
    """From the origin to all nodes together."""
    cache_bytes: float
    """On each node."""
    nodes: int = 1
    epochs: int = 10
    shuffle: bool = True
    handover: bool = False
    """Whether nodes pass samples on to their next reader."""

    def __post_init__(self) -> None:
        for name in ("samples", "sample_bytes", "samples_per_second", "link_bytes_per_second", "nodes", "epochs"):
            if not 0 < getattr(self, name) < inf:
                raise ValueError(f"{name} must be more than 0, not {getattr(self, name)}")
        if self.cache_bytes < 0:
            raise ValueError(f"cache_bytes must be 0 or more, not {self.cache_bytes}")


@dataclass(frozen=True)
class Advice:
    """What to expect, and what would help."""

    measured: Measured
    compute_seconds: float
    """Of an epoch that waits for nothing."""
    cold_seconds: float
    """Of the first epoch, when nothing was warmed up."""
    hit_ratio: float
    """Of later epochs, once they are alike."""
    origin_bytes: float
    """That cross the link in such an epoch."""
    epoch_seconds: float
    stall_seconds: float
    """Of such an epoch, spent waiting."""
    total_seconds: float
    """Of the whole run, from a cold start."""
    cache_without_stall: float
    """Bytes on each node with which such an epoch waits for nothing."""
    link_without_stall: float
    """Bytes per second with which the present cache would be enough."""

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def advise(measured: Measured) -> Advice:
    """Predict an epoch, and the smallest cache with which it would not wait."""
    compute = measured.samples / measured.samples_per_second
    size = measured.samples * measured.sample_bytes
    cold = max(compute, size / measured.link_bytes_per_second)
    ratios = [hit_ratio(measured, epoch) for epoch in range(2, measured.epochs + 1)]
    settled = hit_ratio(measured)
    origin = (1 - settled) * size
    later = max(compute, origin / measured.link_bytes_per_second)
    total = cold + sum(max(compute, (1 - ratio) * size / measured.link_bytes_per_second) for ratio in ratios)
    return Advice(
        measured=measured,
        compute_seconds=compute,
        cold_seconds=cold,
        hit_ratio=settled,
        origin_bytes=origin,
        epoch_seconds=later,
        stall_seconds=later - compute,
        total_seconds=total,
        cache_without_stall=_enough(measured, 1 - compute * measured.link_bytes_per_second / size),
        link_without_stall=origin / compute,
    )


def hit_ratio(measured: Measured, epoch: int | None = None) -> float:
    """Share of reads that find their sample on their node, in an epoch counted from 1; left out: once all are alike.

    With clairvoyant eviction, from a cold start.
    """
    places = measured.cache_bytes / (measured.samples * measured.sample_bytes)
    if epoch == 1:
        return 0.0
    if measured.handover and places * measured.nodes >= HANDOVER_SLACK:
        return 1.0
    found = 0.0
    for length, (share, cost) in enumerate(_intervals(measured), 1):
        if epoch is not None and length >= epoch:
            break
        found += share * min(1.0, places / cost)
        places -= cost
        if places <= 0:
            break
    return min(found, 1.0)


def _enough(measured: Measured, wanted: float) -> float:
    """The smallest cache with which `hit_ratio` is `wanted`: the same sum, read the other way."""
    if wanted <= 0:
        return 0.0
    size = measured.samples * measured.sample_bytes
    places = 0.0
    for share, cost in _intervals(measured):
        part = min(1.0, wanted / share)
        places += part * cost
        wanted -= share
        if wanted <= 0:
            break
    together = HANDOVER_SLACK / measured.nodes if measured.handover else inf
    return min(places, together, 1.0) * size


def _intervals(measured: Measured) -> Iterator[tuple[float, float]]:
    """For interval lengths 1, 2, …: the share of reads that end one, and the part of the set it takes to keep them."""
    q = 1 / measured.nodes
    share = 1.0
    if not measured.shuffle:
        yield 1.0, q
        return
    for length in range(1, 100_000):
        yield q * share, q * length * q * share
        share *= 1 - q
        if share < 1e-9:
            return


def _lines(advice: Advice) -> Iterator[str]:
    m = advice.measured
    nodes = "1 node" if m.nodes == 1 else f"{m.nodes} nodes"
    yield (
        f"{m.samples:,} samples of {size(m.sample_bytes)} on {nodes}, {size(m.cache_bytes)} of cache on each, "
        f"{size(m.link_bytes_per_second)}/s from the origin, {m.samples_per_second:,.0f} samples/s when nothing waits"
    )
    yield f"computing alone        {duration(advice.compute_seconds)} an epoch"
    yield f"first epoch, cold      {duration(advice.cold_seconds)}"
    yield (
        f"later epochs           {duration(advice.epoch_seconds)}, of which {duration(advice.stall_seconds)} waiting; "
        f"{advice.hit_ratio:.0%} of reads hit the cache, {size(advice.origin_bytes)} cross the link"
    )
    yield f"all {m.epochs} epochs          {duration(advice.total_seconds)}"
    if advice.stall_seconds <= 0:
        yield "The link keeps up: no larger cache is needed."
        return
    yield "Any of these would end the waiting:"
    yield f"  {size(advice.cache_without_stall)} of cache on each node"
    together = m.samples * m.sample_bytes * HANDOVER_SLACK / m.nodes
    if not m.handover and together < advice.cache_without_stall:
        yield f"  {size(together)} of cache on each node, and nodes that hand samples over to their next reader"
    yield f"  {size(advice.link_without_stall)}/s from the origin"
