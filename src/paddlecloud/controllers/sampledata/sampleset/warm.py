"""Whether all of a set is cached: the condition Warm, which jobs may wait for.

A warm-up of everything makes it true. It is over when data was added, caches were emptied, or partitions moved. A set
that was warm before it was scaled is warmed up again, in the same way: servers bring only what is not there yet.
"""

from __future__ import annotations

import msgspec

from paddlecloud.api.sampleset.spec import JobsName
from paddlecloud.controllers.sampledata.sampleset import objects
from paddlecloud.controllers.sampledata.sampleset.case import SampleJobView
from paddlecloud.controllers.sampledata.sampleset.draft import SampleSetDraft
from paddlecloud.kube import conditions

_VERDICTS = {
    "warmup": (True, "WarmedUp", "warmed up by {name}"),
    "sync": (False, "DataAdded", "{name} brought data that is not cached yet"),
    "clear": (False, "Cleared", "{name} emptied the caches"),
}


def judge(draft: SampleSetDraft) -> None:
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
    folders = list(case.cache_folders.values())
    if case.old.cache_dirs not in (None, folders) and conditions.holds(draft.status.conditions, "Warm"):
        draft.condition("Warm", False, "CacheMoved", f"the cache is in {', '.join(folders)} now: warm up again")


def warm_again(draft: SampleSetDraft) -> None:
    """Make the SampleJob that follows a change of partitions; its name is derived, so it is made once."""
    case = draft.case
    found = conditions.find(draft.status.conditions, "Warm")
    name = f"{case.settings.name}-warmup-{case.sample_set['metadata'].get('generation')}"
    done = [job for job in case.observed.jobs if job.type == "warmup" and job.whole and job.phase == "Succeeded"]
    if found is None or found.reason != "Scaled" or not done or any(job.name == name for job in case.observed.jobs):
        return
    latest = max(done, key=lambda job: job.completed)
    draft.plan.create.append(objects.build_warmup(case, name, latest.options))
    draft.set(jobs_name=msgspec.structs.replace(draft.status.jobs_name or JobsName(), warmup_job_name=name))


def _covers_all(draft: SampleSetDraft, job: SampleJobView) -> bool:
    """A warm-up of everything, spread over as many partitions as there are now."""
    return job.whole and job.partitions == draft.case.settings.partitions
