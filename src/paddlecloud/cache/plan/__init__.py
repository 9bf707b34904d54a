"""Plans from the sampler: which node reads which sample when, and what follows from knowing it.

Everything here is a pure function of the number of samples and the sampler's parameters, in the standard library alone:
cache servers, controllers and training programs import the same code (docs/design/sampler-plan.md).

| Module | Says |
|---|---|
| `sampler` | what each rank reads, exactly as Paddle's DistributedBatchSampler deals it |
| `schedule` | what each node reads at each step |
| `warmup` | what to cache where before training begins |
| `eviction` | what to drop when the cache is full |
| `prefetch` | how far ahead to fetch, and how long training waits |
| `handover` | to which node a sample goes after its use |
| `advise` | how much cache is enough |
"""

from __future__ import annotations

from paddlecloud.cache.plan.advise import Advice, Measured, advise
from paddlecloud.cache.plan.sampler import SamplerOptions, rank_reads
from paddlecloud.cache.plan.schedule import Schedule
from paddlecloud.cache.plan.warmup import STRATEGIES, warmup_shards

__all__ = [
    "STRATEGIES",
    "Advice",
    "Measured",
    "SamplerOptions",
    "Schedule",
    "advise",
    "rank_reads",
    "warmup_shards",
]
