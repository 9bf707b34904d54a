"""The order in which ranks read: golden vectors, Paddle itself, and what must hold for any parameters."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddlecloud.cache.plan.mersenne import shuffle
from paddlecloud.cache.plan.sampler import batches, rank_reads
from tools import paddle


@pytest.fixture(scope="module", autouse=True)
def without_numpy() -> Iterator[None]:
    """What is checked here is the generator of the standard library; the test below Paddle checks numpy's as well."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delitem(sys.modules, "numpy", raising=False)
        yield


GOLDEN = [
    # samples, ranks, batch, epoch (None: no shuffling), what each rank reads
    (10, 2, 2, None, [[0, 1, 4, 5, 8], [2, 3, 6, 7, 9]]),
    (10, 2, 2, 0, [[2, 8, 1, 6, 0], [4, 9, 7, 3, 5]]),
    (10, 2, 2, 1, [[2, 9, 0, 3, 8], [6, 4, 1, 7, 5]]),
    (11, 4, 2, None, [[0, 1, 8], [2, 3, 9], [4, 5, 10], [6, 7, 0]]),
]


@pytest.mark.parametrize(("count", "ranks", "size", "epoch", "expected"), GOLDEN)
def test_each_rank_reads_what_paddle_deals_it(
    count: int, ranks: int, size: int, epoch: int | None, expected: list[list[int]]
) -> None:
    found = [
        rank_reads(count, ranks=ranks, rank=rank, batch_size=size, epoch=epoch or 0, shuffle=epoch is not None)
        for rank in range(ranks)
    ]
    assert found == expected


def test_one_rank_without_shuffling_reads_in_sequence() -> None:
    assert rank_reads(7, ranks=1, rank=0, batch_size=3) == list(range(7))


def test_an_incomplete_last_batch_is_left_out_when_asked() -> None:
    assert rank_reads(10, ranks=2, rank=0, batch_size=2, drop_last=True) == [0, 1, 4, 5]


CASES = [
    # samples, ranks, batch size, shuffle, drop_last, epochs
    (10, 2, 2, True, False, 3),
    (11, 4, 2, True, True, 3),
    (1, 4, 3, True, False, 2),
    (3, 8, 2, True, False, 2),
    (1000, 1, 7, True, False, 2),
    (1000, 3, 64, True, True, 2),
    (1027, 8, 32, True, False, 3),
    (1027, 8, 32, False, True, 1),
    (20_000, 4, 64, True, False, 2),
    (100_003, 4, 64, True, False, 1),
]
IN_PADDLE = """
import json, sys
import numpy as np
from paddle.io import DistributedBatchSampler
found = []
for count, ranks, size, shuffle, drop_last, epochs in json.loads(sys.argv[1]):
    for rank in range(ranks):
        sampler = DistributedBatchSampler(range(count), size, ranks, rank, shuffle, drop_last)
        found.append([[list(map(int, batch)) for batch in sampler] for _ in range(epochs)])
shuffled = []
for count, seed in json.loads(sys.argv[2]):
    items = list(range(count))
    np.random.RandomState(seed).shuffle(items)
    shuffled.append(items)
from paddlecloud.cache.plan.sampler import batches, rank_reads  # here numpy is loaded, and used
inside = [
    [
        batches(
            rank_reads(
                count, ranks=ranks, rank=rank, batch_size=size, epoch=epoch, shuffle=shuffle, drop_last=drop_last
            ),
            size,
        )
        for epoch in range(epochs)
    ]
    for count, ranks, size, shuffle, drop_last, epochs in json.loads(sys.argv[1])
    for rank in range(ranks)
]
print("RESULT" + json.dumps([found, shuffled, inside == found]))
"""
SHUFFLES = [(1, 0), (2, 7), (255, 1), (256, 1), (257, 1), (4096, 2**31), (5000, 2**32 - 1)]


@pytest.mark.paddle
@pytest.mark.timeout(900)
@pytest.mark.parametrize("image", ["paddlecloud/paddle:3.3", "paddlecloud/paddle:2.6"])
def test_paddle_itself_deals_the_same_batches(image: str) -> None:
    done = paddle.run(IN_PADDLE, json.dumps(CASES), json.dumps(SHUFFLES), image=image)
    assert "RESULT" in done.stdout, done.stderr[-2000:]
    theirs, shuffled, inside = json.loads(done.stdout.partition("RESULT")[2])
    assert inside, "what the training program plans is what its own sampler deals"
    ours = [
        [
            batches(
                rank_reads(
                    count,
                    ranks=ranks,
                    rank=rank,
                    batch_size=size,
                    epoch=epoch,
                    shuffle=shuffles,
                    drop_last=drop_last,
                ),
                size,
            )
            for epoch in range(epochs)
        ]
        for count, ranks, size, shuffles, drop_last, epochs in CASES
        for rank in range(ranks)
    ]
    assert ours == theirs
    for (count, seed), expected in zip(SHUFFLES, shuffled, strict=True):
        items = list(range(count))
        shuffle(items, seed)
        assert items == expected, (count, seed)


@settings(deadline=None)
@given(
    count=st.integers(0, 300),
    ranks=st.integers(1, 9),
    size=st.integers(1, 20),
    epoch=st.integers(0, 50),
    shuffles=st.booleans(),
)
def test_an_epoch_reads_every_sample_and_repeats_only_the_padding(
    count: int, ranks: int, size: int, epoch: int, shuffles: bool
) -> None:
    each = [
        rank_reads(count, ranks=ranks, rank=rank, batch_size=size, epoch=epoch, shuffle=shuffles)
        for rank in range(ranks)
    ]
    assert len({len(reads) for reads in each}) == 1, "ranks take the same number of steps"
    everything = [sample for reads in each for sample in reads]
    assert sorted(set(everything)) == list(range(count))
    assert len(everything) - count < ranks or count < ranks


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_a_seed_numpy_would_refuse_is_refused(seed: int) -> None:
    with pytest.raises(ValueError, match="4294967295"):
        shuffle([1, 2], seed)


def test_planning_an_epoch_of_imagenet_is_cheap() -> None:
    began = time.process_time()
    assert len(rank_reads(1_281_167, ranks=8, rank=3, batch_size=64, epoch=5, shuffle=True)) == 160_146
    assert time.process_time() - began < 5, "CPU-seconds; it takes 0.7 on an idle core"
