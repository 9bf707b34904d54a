"""Which state of its data a set holds: a number that grows when an import or a SampleJob has changed files.

PaddleJobs note the number their pods started with, so that a version of a model knows the data it was made of also
after a later sync. Files that pods themselves write are not counted.
"""

from __future__ import annotations

import msgspec

from paddlecloud.api.sampleset.spec import SampleSetContent
from paddlecloud.controllers.sampledata.sampleset.draft import SampleSetDraft
from paddlecloud.kube import conditions
from paddlecloud.kube.clock import parse_rfc3339, rfc3339

SETTLING = 5.0
"""Seconds after a change within which the servers' figures may still be those from before it."""


def note(draft: SampleSetDraft) -> None:
    known = draft.case.old.content or _imported(draft)
    for job in sorted(draft.case.observed.jobs, key=lambda job: (job.completed, job.name)):
        if job.changed_files and (job.completed, job.name) > _last_change(known):
            known = SampleSetContent(
                revision=(known.revision or 0 if known else 0) + 1,
                changed_at=rfc3339(job.completed),
                changed_by=job.name,
            )
    if known is not None:
        draft.set(content=_measured(draft, known))


def _imported(draft: SampleSetDraft) -> SampleSetContent | None:
    """The first state: also that of a set that an earlier release imported, and of one that needs no import."""
    if not conditions.holds(draft.status.conditions, "Synced"):
        return None
    since = conditions.since(draft.status.conditions, "Synced")
    return SampleSetContent(revision=1, changed_at=rfc3339(draft.case.now if since is None else since))


def _last_change(known: SampleSetContent | None) -> tuple[float, str]:
    if known is None or not known.changed_at:
        return 0.0, ""
    return parse_rfc3339(known.changed_at), known.changed_by or ""


def _measured(draft: SampleSetDraft, known: SampleSetContent) -> SampleSetContent:
    """With the figures from just after the change: a sync that runs now may have changed later ones."""
    figures = draft.case.observed.figures.values()
    settled = known.files is not None and draft.case.now - _last_change(known)[0] > SETTLING
    if settled or not figures or _being_changed(draft):
        return known
    return msgspec.structs.replace(
        known,
        files=max(answer.total_files for answer in figures),
        bytes=max(answer.total_bytes for answer in figures),
    )


def _being_changed(draft: SampleSetDraft) -> bool:
    return any(job.type in ("sync", "rmr") and job.phase == "Running" for job in draft.case.observed.jobs)
