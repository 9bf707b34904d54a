"""A small set, a sampler as Paddle's, and a training loop: what the tests of reading through a cache share."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

from harness import until
from paddlecloud.cache.plan.sampler import batches, rank_reads
from paddlecloud.data import Files

COUNT = 64
SIZE = 1000


class Sampler:
    """What `follow` looks at in Paddle's DistributedBatchSampler."""

    batch_size, shuffle, drop_last = 8, True, False

    def __init__(self, *, nranks: int = 1, local_rank: int = 0, shuffle: bool = True) -> None:
        self.nranks, self.local_rank, self.shuffle = nranks, local_rank, shuffle
        self.epoch = 0

    def __iter__(self) -> Iterator[list[int]]:
        ranks = {"ranks": self.nranks, "rank": self.local_rank, "shuffle": self.shuffle}
        order = rank_reads(COUNT, batch_size=self.batch_size, epoch=self.epoch, **ranks)  # type: ignore[arg-type]
        self.epoch += self.shuffle
        yield from batches(order, self.batch_size)


def content(number: int) -> bytes:
    return bytes([number]) * (SIZE + number)


def paths() -> list[str]:
    return [f"images/{number:03}.jpg" for number in range(COUNT)]


def cached(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.glob("images/*"))


def fork(work: Callable[[], bool]) -> int:
    """Another process, as a loader's worker or another rank; ends well if its work says so."""
    child = os.fork()
    if child == 0:
        done = False
        try:
            done = work()
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0 if done else 1)
    return child


def used(cache: Path) -> int:
    total = 0
    for path in cache.glob("images/*"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:
            pass  # evicted meanwhile
    return total


def train(files: Files, sampler: Sampler, cache: Path, *, epochs: int, quota: int | None = None) -> None:
    """Read epoch by epoch; before each batch, training goes on long enough for the keeper to bring it."""

    def loader() -> Iterator[list[bytes]]:
        for batch in sampler:
            until(lambda batch=batch: all((cache / files[index]).exists() for index in batch), every=0.005)
            if quota is not None:
                assert used(cache) <= quota + 4 * COUNT, "beyond it only what four arrivals differ from the usual size"
            yield [files.read(index) for index in batch]

    for _ in range(epochs):
        for _batch in files.watch(loader()):
            pass
