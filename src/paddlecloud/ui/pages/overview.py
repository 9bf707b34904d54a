"""The first page: what needs attention, then what runs and what there is."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from paddlecloud.cli.objects.why import Verdict
from paddlecloud.kube.resource import PADDLEJOBS, PODS
from paddlecloud.kube.times import moment_of
from paddlecloud.ui import verdicts
from paddlecloud.ui.asked import Asked, DashboardPage
from paddlecloud.ui.feed import JOB
from paddlecloud.ui.job_rows import JobRow, row_of

MOST = 12
"""Of each kind of trouble, and of jobs that run."""
LONG_WAIT = 60.0
"""Seconds after which a job that does not run is worth a look."""
RECENT = 24 * 3600.0
"""Failures older than this are no news."""


class Trouble(NamedTuple):
    row: JobRow
    verdict: Verdict


class OverviewView(NamedTuple):
    troubles: list[Trouble]
    more: int
    running: list[JobRow]
    counts: list[tuple[str, int]]
    total: int


async def load(asked: Asked) -> OverviewView:
    rows = [row for _, row in await asked.reader.rows(PADDLEJOBS, row_of)]
    urgent = sorted((row for row in rows if _is_trouble(row, asked.now)), key=_urgency, reverse=True)
    troubles = []
    for row in urgent[:MOST]:
        job = await asked.reader.get(PADDLEJOBS, row.namespace, row.name)
        if job is None:
            continue
        pods = await asked.reader.by_index(PODS, JOB, f"{row.namespace}/{row.name}")
        verdict = verdicts.quick(job, pods, (), now=asked.now, language=asked.language).verdict
        troubles.append(Trouble(row, verdict))
    running = sorted((row for row in rows if row.phase == "Running"), key=lambda row: row.created, reverse=True)
    counts = sorted(Counter(row.phase for row in rows).items(), key=lambda each: -each[1])
    return OverviewView(troubles, max(0, len(urgent) - MOST), running[:MOST], counts, len(rows))


def _is_trouble(row: JobRow, now: float) -> bool:
    if row.ending == "failed":
        return now - (moment_of(row.ended) or moment_of(row.created) or now) < RECENT
    return not row.ending and row.phase not in ("Running", "Suspended") and _waited(row, now) > LONG_WAIT


def _waited(row: JobRow, now: float) -> float:
    return now - (moment_of(row.created) or now)


def _urgency(row: JobRow) -> tuple[bool, str]:
    """What goes on and waits before what has failed; of each the newest first."""
    return not row.ending, row.ended or row.created


PAGE = DashboardPage("overview", "/", load, key="o")
