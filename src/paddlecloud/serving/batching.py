"""Requests that wait at the same time run as one batch.

A runner takes what is waiting the moment it becomes free, so a lone request is never held back; `delay` lets it wait
for others where throughput matters more than the first answer. Requests go together only if their tensors agree in
everything but the number of rows. A batch that fails is run again one by one: nobody pays for another's input.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from paddlecloud.serving import statistics
from paddlecloud.serving.errors import InferenceFailed, NotReady, Overloaded
from paddlecloud.serving.limits import BatchLimits
from paddlecloud.serving.tensors import Feeds

RunModel = Callable[[Feeds], Feeds]


@dataclass(slots=True, eq=False)
class _Request:
    feeds: Feeds
    rows: int
    signature: tuple[Any, ...]
    answer: asyncio.Future[Feeds] = field(repr=False)
    arrived: int = field(default_factory=time.monotonic_ns)


class Batcher:
    """One task and one thread per runner; `runs` are the clones of one model, each used by one thread at a time."""

    def __init__(self, runs: Sequence[RunModel], limits: BatchLimits, *, observe: Callable[[int], None]) -> None:
        self._limits = limits
        self._observe = observe
        self.statistics = statistics.Statistics()
        self._waiting: deque[_Request] = deque()
        self._arrived = asyncio.Condition()
        self._closed = False
        self._threads = ThreadPoolExecutor(len(runs), thread_name_prefix="model")
        self._tasks = [asyncio.create_task(self._serve(run), name=f"runner {n}") for n, run in enumerate(runs)]

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    async def submit(self, feeds: Feeds) -> Feeds:
        """The outputs for these inputs, which the model's declaration has been checked against."""
        if self._closed:
            raise NotReady("the model is being replaced")
        if len(self._waiting) >= self._limits.waiting:
            raise Overloaded(f"{len(self._waiting)} requests wait already")
        request = _Request(feeds, _rows(feeds), _signature(feeds), asyncio.get_running_loop().create_future())
        self._waiting.append(request)
        async with self._arrived:
            self._arrived.notify()
        try:
            return await request.answer
        except asyncio.CancelledError:
            if request in self._waiting:
                self._waiting.remove(request)
            raise

    async def close(self) -> None:
        """Answer what waits, then stop."""
        self._closed = True
        async with self._arrived:
            self._arrived.notify_all()
        await asyncio.gather(*self._tasks)
        self._threads.shutdown(wait=False)

    async def _serve(self, run: RunModel) -> None:
        while (batch := await self._take()) is not None:
            await self._answer(batch, lambda feeds: self._in_thread(run, feeds))

    async def _take(self) -> list[_Request] | None:
        async with self._arrived:
            await self._arrived.wait_for(lambda: self._waiting or self._closed)
        if self._limits.delay and not self._closed and self._ready_rows() < self._limits.rows:
            await asyncio.sleep(self._limits.delay)
        if not self._waiting:  # another runner was faster, or its sender has gone
            return None if self._closed else []
        first = self._waiting.popleft()
        batch, rows = [first], first.rows
        while self._waiting and self._waiting[0].signature == first.signature:
            if rows + self._waiting[0].rows > self._limits.rows:
                break
            batch.append(self._waiting.popleft())
            rows += batch[-1].rows
        return batch

    def _ready_rows(self) -> int:
        return sum(request.rows for request in self._waiting)

    async def _answer(self, batch: list[_Request], run: Callable[[Feeds], Awaitable[Feeds]]) -> None:
        if not batch:
            return
        rows, began = sum(request.rows for request in batch), time.monotonic_ns()
        self._observe(rows)
        try:
            inputs = _joined(batch)
            joined = time.monotonic_ns()
            outputs = await run(inputs)
            computed = time.monotonic_ns()
            parts = _parted(outputs, batch)
        except Exception as error:
            if len(batch) > 1:
                for request in batch:
                    await self._answer([request], run)
                return
            self.statistics.failed(batch[0].arrived, time.monotonic_ns())
            if not batch[0].answer.done():
                batch[0].answer.set_exception(InferenceFailed(_first_line(error)))
            return
        measured = statistics.ModelRun(began, joined, computed, time.monotonic_ns())
        self.statistics.succeeded(rows, [request.arrived for request in batch], measured)
        for request, part in zip(batch, parts, strict=True):
            if not request.answer.done():
                request.answer.set_result(part)

    async def _in_thread(self, run: RunModel, feeds: Feeds) -> Feeds:
        return await asyncio.get_running_loop().run_in_executor(self._threads, run, feeds)


def _rows(feeds: Feeds) -> int:
    return max((array.shape[0] if array.ndim else 1 for array in feeds.values()), default=1)


def _signature(feeds: Feeds) -> tuple[Any, ...]:
    """Equal for requests that can be one batch; of unequal numbers of rows inside one request none can."""
    rows = {array.shape[0] if array.ndim else None for array in feeds.values()}
    if len(rows) != 1 or None in rows:
        return (object(),)
    return tuple((name, str(array.dtype), array.shape[1:]) for name, array in sorted(feeds.items()))


def _joined(batch: list[_Request]) -> Feeds:
    if len(batch) == 1:
        return batch[0].feeds
    return {name: np.concatenate([request.feeds[name] for request in batch]) for name in batch[0].feeds}


def _parted(outputs: Feeds, batch: list[_Request]) -> list[Feeds]:
    if len(batch) == 1:
        return [outputs]
    total = sum(request.rows for request in batch)
    for name, array in outputs.items():
        if not array.ndim or array.shape[0] != total:
            raise InferenceFailed(f"output {name!r} has no row per row of input")
    edges = np.cumsum([request.rows for request in batch])[:-1]
    split = {name: np.split(array, edges) for name, array in outputs.items()}
    return [{name: parts[number] for name, parts in split.items()} for number in range(len(batch))]


def _first_line(error: Exception) -> str:
    """Paddle's errors are pages; the sentence that matters names its class."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    message = next((line for line in lines if "Error:" in line), lines[0] if lines else type(error).__name__)
    return message[:500]
