"""A model that answers: runner, processor and batches together, and how long each stage of getting there took."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from paddlecloud.serving import agreement, processing, runners, tasks
from paddlecloud.serving.batching import Batcher
from paddlecloud.serving.errors import BadInput, ModelError
from paddlecloud.serving.metrics import Metrics
from paddlecloud.serving.model_folder import ModelFiles
from paddlecloud.serving.statistics import Statistics
from paddlecloud.serving.tensors import Feeds, TensorSpec

PREPARING = 32
"""Inputs that are prepared at the same time. More than there are processors: a processor may wait for other servers."""


@dataclass(frozen=True, slots=True)
class Resources:
    """How much of the machine a model may use."""

    workers: int = 1
    """Batches that run side by side."""
    threads: int = 1
    """Threads within one."""


class Model:
    def __init__(
        self,
        files: ModelFiles,
        clones: list[runners.Runner],
        processor: Any,
        *,
        metrics: Metrics,
        stages: dict[str, float],
        remark: str = "",
    ) -> None:
        self.files = files
        self.remark = remark
        """Why the Paddle model answers and not its ONNX export, or that the GPU lies idle; empty otherwise."""
        self.name = files.settings.name
        self.version = files.version
        self.platform = clones[0].platform
        self.device = clones[0].device
        self.workers = len(clones)
        self.tensors = _renamed(clones[0].inputs, files.settings.inputs)
        """What the network takes."""
        self.results = _renamed(clones[0].outputs, files.settings.outputs)
        """And what it gives."""
        self.processor = processor
        self.task: tasks.Task | None = processor if files.settings.processing else None
        if self.task is not None:
            self.task.bind(self.tensors, self.results)
        self.inputs = self.task.inputs if self.task else self.tensors
        self.outputs = self.task.outputs if self.task else self.results
        self.stages = stages
        self._inner = files.settings.inputs
        self._outer = {inner: client for client, inner in files.settings.outputs.items()}
        self._preparing = ThreadPoolExecutor(PREPARING, thread_name_prefix="prepare")
        self._users = 0
        self._unused = asyncio.Event()
        self._unused.set()
        self._batches = Batcher(
            [clone.run for clone in clones],
            files.settings.batch,
            observe=lambda rows: metrics.batch_rows.observe(rows, self.name),
        )

    @property
    def waiting(self) -> int:
        return self._batches.waiting

    @property
    def statistics(self) -> Statistics:
        return self._batches.statistics

    def describe(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "versions": [self.version],
            "platform": self.platform,
            "inputs": [spec.as_json() for spec in self.inputs],
            "outputs": [spec.as_json() for spec in self.outputs],
        }

    def input(self, name: str, datatype: object = None) -> TensorSpec:
        """Of the task, or of the network behind it; where both have that name, the type that was sent decides."""
        named: list[TensorSpec] = [spec for spec in (*self.inputs, *self.tensors) if spec.name == name]
        if named:
            return next((spec for spec in named if spec.datatype == datatype), named[0])
        raise BadInput(f"unknown input {name!r}; the model takes {', '.join(spec.name for spec in self.inputs)}")

    async def infer(self, feeds: Feeds, *, fetch: list[str] | None = None) -> Feeds:
        """Outputs by name, those asked for or all. The arrays have been checked one by one; here, as a whole.

        Inputs of the task go through it; a client that prepares pictures itself sends the network's."""
        processed = self.task is not None and any(_takes(spec, feeds) for spec in self.inputs)
        inputs, outputs = (self.inputs, self.outputs) if processed else (self.tensors, self.results)
        missing = [spec.name for spec in inputs if spec.name not in feeds]
        if missing:
            raise BadInput(f"input {missing[0]!r} is missing; expected are {self.input(missing[0]).expected}")
        unknown = [name for name in fetch or () if name not in {spec.name for spec in outputs}]
        if unknown:
            raise BadInput(f"unknown output {unknown[0]!r}; the model gives {', '.join(spec.name for spec in outputs)}")
        found = await (self._process(feeds) if processed else self._run(feeds))
        return {name: found[name] for name in fetch} if fetch else found

    async def _run(self, feeds: Feeds) -> Feeds:
        ran = await self._batches.submit({self._inner.get(name, name): array for name, array in feeds.items()})
        return {self._outer.get(name, name): array for name, array in ran.items()}

    async def _process(self, feeds: Feeds) -> Feeds:
        task = self.task
        assert task is not None
        entries = tasks.entries_of(feeds)
        loop = asyncio.get_running_loop()
        ready = await loop.run_in_executor(self._preparing, processing.prepare, task, entries, self.tensors)
        ran = await self._run(ready)
        return await asyncio.to_thread(lambda: tasks.tensors_of(task, processing.conclude(task, ran, entries)))

    async def predict(
        self, entries: list[dict[str, Any]], *, fetch: list[str] | None, write: Callable[[Any], bytes]
    ) -> bytes:
        """Through the model's processor, as Paddle Serving's clients expect it. `write` makes an answer of the result,
        in the processor's thread: results may be large."""
        loop = asyncio.get_running_loop()
        feeds = await loop.run_in_executor(self._preparing, processing.prepare, self.processor, entries, self.tensors)
        if self.task is None:
            outputs = await self.infer(feeds, fetch=fetch)
            return await asyncio.to_thread(lambda: write(processing.conclude(self.processor, outputs, entries)))
        ran = await self._run(feeds)
        return await asyncio.to_thread(lambda: write(_chosen(processing.conclude(self.task, ran, entries), fetch)))

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """While entered, the model stays: a request may be anywhere between its arrival and its batch."""
        self._users += 1
        self._unused.clear()
        try:
            yield
        finally:
            self._users -= 1
            if not self._users:
                self._unused.set()

    async def close(self) -> None:
        """Once nobody uses it any more."""
        await self._unused.wait()
        await self._batches.close()
        self._preparing.shutdown(wait=False)


async def load(files: ModelFiles, resources: Resources, *, metrics: Metrics, own_code: bool = True) -> Model:
    """A model ready to answer at full speed: loaded and, unless its settings say no, warmed up by one run."""
    stages: dict[str, float] = {}
    began = time.monotonic()
    await asyncio.to_thread(runners.import_engine, files)
    stages["import"] = time.monotonic() - began
    began = time.monotonic()
    files, first, remark = await asyncio.to_thread(_trusted, files, threads=resources.threads)
    for what, names, specs in (
        ("input", files.settings.inputs, first.inputs),
        ("output", files.settings.outputs, first.outputs),
    ):
        unknown = sorted(set(names.values()) - {spec.name for spec in specs})
        if unknown:
            known = ", ".join(spec.name for spec in specs)
            raise ModelError(f"serving.yaml renames the {what} {unknown[0]!r}, which the model does not have ({known})")
    if files.settings.processing:
        processor: Any = tasks.load(files.folder, files.settings.processing)
    else:
        processor = processing.load(files.folder, files.settings.processor, allowed=own_code)
    clones = [first, *(first.clone() for _ in range(resources.workers - 1))]
    stages["load"] = time.monotonic() - began
    if files.settings.warm_up:
        began = time.monotonic()
        for clone in clones:
            await asyncio.to_thread(_warm_up, clone)
        stages["warmUp"] = time.monotonic() - began
    remark = "; ".join(filter(None, (remark, runners.idle_gpu(first))))
    return Model(files, clones, processor, metrics=metrics, stages=stages, remark=remark)


def _trusted(files: ModelFiles, *, threads: int) -> tuple[ModelFiles, runners.Runner, str]:
    """The runner to serve with: an ONNX export only if it answers as the Paddle model beside it does."""
    found = runners.load(files, threads=threads)
    if files.original is None:
        return files, found, ""
    program, params = files.original
    paddle = replace(files, program=program, params=params, original=None)
    runners.import_engine(paddle)
    original = runners.load(paddle, threads=threads)
    if not (why := agreement.difference(original, found)):
        return files, found, ""
    return paddle, original, f"{files.program.name} is not served, {program.name} is: {why}"


def _warm_up(runner: runners.Runner) -> None:
    """Zeros through the model: the first run allocates and chooses kernels. A model may refuse zeros; no harm."""
    if any(spec.shape is None or spec.datatype == "BYTES" for spec in runner.inputs):
        return
    feeds: Feeds = {
        spec.name: np.zeros([max(1, size) for size in spec.shape or ()], spec.dtype) for spec in runner.inputs
    }
    try:
        runner.run(feeds)
    except Exception:
        return  # free dimensions are often larger than 1 in truth; requests will show


def _takes(spec: TensorSpec, feeds: Feeds) -> bool:
    """Whether an input of a task was sent: the network's own may have the same name, and another type."""
    return spec.name in feeds and feeds[spec.name].dtype == spec.dtype


def _chosen(answers: dict[str, Any], fetch: list[str] | None) -> dict[str, Any]:
    return {name: answers[name] for name in fetch} if fetch else answers


def _renamed(specs: tuple[TensorSpec, ...], names: dict[str, str]) -> tuple[TensorSpec, ...]:
    outer = {inner: client for client, inner in names.items()}
    return tuple(TensorSpec(outer.get(spec.name, spec.name), spec.datatype, spec.shape) for spec in specs)
