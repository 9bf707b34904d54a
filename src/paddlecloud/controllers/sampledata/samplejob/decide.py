"""The SampleJob controller's judgement. `decide(job, observed, now, options)` is pure and gives every action.

A job waits for its set (Pending), is handed to cache servers, runs and ends. A failed one is run again when its spec,
its Secret or the annotation that asks for it changes. The id of the work is derived from what is asked for, so handing
it over twice changes nothing, and a server that lost it is simply asked again.
"""

from __future__ import annotations

from itertools import islice

from paddlecloud.api.samplejob import SampleJobStatus, encode, validate
from paddlecloud.controllers import grants
from paddlecloud.controllers.sampledata import names
from paddlecloud.controllers.sampledata.samplejob import cron, phase, work
from paddlecloud.controllers.sampledata.samplejob.draft import (
    FINISHED,
    Observed,
    ParsedJob,
    SampleJobDraft,
    SampleJobPlan,
)
from paddlecloud.controllers.sampledata.sampleset import case as sets
from paddlecloud.controllers.sampledata.servers.requests import Work
from paddlecloud.controllers.sampledata.servers.transfer import BadOptions
from paddlecloud.kube import conditions
from paddlecloud.kube.clock import parse_rfc3339, rfc3339
from paddlecloud.kube.plan import Delete, set_finalizers
from paddlecloud.kube.resource import SAMPLEJOBS, Object
from paddlecloud.kube.wording import number_of

__all__ = ["Observed", "decide"]

SOON = 1.0
FAILED_LOOK = 30.0
"""Seconds until a failed import looks at its Secret again."""
NAMED = 3
"""Cache servers that are named of those that a job waits for."""


def decide(job: Object, observed: Observed, now: float, options: sets.SampleSetOptions) -> SampleJobPlan:
    """Everything to be done for the job now. An empty decision means: as it should be."""
    parsed = observed.parsed or ParsedJob.of(job)
    settings, old = parsed.settings, parsed.status
    draft = SampleJobDraft.of(job, settings, old, observed, now, options)
    if parsed.decoded is None:
        _reject(draft, parsed.error)
        return _conclude(draft)
    meta = job["metadata"]
    marks = meta.get("finalizers") or []
    mark = names.job_finalizer(settings.name)
    if meta.get("deletionTimestamp"):
        return _leave(draft, marks, mark) if mark in marks else SampleJobPlan()
    problems = "; ".join(str(problem) for problem in validate(parsed.decoded))
    if old.phase in FINISHED and not _begin_again(draft, changed=not problems):
        return _conclude(draft)
    if problems:
        _reject(draft, problems)
        return _conclude(draft)
    if mark not in marks:
        return SampleJobPlan(patch=[set_finalizers(job, [*marks, mark])])
    if conditions.find(draft.status.conditions, "Valid") is not None:
        draft.condition("Valid", True, "Repaired")
    if parsed.warnings and old.observed_generation != meta.get("generation"):
        draft.add_event("Translated", "; ".join(parsed.warnings), warning=True)
    if settings.schedule:
        cron.keep(draft)
    elif draft.status.job_name and _is_own(draft):
        _follow(draft)
    else:
        _start(draft)
    return _conclude(draft)


def _leave(draft: SampleJobDraft, marks: list[str], mark: str) -> SampleJobPlan:
    """Its work ends with it, wherever it is; a server that does not answer must not keep the job."""
    patch = set_finalizers(draft.job, [other for other in marks if other != mark])
    id = draft.old.job_name if draft.old.phase not in FINISHED else None
    return SampleJobPlan(patch=[patch], cancel=(id,) if id else ())


def _reject(draft: SampleJobDraft, problems: str) -> None:
    known = conditions.find(draft.old.conditions, "Valid")
    if known is None or known.message != problems:
        draft.add_event("InvalidSpec", problems, warning=True)
    draft.condition("Valid", False, "InvalidSpec", problems)
    draft.end("Failed", "InvalidSpec", problems)


def _begin_again(draft: SampleJobDraft, *, changed: bool) -> bool:
    """Whether a job that has ended starts anew: a failed one whose request is another now."""
    if draft.old.phase == "Failed" and changed and _asks_for_something_else(draft):
        kept = [c for c in draft.old.conditions or () if c.type == "Valid"]
        draft.status = SampleJobStatus(conditions=kept or None, retried_at=draft.again or None)
        return True
    limit = draft.settings.ttl_seconds_after_finished
    if limit is not None and draft.old.completion_time:
        left = parse_rfc3339(draft.old.completion_time) + limit - draft.now
        if left > 0:
            draft.requeue_after(left)
        else:
            meta = draft.job["metadata"]
            draft.plan.delete.append(Delete(SAMPLEJOBS, meta["name"], meta["namespace"], uid=meta["uid"]))
    return False


def _asks_for_something_else(draft: SampleJobDraft) -> bool:
    changed = bool(draft.old.observed_generation != draft.job["metadata"].get("generation"))
    if draft.old.job_name is None:
        return changed  # it never began: its spec was the mistake
    if not _is_own(draft):
        seen = draft.old.observed_generation is not None
        return (seen and changed) or bool(draft.again)
    case = _case_of_set(draft)
    if case is None:
        return changed
    draft.requeue_after(FAILED_LOOK)
    try:
        wanted = _work(draft, case, draft.old.partitions or case.settings.partitions)
    except BadOptions:
        return False
    return wanted.id != draft.old.job_name


def _is_own(draft: SampleJobDraft) -> bool:
    """Whether the work was named by this controller. What the original operator began has another kind of id."""
    return (draft.old.job_name or "").startswith(f"{draft.uid}-")


def _case_of_set(draft: SampleJobDraft) -> sets.SampleSetCase | None:
    found = draft.observed.sample_set
    if found is None or found["metadata"].get("deletionTimestamp"):
        return None
    parsed = draft.observed.parsed_set or sets.Parsed.of(found)
    if parsed.decoded is None:
        return None
    return sets.SampleSetCase(found, parsed.settings, parsed.status, sets.Observed(), draft.now, draft.options)


def _work(draft: SampleJobDraft, case: sets.SampleSetCase, partitions: int) -> Work:
    secret = draft.observed.secret or sets.SecretView({}, "")
    return work.build(draft.uid, draft.settings, case, partitions=partitions, secret=secret, again=draft.again)


def _start(draft: SampleJobDraft) -> None:
    """Hand the work over, as soon as the set and what it needs are there."""
    settings, observed = draft.settings, draft.observed
    case = _case_of_set(draft)
    if case is None:
        draft.wait(f"SampleSet {settings.sample_set} does not exist", event="ErrorSampleSetNotExist")
        return
    if settings.type == "sync" and not settings.source and case.changed_source:
        draft.wait(f"SampleSet {settings.sample_set}: {case.changed_source}", event="ErrorSourceChanged")
        return
    if _lacks_secret(draft, case):
        return
    of_set = case.phase or "new"
    if settings.type == "warmup" and of_set not in ("PartialReady", "Ready"):
        draft.wait(f"SampleSet {settings.sample_set} is {of_set}: waiting for its data")
        return
    partitions = case.settings.partitions
    targets = work.targets(settings.type, partitions)
    ready = {server.ordinal for server in observed.servers if server.ready}
    lacking = len(targets) - sum(ordinal in targets for ordinal in ready)
    if observed.access is None or lacking:
        away = (names.runtime_pod(settings.sample_set, n) for n in targets if n not in ready)
        named = ", ".join(islice(away, NAMED)) + (f" and {lacking - NAMED} more" if lacking > NAMED else "")
        draft.wait(f"waiting for cache server {named}" if lacking else "waiting for the cache servers", after=2.0)
        return
    try:
        wanted = _work(draft, case, partitions)
    except BadOptions as error:
        draft.add_event(f"ErrorCreate{work.NAME_IN_EVENTS[settings.type]}", str(error), warning=True)
        draft.end("Failed", "BadOptions", str(error))
        return
    if observed.refused:
        draft.set(job_name=wanted.id, partitions=len(targets), sample_set_uid=case.uid)
        _end(draft, phase.PhaseResult("Failed", observed.refused, ()))
        return
    if settings.terminate:
        draft.add_event("CreateTerminateSuccessfully", "ending what the cache servers are doing")
    draft.plan.cancel = ("*",) if settings.terminate else (settings.cancel,) if settings.cancel else ()
    draft.plan.submit = dict.fromkeys(targets, wanted)
    draft.add_event(
        f"Create{work.NAME_IN_EVENTS[settings.type]}Successfully",
        f"handed to {number_of(len(targets), 'cache server')}",
    )
    draft.set(
        phase="Pending",
        job_name=wanted.id,
        partitions=len(targets),
        sample_set_uid=case.uid,
        message=None,
        start_time=rfc3339(draft.now),
    )
    draft.requeue_after(SOON)


def _lacks_secret(draft: SampleJobDraft, case: sets.SampleSetCase) -> bool:
    """Whether the work must wait for its Secret, or for the right to use it."""
    secret = work.secret_of(draft.settings, case.settings)
    if secret is None or draft.observed.secret is not None:
        return False
    reason, text = grants.refusal(secret, draft.settings.namespace)
    draft.wait(text, event=f"Error{reason}")
    return True


def _follow(draft: SampleJobDraft) -> None:
    """Ask how it goes; a server that does not know the work is given it again."""
    case = _case_of_set(draft)
    if case is None or draft.old.sample_set_uid not in (None, case.uid):
        _end(draft, phase.PhaseResult("Failed", f"SampleSet {draft.settings.sample_set} was deleted", ()))
        return
    if draft.observed.refused:
        _end(draft, phase.PhaseResult("Failed", draft.observed.refused, ()))
        return
    unknown = [ordinal for ordinal, report in draft.observed.reports.items() if report is None]
    if unknown and _lacks_secret(draft, case):
        return
    if unknown:
        try:
            wanted = _work(draft, case, draft.old.partitions or 1)
        except BadOptions as error:
            _end(draft, phase.PhaseResult("Failed", str(error), ()))
            return
        draft.plan.submit = dict.fromkeys(unknown, wanted)
        draft.set(job_name=wanted.id)
    found = phase.judge(draft)
    phase.show_progress(draft, ended=found.phase in FINISHED)
    if found.phase in FINISHED:
        _end(draft, found)
        return
    if found.phase == "Running":
        draft.condition("Running", True, "Running")
    draft.set(phase=found.phase, message=found.message or None)
    draft.requeue_after(SOON)


def _end(draft: SampleJobDraft, found: phase.PhaseResult) -> None:
    name = work.NAME_IN_EVENTS[draft.settings.type]
    if found.phase == "Succeeded":
        draft.add_event(f"Do{name}Successfully", found.message)
    else:
        draft.add_event(f"ErrorDo{name}", found.message, warning=True)
    draft.end(found.phase, found.phase, found.message)
    draft.set(missing=list(found.missing) or None)
    if draft.settings.ttl_seconds_after_finished is not None:
        draft.requeue_after(float(draft.settings.ttl_seconds_after_finished))


def _conclude(draft: SampleJobDraft) -> SampleJobPlan:
    draft.set(observed_generation=draft.job["metadata"].get("generation"))
    status = encode(draft.status)
    if status != encode(draft.old):
        draft.plan.status = status
    return draft.plan
