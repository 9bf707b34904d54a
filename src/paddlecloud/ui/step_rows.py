"""Steps of a run as rows of a table: state, where their time went, what they got and gave. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from paddlecloud.kube.resource import Object
from paddlecloud.kube.times import moment_of
from paddlecloud.pipelines.runs.record import Step
from paddlecloud.ui.run_graph import DID_NOT_RUN
from paddlecloud.ui.timeline import PULLING, QUEUED, RUNNING

LONGEST = 2000
"""Characters of a value: more of it is in `pdc pipeline show RUN -o json`."""
SCALE = 1000
"""Width of a bar."""


class Bar(NamedTuple):
    kind: str
    x: float
    width: float


class StepRow(NamedTuple):
    step: Step
    indent: int
    bars: list[Bar]
    inputs: list[tuple[str, str]]
    outputs: list[tuple[str, str]]
    log: str
    """What the page of logs calls it; empty where there is none."""


def rows(steps: Sequence[Step], nodes: Mapping[str, Object], now: float) -> list[StepRow]:
    """Groups that only hold one run's steps, such as the root, are left out."""
    shown = [step for step in steps if step.depth > 0 or step.is_leaf]
    began = [at for step in shown if (at := moment_of(step.started)) is not None]
    ended = [moment_of(step.finished) or now for step in shown if step.started]
    first, last = min(began, default=now), max(ended, default=now)
    return [
        StepRow(
            step,
            min(6, max(0, step.depth - 1)),
            list(_bars(step, first, max(last - first, 0.001), now)),
            _values(step.inputs),
            _values(step.outputs),
            _log(step, nodes),
        )
        for step in shown
    ]


def _bars(step: Step, first: float, whole: float, now: float) -> Iterator[Bar]:
    """From its beginning: queued, pulling and running where they are known, else all of it as running."""
    at = moment_of(step.started)
    if at is None or not step.is_leaf or step.cache_hit or step.phase in DID_NOT_RUN:
        return
    end = moment_of(step.finished) or now
    known = step.timing
    for kind, seconds in ((QUEUED, known.queued), (PULLING, known.pulling)):
        if seconds:
            until = min(end, at + seconds)
            yield _bar(kind, at - first, until - at, whole)
            at = until
    kind = QUEUED if step.phase == "Pending" else RUNNING
    yield _bar(kind, at - first, max(0.0, end - at), whole)


def _bar(kind: str, begin: float, seconds: float, whole: float) -> Bar:
    x = max(0.0, min(1.0, begin / whole)) * SCALE
    width = max(0.0, min(1.0, seconds / whole)) * SCALE
    return Bar(kind, round(x, 1), round(max(width, 2.0), 1))


def _values(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(name, _cut("" if value is None else str(value))) for name, value in found.items()]


def _cut(text: str) -> str:
    more = len(text) - LONGEST
    return text if more <= 0 else f"{text[:LONGEST]}… (+{more:,})"


def _log(step: Step, nodes: Mapping[str, Object]) -> str:
    if step.type != "Pod" or step.cache_hit or step.phase == "Pending":
        return ""
    name = str((nodes.get(step.id) or {}).get("name") or "")
    return name.partition(".")[2] or name


def counts(found: Iterable[StepRow]) -> tuple[int, int]:
    """Steps that were answered from the cache, and steps that could have been."""
    keyed = [row.step for row in found if row.step.cache_key]
    return sum(step.cache_hit for step in keyed), len(keyed)
