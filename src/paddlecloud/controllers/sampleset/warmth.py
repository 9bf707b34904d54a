"""Whether all of a set is cached: the condition Warm, which jobs may wait for.

A warm-up of everything makes it true. It is over when data was added, caches were emptied, or partitions moved.
"""

from __future__ import annotations

from paddlecloud.controllers.sampleset import conditions
from paddlecloud.controllers.sampleset.case import Finished
from paddlecloud.controllers.sampleset.draft import Draft

_VERDICTS = {
    "warmup": (True, "WarmedUp", "warmed up by {name}"),
    "sync": (False, "DataAdded", "{name} brought data that is not cached yet"),
    "clear": (False, "Cleared", "{name} emptied the caches"),
}


def judge(draft: Draft) -> None:
    case = draft.case
    known = conditions.find(case.old.conditions, "Warm")
    since = conditions.since(case.old.conditions, "Warm") or 0.0
    done = sorted((job for job in case.observed.jobs if job.phase == "Succeeded"), key=lambda job: job.completed)
    counting = [job for job in done if job.type in _VERDICTS and (job.type != "warmup" or _covers_all(draft, job))]
    if counting and counting[-1].completed >= since:
        value, reason, text = _VERDICTS[counting[-1].type]
        draft.condition("Warm", value, reason, text.format(name=counting[-1].name))
    elif known is None:
        draft.condition("Warm", False, "NotWarmedUp", "no SampleJob of type warmup has been run on all of it")
    old = case.old.runtime_status
    moved = old is not None and old.spec_replicas not in (None, case.settings.partitions)
    if moved and conditions.holds(draft.status.conditions, "Warm"):
        draft.condition("Warm", False, "Scaled", "the number of partitions changed: warm up again")


def _covers_all(draft: Draft, job: Finished) -> bool:
    """A warm-up of everything, spread over as many partitions as there are now."""
    return job.whole and job.partitions == draft.case.settings.partitions
