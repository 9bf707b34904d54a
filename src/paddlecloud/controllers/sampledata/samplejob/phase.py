"""How a job stands that several servers work on: one phase out of all their answers, and what is missing.

A warm-up is a promise: it has succeeded only when everything that was planned is cached, on every partition.
"""

from __future__ import annotations

from typing import NamedTuple

from paddlecloud.controllers.sampledata import names
from paddlecloud.controllers.sampledata.samplejob.draft import SampleJobDraft
from paddlecloud.controllers.sampledata.samplejob.work import given_to
from paddlecloud.controllers.sampledata.sampleset import cache_status
from paddlecloud.controllers.sampledata.servers.responses import JobReport

PROGRESS_EVERY = 2.0
NAMED = 3
"""Files named for each partition that misses some."""


class PhaseResult(NamedTuple):
    phase: str
    message: str
    missing: tuple[str, ...]


def judge(draft: SampleJobDraft) -> PhaseResult:
    observed = draft.observed
    targets = given_to(draft.old.partitions)
    reports = {ordinal: report for ordinal, report in observed.reports.items() if report is not None}
    open_ = [o for o in targets if o not in observed.lost and not (o in reports and reports[o].ended)]
    wrong = {o: text for o in targets if (text := _wrong(draft, o, reports.get(o)))}
    if open_:
        running = any(report.state != "Queued" for report in reports.values())
        silent = [observed.silent[o] for o in open_ if o in observed.silent]
        text = "; ".join([*wrong.values(), *silent]) or _queued(reports)
        return PhaseResult("Running" if running or draft.old.phase == "Running" else "Pending", text, ())
    if wrong:
        return PhaseResult("Failed", "; ".join(wrong.values()), tuple(f"partition {ordinal}" for ordinal in wrong))
    dry = bool(draft.settings.sync_options.get("dry"))
    return PhaseResult("Succeeded", cache_status.done(list(reports.values()), dry=dry), ())


def show_progress(draft: SampleJobDraft, *, ended: bool) -> None:
    """All servers together, now and then and at the end."""
    reports = [report for report in draft.observed.reports.values() if report is not None]
    old = draft.old.progress
    if reports and (ended or cache_status.is_due(old, now=draft.now, every=PROGRESS_EVERY)):
        draft.set(progress=cache_status.progress_of(reports, now=draft.now) or old)


def _wrong(draft: SampleJobDraft, ordinal: int, report: JobReport | None) -> str:
    pod = names.runtime_pod(draft.settings.sample_set, ordinal)
    if ordinal in draft.observed.lost:
        return f"{pod} is gone: its part was not done"
    if report is None or not report.ended:
        return ""
    covered = report.coverage
    if covered is not None and covered.cached < covered.planned:
        named = ", ".join(covered.missing[:NAMED])
        shown = f" ({named}{', …' if len(covered.missing) > NAMED else ''})" if named else ""
        why = f": {report.message}" if report.message and report.state != "Succeeded" else ""
        return f"partition {ordinal} has {covered.cached} of {covered.planned} files{shown}{why}"
    if report.state != "Succeeded":
        return f"{pod}: {report.message or report.state.lower()}"
    return ""


def _queued(reports: dict[int, JobReport]) -> str:
    ahead = max((report.position or 0 for report in reports.values() if report.state == "Queued"), default=0)
    return f"{ahead} before it" if ahead else ""
