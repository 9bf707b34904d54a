"""What pods have reported, and what of it stands in the job's status.

The progress of a job is that of the lowest rank that reports any, as rank 0 does in most programs. All of this
is kept in memory only. A controller that starts anew goes on from the status and from the next message, and counts
nobody as silent before it has listened for as long as the job may be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from paddlecloud.api.paddlejob.status import CacheUse, Checkpoint, EpochReads, PaddleJobStatus, Progress
from paddlecloud.kube.clock import rfc3339
from paddlecloud.kube.times import two_units

Rank = tuple[str, int]
"""Role and index."""

_RATE_FROM = 5.0
"""Seconds of progress after which an estimate of the time left means something."""

_EPOCHS = 10
"""Epochs of which is kept how data was read."""

Count = Annotated[int, Meta(ge=0, le=2**53)]
Name = Annotated[str, Meta(max_length=64)]


class SaidCheckpoint(msgspec.Struct, rename="camel"):
    path: Annotated[str, Meta(max_length=1024)]
    step: Count | None = None
    epoch: Count | None = None


class SaidReads(msgspec.Struct, rename="camel"):
    hits: Count = 0
    misses: Count = 0
    stall_seconds: Annotated[float, Meta(ge=0)] = 0.0


class SaidEpoch(SaidReads, rename="camel"):
    epoch: Count = 0


class SaidCache(SaidReads, rename="camel"):
    epochs: Annotated[list[SaidEpoch], Meta(max_length=_EPOCHS)] = []


class Message(msgspec.Struct, rename="camel"):
    """The body of a report; an empty one is a heartbeat. Fields of later releases are ignored."""

    step: Count | None = None
    total_steps: Count | None = None
    epoch: Count | None = None
    total_epochs: Count | None = None
    loss: float | None = None
    samples_per_second: Annotated[float, Meta(ge=0)] | None = None
    metrics: Annotated[dict[Name, float], Meta(max_length=16)] | None = None
    checkpoint: SaidCheckpoint | None = None
    cache: SaidCache | None = None
    stacks: Annotated[str, Meta(max_length=16_000)] | None = None

    @property
    def has_progress(self) -> bool:
        reported = (self.step, self.epoch, self.loss, self.samples_per_second, self.metrics)
        return any(value is not None for value in reported)

    @property
    def is_news(self) -> bool:
        """Whether it reports more than that the rank is alive."""
        return self.has_progress or any(part is not None for part in (self.checkpoint, self.cache, self.stacks))


@dataclass(frozen=True, slots=True)
class Reports:
    """What is known at one moment; what `decide` sees."""

    progress: Progress | None = None
    checkpoint: Checkpoint | None = None
    cache: CacheUse | None = None
    last_report: Mapping[Rank, float] = field(default_factory=dict)
    """When each rank of this generation reported last."""
    since: float = 0.0
    """Since when reports of this generation are received."""
    stacks: Mapping[Rank, str] = field(default_factory=dict)
    """Of ranks that found themselves hung."""


class Listener:
    """Takes in the messages of one generation of one job."""

    def __init__(self, generation: int, now: float) -> None:
        self.generation = generation
        self._since = now
        self._last_report: dict[Rank, float] = {}
        self._stacks: dict[Rank, str] = {}
        self._caches: dict[Rank, SaidCache] = {}
        self._progress_of: Rank | None = None  # the lowest rank that has reported any
        self._progress: Progress | None = None
        self._first: tuple[float, int] | None = None
        self._checkpoint: Checkpoint | None = None

    def take(self, rank: Rank, message: Message, now: float) -> None:
        if message.stacks is not None:
            self._stacks[rank] = message.stacks  # no sign of life: a thread beside the program sends them
        else:
            self._last_report[rank] = now
            self._stacks.pop(rank, None)
        if message.cache is not None:
            self._caches[rank] = message.cache
        if message.checkpoint is not None:
            said = message.checkpoint
            self._checkpoint = Checkpoint(path=said.path, step=said.step, epoch=said.epoch, time=rfc3339(now))
        if message.has_progress and (self._progress_of is None or _order(rank) <= _order(self._progress_of)):
            self._take_progress(rank, message, now)

    def _take_progress(self, rank: Rank, message: Message, now: float) -> None:
        if rank != self._progress_of:
            self._progress_of, self._progress, self._first = rank, None, None
        old = self._progress or Progress()
        sent = {
            "step": message.step,
            "total_steps": message.total_steps,
            "epoch": message.epoch,
            "total_epochs": message.total_epochs,
            "loss": message.loss,
            "samples_per_second": message.samples_per_second,
            "metrics": message.metrics,
        }
        fresh = {name: value for name, value in sent.items() if value is not None}
        new = msgspec.structs.replace(old, **fresh, update_time=rfc3339(now))
        if message.step is not None and (self._first is None or message.step < self._first[1]):
            self._first = (now, message.step)
        left = self._seconds_left(new, now)
        self._progress = msgspec.structs.replace(
            new, done=done(new), eta_seconds=left, eta=None if left is None else two_units(left)
        )

    def _seconds_left(self, progress: Progress, now: float) -> int | None:
        if self._first is None or progress.step is None or not progress.total_steps:
            return None
        began, first = self._first
        steps = progress.step - first
        if steps <= 0 or now - began < _RATE_FROM:
            return None
        return round(max(0, progress.total_steps - progress.step) * (now - began) / steps)

    def reports(self) -> Reports:
        return Reports(
            progress=self._progress,
            checkpoint=self._checkpoint,
            cache=self._cache(),
            last_report=dict(self._last_report),
            since=self._since,
            stacks=dict(self._stacks),
        )

    def _cache(self) -> CacheUse | None:
        if not self._caches:
            return None
        parts = self._caches.values()
        epochs: dict[int, list[SaidEpoch]] = {}
        for said in (said for part in parts for said in part.epochs):
            epochs.setdefault(said.epoch, []).append(said)
        each = [EpochReads(epoch=epoch, **_sum(epochs[epoch])) for epoch in sorted(epochs)[-_EPOCHS:]]
        return CacheUse(**_sum(parts), epochs=each or None)


def _sum(parts: Iterable[SaidReads]) -> dict[str, Any]:
    parts = list(parts)
    return {
        "hits": sum(part.hits for part in parts),
        "misses": sum(part.misses for part in parts),
        "stall_seconds": round(sum(part.stall_seconds for part in parts), 1),
    }


def _order(rank: Rank) -> tuple[bool, str, int]:
    return (rank[0] != "worker", *rank)


def fold(status: PaddleJobStatus, reports: Reports | None, *, runs: bool, began: bool) -> PaddleJobStatus:
    """The status with what was reported since. The progress of a former generation stays until the next one runs: it
    shows how far that one came, and would be taken for the new one's afterwards. Checkpoints are for all of them.

    `began` where a job that `runs` did not run before this moment.
    """
    if runs and began:
        status = msgspec.structs.replace(status, progress=None)
    if reports is not None:
        status = msgspec.structs.replace(
            status,
            progress=reports.progress or status.progress,
            checkpoint=reports.checkpoint or status.checkpoint,
            cache=reports.cache or status.cache,
            heartbeat_time=rfc3339(min(reports.last_report.values())) if reports.last_report else status.heartbeat_time,
        )
    if not runs and status.progress is not None and status.progress.eta_seconds is not None:
        progress = msgspec.structs.replace(status.progress, eta_seconds=None, eta=None)
        status = msgspec.structs.replace(status, progress=progress)
    return status


def silent_ranks(
    reports: Reports, ranks: Iterable[Rank], *, limit: float, running_since: float, now: float
) -> list[Rank]:
    """Workers that let more than `limit` seconds pass without a word, once all ran and somebody listened.

    Who never says anything is only counted where nobody does: in many programs rank 0 alone reports.
    """
    begin = max(running_since, reports.since)
    known = {rank: max(begin, reports.last_report[rank]) for rank in ranks if rank in reports.last_report}
    if not known:
        return list(ranks) if now - begin >= limit else []
    return [rank for rank, last_report in known.items() if now - last_report >= limit]


def next_silence(reports: Reports, *, limit: float, running_since: float) -> float:
    """When a rank will have been silent for too long, if nothing comes until then."""
    begin = max(running_since, reports.since)
    return max(begin, min(reports.last_report.values(), default=begin)) + limit


def done(progress: Progress) -> str | None:
    """`120/300 (40%)`, `120`, or the same in epochs where no steps are reported."""
    for now, total, unit in (
        (progress.step, progress.total_steps, ""),
        (progress.epoch, progress.total_epochs, "epoch "),
    ):
        if now is not None:
            return f"{unit}{now}/{total} ({100 * now // total}%)" if total else f"{unit}{now}"
    return None
