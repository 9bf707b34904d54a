"""Ranks that have stopped reporting, although their job asked for heartbeats.

Counted from the moment all pods ran, and only while somebody listens. Of a hung rank that noticed it itself the stacks
are known: they are reported with the restart.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from paddlecloud.controllers.paddlejob import names, status
from paddlecloud.controllers.paddlejob.decision.case import JobCase, Member
from paddlecloud.controllers.paddlejob.reports import report
from paddlecloud.kube.clock import parse_rfc3339

DUMPS_SHOWN = 8
"""Ranks whose stacks become events; the others have theirs in their logs."""
DUMP_LIMIT = 900


class Silent(NamedTuple):
    ranks: list[Member]
    text: str


def ranks(case: JobCase) -> Silent | None:
    """The ranks that let too much time pass, and a sentence about them."""
    limit, reports = case.settings.heartbeat_seconds, case.observed.reports
    if limit is None or reports is None:
        return None
    watched = [rank for rank in _watched(case) if case.current[rank].state == "running"]
    silent = report.silent_ranks(reports, watched, limit=limit, running_since=_running_since(case), now=case.now)
    if not silent:
        return None
    who = ", ".join(_pod(case, rank) for rank in silent[:3]) + (" …" if len(silent) > 3 else "")
    return Silent(silent, f"no report from {who} for {limit} seconds")


def _watched(case: JobCase) -> list[Member]:
    """Servers only wait for requests and have nothing to report, so they are left alone."""
    return [rank for rank in case.members if rank[0] != "ps" and rank in case.current]


def due(case: JobCase) -> Iterator[float]:
    """When to look again: a job may have been silent for too long by then."""
    if case.settings.log_silence_seconds is not None:
        yield (case.observed.last_log_line or case.now) + case.settings.log_silence_seconds
    if case.settings.heartbeat_seconds is not None and case.observed.reports is not None:
        yield report.next_silence(
            case.observed.reports, limit=case.settings.heartbeat_seconds, running_since=_running_since(case)
        )


def _running_since(case: JobCase) -> float:
    running = status.condition(case.old, "Running")
    return parse_rfc3339(running.last_transition_time) if running and running.last_transition_time else case.now


def dumps(case: JobCase) -> list[str]:
    """What the ranks that found themselves hung were doing."""
    stacks = case.observed.reports.stacks if case.observed.reports is not None else {}
    return [f"{_pod(case, rank)} was doing this:\n{stacks[rank][:DUMP_LIMIT]}" for rank in sorted(stacks)[:DUMPS_SHOWN]]


def _pod(case: JobCase, rank: Member) -> str:
    return names.pod_name(case.settings.name, *rank)
