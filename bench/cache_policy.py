"""Which samples are on the node when they are read: warm-up strategies and eviction on Paddle's real orders.

Counts, not times: N = 20,000 samples of 100 KB, four nodes with a rank each, batches of 64, ten shuffled epochs. After
their warm-up `sequence`, `random` and `sampler` keep what they have, fill what room is left with what they miss, and
never evict: the best that can be done without knowing what comes. `lru` and `clairvoyant` start cold. Figures are of
epochs 2 to 10, unless a row says otherwise; "origin" is what crosses the link per epoch, for all nodes.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import cache

from paddlecloud.cache.plan import SamplerOptions, Schedule, rank_reads, warmup_shards
from paddlecloud.cache.plan.eviction import replay
from paddlecloud.cache.plan.handover import hand_over
from paddlecloud.cache.plan.prefetch import Conditions, prefetch, window_of
from paddlecloud.cache.plan.schedule import flat

from .claim import Claim

COUNT, NODES, BATCH, EPOCHS, SAMPLE = 20_000, 4, 64, 10, 100_000
OPTIONS = SamplerOptions(batch_size=BATCH, shuffle=True, epochs=EPOCHS)
SCHEDULE = Schedule(COUNT, NODES, OPTIONS)
SETTING = f"N={COUNT:,}, {NODES} nodes, B={BATCH}, epochs 2–{EPOCHS}"
GOALS = {0.10: 0.31, 0.25: 0.51, 0.50: 0.65}
IMAGENET = 1_281_167

Hits = list[list[bool]]
"""By node: whether each read found its sample."""


def run() -> Iterator[Claim]:
    yield from first_epoch()
    for share in (0.10, 0.25, 0.50, 1.0):
        yield from policies(share)
    yield from together()
    yield planning()


@cache
def reads() -> list[list[int]]:
    """By node, all epochs."""
    epochs = [SCHEDULE.epoch(epoch) for epoch in SCHEDULE.epochs]
    return [[sample for epoch in epochs for sample in flat(epoch[node])] for node in range(NODES)]


def per_epoch() -> int:
    return len(reads()[0]) // EPOCHS


def warmed(strategy: str, places: int) -> list[list[int]]:
    """What each node's cache holds before training; `sampler` goes on to further epochs while there is room."""
    shards = warmup_shards(strategy, COUNT, partitions=NODES, seed=1, sampler=OPTIONS)
    return [shard[:places] for shard in shards]


# Policies


def keep(strategy: str) -> Callable[[int], Hits]:
    """Warm up, fill what room is left, never evict."""

    def hits(places: int) -> Hits:
        found = []
        for shard, order in zip(warmed(strategy, places), reads(), strict=True):
            held = set(shard)
            of_node = []
            for sample in order:
                of_node.append(sample in held)
                if len(held) < places:
                    held.add(sample)
            found.append(of_node)
        return found

    return hits


def least_recently_used(places: int) -> Hits:
    found = []
    for order in reads():
        held: OrderedDict[int, None] = OrderedDict()
        of_node = []
        for sample in order:
            of_node.append(sample in held)
            held[sample] = None
            held.move_to_end(sample)
            if len(held) > places:
                held.popitem(last=False)
        found.append(of_node)
    return found


def clairvoyant(places: int) -> Hits:
    """From a cold start."""
    return [replay(order, places) for order in reads()]


def warmed_clairvoyant(places: int) -> Hits:
    return [replay(order, places, held=shard) for shard, order in zip(warmed("sampler", places), reads(), strict=True)]


POLICIES: dict[str, Callable[[int], Hits]] = {
    "lru": least_recently_used,
    "sequence": keep("sequence"),
    "random": keep("random"),
    "sampler": keep("sampler"),
    "clairvoyant": clairvoyant,
    "sampler + clairvoyant": warmed_clairvoyant,
}


def policies(share: float) -> Iterator[Claim]:
    best = 0.0
    for name, policy in POLICIES.items():
        found = policy(int(COUNT * share))
        later = [hit for of_node in found for hit in of_node[per_epoch() :]]
        ratio = sum(later) / len(later)
        origin = (len(later) - sum(later)) * SAMPLE / (EPOCHS - 1) / 1e6
        ours = name == "clairvoyant"
        yield Claim(
            f"hit ratio, {name}, cache {share:.0%} per node",
            ratio,
            "",
            goal=GOALS.get(share) if ours else None,
            at_least=True,
            other=best if ours else None,
            other_name="best of the others",
            note=f"origin {origin:,.0f} MB/epoch; {SETTING}",
        )
        best = max(best, ratio)


def first_epoch() -> Iterator[Claim]:
    """Right after the warm-up, each node with room for its part: what a shuffled epoch finds at home."""
    places = COUNT // NODES
    others = {}
    for strategy in ("sequence", "random", "sampler"):
        hits = reads_at_home = 0
        for shard, order in zip(warmed(strategy, places + 200), reads(), strict=True):
            held = set(shard)
            hits += sum(sample in held for sample in order[: per_epoch()])
            reads_at_home += per_epoch()
        others[strategy] = hits / reads_at_home
    yield Claim(
        "hit ratio of the first shuffled epoch, sampler plan",
        others["sampler"],
        "",
        goal=0.99,
        at_least=True,
        other=others["sequence"],
        other_name="sequence",
        note=f"random {others['random']:.3f}; N={COUNT:,}, {NODES} nodes, cache 25 % per node",
    )
    epochs = [SCHEDULE.node(0, epoch) for epoch in SCHEDULE.epochs]
    full = Conditions(
        sample_bytes=SAMPLE,
        cache_bytes=COUNT * SAMPLE,
        link=0.9 * BATCH * SAMPLE,
        step_seconds=1.0,
        window=window_of(COUNT, count=COUNT, step=BATCH),
    )
    worst = min(epoch.hit_ratio for epoch in prefetch(epochs, full, held=warmed("sampler", COUNT)[0]))
    yield Claim(
        "on time in the worst shuffled epoch, prefetching",
        worst,
        "",
        goal=0.99,
        at_least=True,
        note="modelled: full cache, sampler warm-up, link 0.9 × what training reads",
    )


def together() -> Iterator[Claim]:
    epochs = list(hand_over(SCHEDULE))
    later = epochs[1:]
    need = max(max(epoch.peak) for epoch in epochs) / COUNT
    yield Claim(
        "hit ratio with hand-over to the next reader",
        sum(epoch.local for epoch in later) / (len(later) * COUNT),
        "",
        goal=0.99,
        at_least=True,
        note=f"cache {need:.1%} per node, every move done by the end of its step; {SETTING}",
    )
    yield Claim("origin reads after epoch 1 with hand-over", sum(epoch.origin for epoch in later), "", goal=0)
    moved = sum(len(moves) for epoch in later[:-1] for moves in epoch.moves) / len(later[:-1])
    yield Claim("samples handed over per epoch", moved / COUNT, "of N", note="in the background, an epoch ahead")


def planning() -> Claim:
    began = time.process_time()
    rank_reads(IMAGENET, ranks=8, rank=0, batch_size=64, epoch=3, shuffle=True)
    note = f"{IMAGENET:,} samples, 8 ranks, standard library only"
    return Claim("planning an epoch of ImageNet", time.process_time() - began, "CPU-s", goal=2, note=note)
