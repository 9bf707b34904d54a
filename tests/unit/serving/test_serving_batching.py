"""Requests that wait together run together, and nobody pays for another's input."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from paddlecloud.serving.batching import Batcher
from paddlecloud.serving.errors import InferenceFailed, Overloaded
from paddlecloud.serving.limits import BatchLimits


class Held:
    """A model that doubles its input, once the test lets it."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.began = threading.Event()
        self.batches: list[int] = []

    def run(self, feeds: dict[str, Any]) -> dict[str, Any]:
        self.began.set()
        assert self.open.wait(10)
        self.batches.append(len(feeds["x"]))
        if (feeds["x"] < 0).any():
            raise ValueError("Traceback\n  InvalidArgumentError: negative input\n  more")
        return {"y": feeds["x"] * 2}


def rows(*values: float, width: int = 1) -> dict[str, Any]:
    return {"x": np.array([[value] * width for value in values], dtype="float32")}


async def started(batcher: Batcher, held: Held, *requests: dict[str, Any]) -> list[asyncio.Task[dict[str, Any]]]:
    """The first request occupies the runner; the others wait behind it."""
    first = asyncio.create_task(batcher.submit(rows(0)))
    await asyncio.to_thread(held.began.wait, 10)
    others = [asyncio.create_task(batcher.submit(request)) for request in requests]
    while batcher.waiting < len(requests):
        await asyncio.sleep(0)
    return [first, *others]


def make(held: Held, limits: BatchLimits | None = None, observe: Callable[[int], None] = lambda rows: None) -> Batcher:
    return Batcher([held.run], limits or BatchLimits(), observe=observe)


async def test_what_waits_together_runs_together_and_everyone_gets_their_own() -> None:
    held, seen = Held(), []
    batcher = make(held, observe=seen.append)
    tasks = await started(batcher, held, rows(1), rows(2, 3), rows(4))
    held.open.set()
    answers = [(await task)["y"].reshape(-1).tolist() for task in tasks]
    assert answers == [[0], [2], [4, 6], [8]]
    assert held.batches == [1, 4]
    assert seen == [1, 4]
    reported = batcher.statistics.as_json()
    assert (reported["inference_count"], reported["execution_count"]) == (5, 2)
    assert {name: one["count"] for name, one in reported["inference_stats"].items() if one["count"]} == dict.fromkeys(
        ("success", "queue", "compute_input", "compute_infer", "compute_output"), 4
    )
    assert [one["batch_size"] for one in reported["batch_stats"]] == [1, 4]
    await batcher.close()


async def test_a_batch_has_no_more_rows_than_allowed() -> None:
    held = Held()
    batcher = make(held, BatchLimits(rows=3))
    tasks = await started(batcher, held, rows(1), rows(2, 3), rows(4), rows(5, 6, 7, 8))
    held.open.set()
    await asyncio.gather(*tasks)
    assert held.batches == [1, 3, 1, 4], "one request alone may be larger; together they may not"
    await batcher.close()


async def test_tensors_of_other_shapes_do_not_go_together() -> None:
    held = Held()
    batcher = make(held)
    tasks = await started(batcher, held, rows(1), rows(2, width=5), rows(3))
    held.open.set()
    await asyncio.gather(*tasks)
    assert held.batches == [1, 1, 1, 1]
    await batcher.close()


async def test_a_request_that_fails_spoils_no_other() -> None:
    held = Held()
    batcher = make(held)
    _, good, bad, also_good = tasks = await started(batcher, held, rows(1), rows(-1), rows(2))
    held.open.set()
    await asyncio.wait(tasks)
    assert good.result()["y"].tolist() == [[2]]
    assert also_good.result()["y"].tolist() == [[4]]
    with pytest.raises(InferenceFailed, match="^InvalidArgumentError: negative input$"):
        bad.result()
    await batcher.close()


async def test_more_than_may_wait_is_refused_at_once() -> None:
    held = Held()
    batcher = make(held, BatchLimits(waiting=2))
    tasks = await started(batcher, held, rows(1), rows(2))
    with pytest.raises(Overloaded, match="2 requests wait"):
        await batcher.submit(rows(3))
    held.open.set()
    await asyncio.gather(*tasks)
    await batcher.close()


async def test_a_sender_that_leaves_takes_its_request_along() -> None:
    held = Held()
    batcher = make(held)
    _first, leaves, stays = await started(batcher, held, rows(1), rows(2))
    leaves.cancel()
    await asyncio.wait([leaves])
    held.open.set()
    assert (await stays)["y"].tolist() == [[4]]
    assert held.batches == [1, 1]
    await batcher.close()


async def test_closing_answers_what_waits() -> None:
    held = Held()
    batcher = make(held)
    tasks = await started(batcher, held, rows(1), rows(2, width=3))
    closing = asyncio.create_task(batcher.close())
    held.open.set()
    await closing
    assert all(task.done() and task.exception() is None for task in tasks)


async def test_a_runner_waits_for_company_only_if_configured() -> None:
    held = Held()
    held.open.set()
    batcher = make(held, BatchLimits(rows=2, delay=0.2))
    await asyncio.gather(batcher.submit(rows(1)), batcher.submit(rows(2)))
    assert held.batches == [2]
    await batcher.close()
