"""The SampleSet controller's judgement. `decide(set, observed, now, options)` is pure and gives every action.

A set lives through the phases of the manual: "" (its volume is bound), Bound (its cache servers start), Mount,
Syncing (the data is imported) or SyncFailed, PartialReady (nodes are labelled), Ready. Each pass first creates what
the phase needs and does not exist; then the phase's rule decides which phase comes next. What later passes need is in
the status, so that any pass can follow any crash.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from paddlecloud.api.sampleset import encode, validate
from paddlecloud.api.sampleset.spec import JobsName
from paddlecloud.controllers.sampledata import names
from paddlecloud.controllers.sampledata.sampleset import (
    cache_status,
    content,
    deletion,
    events,
    prerequisites,
    server_pods,
    warm,
)
from paddlecloud.controllers.sampledata.sampleset.case import Observed, Parsed, SampleSetCase, SampleSetOptions
from paddlecloud.controllers.sampledata.sampleset.draft import SampleSetDraft, SampleSetPlan
from paddlecloud.controllers.sampledata.servers import transfer
from paddlecloud.controllers.sampledata.servers.requests import Work
from paddlecloud.controllers.sampledata.servers.transfer import BadOptions
from paddlecloud.kube import conditions
from paddlecloud.kube.backoff import exponential
from paddlecloud.kube.plan import set_finalizers
from paddlecloud.kube.resource import SAMPLESETS, Object

SOON, REFRESH, IDLE = 1.0, 10.0, 60.0
"""Seconds until the next look: while something moves, while the figures may change, and otherwise."""
PROGRESS_EVERY = 5.0
JUST_DONE, FRESHLY_DONE = 5.0, 60.0
"""Seconds after the end of a job during which the figures are looked at every second, and still often."""
READS_KEPT = 20
"""Epochs of jobs whose reading is remembered."""
FIRST_RETRY, LAST_RETRY = 15.0, 600.0
"""Seconds until a failed import is tried again, at first and at most."""


def decide(sample_set: Object, observed: Observed, now: float, options: SampleSetOptions) -> SampleSetPlan:
    """Everything to be done for the set now. An empty decision means: as it should be."""
    parsed = observed.parsed or Parsed.of(sample_set)
    settings, warnings = parsed.settings, parsed.warnings
    case = SampleSetCase(sample_set, settings, parsed.status, observed, now, options)
    if parsed.decoded is None:
        return _reject(case, parsed.error)
    meta = sample_set["metadata"]
    marks = meta.get("finalizers") or []
    if meta.get("deletionTimestamp"):
        return _leave(case) if names.finalizer(settings.name) in marks else SampleSetPlan()
    if problems := [str(problem) for problem in validate(parsed.decoded)]:
        return _reject(case, "; ".join(problems))
    if names.finalizer(settings.name) not in marks:
        return SampleSetPlan(patch=[set_finalizers(sample_set, [*marks, names.finalizer(settings.name)])])
    draft = SampleSetDraft.of(case, msgspec.structs.replace(case.old, message=None))
    if warnings and case.old.observed_generation != meta.get("generation"):
        draft.add_event("Translated", "; ".join(warnings), warning=True)
    if prerequisites.check(draft):
        draft.condition("Valid", True, "Valid")
        _note_source(draft)
        if prerequisites.provide(draft):
            _RULES.get(case.phase, _unbound)(draft)
        content.note(draft)
    return _conclude(draft)


def sync_work(case: SampleSetCase) -> Work:
    """The import of the set's source. Another source, key or attempt is another job."""
    options = transfer.sync_options(case.settings, sources=case.options.sources)
    secret = case.source_secret
    id = names.job_id(case.uid, "sync", options, secret.version, case.old.sync_attempts or 0)
    return Work(id, "sync", options, transfer.credentials(secret.values))


# What must be there before anything is done


def _reject(case: SampleSetCase, problems: str) -> SampleSetPlan:
    """Say what is wrong. A set that has begun goes on as it is: the mistake came later."""
    draft = SampleSetDraft.of(case, case.old)
    draft.report_problem("Valid", "InvalidSpec", problems, event="InvalidSpec")
    return _conclude(draft)


# The rules of the phases


def _unbound(draft: SampleSetDraft) -> None:
    phases = [
        (obj or {}).get("status", {}).get("phase") for obj in (draft.case.observed.volume, draft.case.observed.claim)
    ]
    if phases == ["Bound", "Bound"]:
        draft.condition("Bound", True, "Bound")
        draft.set(phase="Bound")
    else:
        draft.condition("Bound", False, "Waiting", "waiting for the volume to be bound")
        draft.set(message="waiting for the volume to be bound")
        draft.requeue_after(5.0)


def _bound(draft: SampleSetDraft) -> None:
    server_pods.count_servers(draft)
    first = draft.case.first
    if first is not None and first.ready and draft.case.access:
        draft.set(phase="Mount")
        return
    text = (first.trouble if first else "") or "waiting for the first cache server"
    if draft.case.observed.warning is not None and not (first and first.running):
        reason, message = draft.case.observed.warning
        known = conditions.find(draft.case.old.conditions, "RuntimeReady")
        text = f"{names.runtime_pod(draft.case.settings.name, 0)}: {message}"
        if known is None or known.message != text:
            draft.add_event(reason, message, warning=True)
    draft.condition("RuntimeReady", False, "Starting", text)
    draft.set(message=text)
    server_pods.update_template(draft)
    draft.requeue_after(5.0)


def _mount(draft: SampleSetDraft) -> None:
    case = draft.case
    server_pods.count_servers(draft)
    if case.settings.no_sync or conditions.holds(case.old.conditions, "Synced"):
        if case.settings.no_sync and not conditions.holds(case.old.conditions, "Synced"):
            draft.condition("Synced", True, "NotWanted", "spec.noSync: the data is there already")
        _take_figures(draft)
        draft.set(phase="PartialReady", progress=None)
        return
    work = _work_or_problem(draft)
    if work is None:
        return
    if case.first is None or not case.first.ready:
        draft.set(message=(case.first.trouble if case.first else "") or "waiting for the first cache server")
        server_pods.update_template(draft)
        draft.requeue_after(5.0)
        return
    if case.observed.refused:
        draft.set(jobs_name=_with_sync(case, work.id))
        _fail_import(draft, case.observed.refused)
        return
    draft.plan.submit[case.first.name] = work
    draft.add_event("CreateSyncJobSuccessfully", f"importing {case.settings.uri}")
    draft.condition("Synced", None, "Syncing")
    draft.set(phase="Syncing", jobs_name=_with_sync(case, work.id))
    draft.requeue_after(SOON)


def _syncing(draft: SampleSetDraft) -> None:
    case = draft.case
    server_pods.count_servers(draft)
    draft.requeue_after(SOON)
    first, report = case.first, case.observed.sync
    if first is None or not first.running:
        draft.set(message=f"waiting for {names.runtime_pod(case.settings.name, 0)} to go on with the import")
        return
    if not case.observed.sync_asked:
        draft.set(message="; ".join(case.observed.silent.values()) or None)
        server_pods.update_template(draft)  # it may be of an earlier release
        return
    if case.observed.refused:
        _fail_import(draft, case.observed.refused)
        return
    if report is None:  # the server has lost it, or never got it: the same id makes it the same job
        if case.changed_source:
            draft.set(phase="Mount")
            return
        try:
            work = sync_work(case)
        except BadOptions:
            draft.set(phase="Mount")
            return
        draft.plan.submit[first.name] = work
        draft.set(jobs_name=_with_sync(case, work.id))
        return
    if report.progress and report.progress.files:
        draft.set(source=draft.status.source or _imported(case))
    _show_progress(draft)
    if not report.ended:
        ahead = f", {report.position} before it" if report.state == "Queued" and report.position else ""
        draft.set(message=f"import {report.state.lower()}{ahead}")
        return
    _take_figures(draft)
    if report.state == "Succeeded":
        source = _imported(case)
        draft.add_event("DoSyncJobSuccessfully", f"imported {source}: {cache_status.done([report])}")
        draft.condition("Synced", True, "Synced", cache_status.kept(report, case.settings.name))
        draft.set(phase="Mount", sync_attempts=None, source=source)
        return
    _fail_import(draft, report.message or f"the import was {report.state.lower()}")


def _fail_import(draft: SampleSetDraft, why: str) -> None:
    draft.add_event("ErrorDoSyncJob", why, warning=True)
    draft.condition("Synced", False, "SyncFailed", why)
    draft.set(phase="SyncFailed", message=why)


def _sync_failed(draft: SampleSetDraft) -> None:
    """Tried again when the spec or the Secret changed, when asked, after a job has synced all of the source, and by
    itself after a while: what was away may be back."""
    case = draft.case
    failed = conditions.find(case.old.conditions, "Synced")
    draft.set(message=failed.message if failed else None)
    server_pods.count_servers(draft)
    if case.settings.no_sync:
        draft.set(phase="Mount", message=None)
        return
    work = _work_or_problem(draft)
    if work is None:
        return
    server_pods.update_template(draft)
    attempts = case.old.sync_attempts or 0
    if case.old.jobs_name is None or work.id != case.old.jobs_name.sync_job_name:
        draft.set(phase="Mount", jobs_name=_with_sync(case, None))
        return
    since = conditions.since(case.old.conditions, "Synced") or case.now
    due = since + exponential(attempts, base=FIRST_RETRY, cap=LAST_RETRY)
    if case.now >= due or _is_asked_again(case) or _was_synced_after(case, since):
        draft.set(phase="Mount", jobs_name=_with_sync(case, None), sync_attempts=attempts + 1)
    else:
        draft.requeue_after(min(due - case.now, 5.0))  # the Secret is looked at meanwhile


def _is_asked_again(case: SampleSetCase) -> bool:
    return bool(case.retry_request) and case.retry_request != case.old.retried_at


def _was_synced_after(case: SampleSetCase, moment: float) -> bool:
    """Whether a job has copied all that the import is to copy: trying it again then costs one look at the source."""
    syncs = (job for job in case.observed.jobs if job.type == "sync" and job.whole and job.phase == "Succeeded")
    return any(job.completed > moment for job in syncs)


def _partial(draft: SampleSetDraft) -> None:
    server_pods.label_nodes(draft)
    server_pods.scale(draft)
    _take_figures(draft)
    server_pods.count_servers(draft)
    warm.judge(draft)
    if server_pods.complete(draft.case):
        draft.condition("Ready", True, "Ready")
        draft.set(phase="Ready")
        return
    text = server_pods.what_lacks(draft.case)
    draft.condition("Ready", False, "PartialReady", text)
    draft.set(phase="PartialReady", message=text)
    draft.requeue_after(REFRESH)


def _ready(draft: SampleSetDraft) -> None:
    if not server_pods.complete(draft.case):
        _partial(draft)
        return
    server_pods.label_nodes(draft)
    server_pods.update_template(draft)
    _take_figures(draft)
    _take_reads(draft)
    server_pods.count_servers(draft)
    warm.judge(draft)
    warm.warm_again(draft)
    draft.requeue_after(_next_look(draft.case))


_RULES: dict[str, Callable[[SampleSetDraft], None]] = {
    "": _unbound,
    "Bound": _bound,
    "Mount": _mount,
    "Syncing": _syncing,
    "SyncFailed": _sync_failed,
    "PartialReady": _partial,
    "Ready": _ready,
}


# Parts of them


def _work_or_problem(draft: SampleSetDraft) -> Work | None:
    """The import as the spec has it now; None, and reported, when it cannot be turned into work."""
    try:
        return sync_work(draft.case)
    except BadOptions as error:
        draft.report_problem("Synced", "BadOptions", str(error), event="ErrorCreateSyncJob")
        return None


def _with_sync(case: SampleSetCase, id: str | None) -> JobsName:
    source = case.settings.uri if id else None
    return msgspec.structs.replace(case.old.jobs_name or JobsName(), sync_job_name=id, sync_source=source)


def _imported(case: SampleSetCase) -> str:
    """The source of the import that runs: the spec may name another by now. Earlier releases did not note it."""
    return (case.old.jobs_name.sync_source if case.old.jobs_name else None) or case.settings.uri


def _note_source(draft: SampleSetDraft) -> None:
    """For data that was imported before there was a note of its source."""
    synced = conditions.find(draft.status.conditions, "Synced")
    if draft.case.old.source is None and synced and (synced.status, synced.reason) in _OF_THE_SOURCE:
        draft.set(source=draft.case.settings.uri or None)


_OF_THE_SOURCE = {("True", "Synced"), ("True", "Adopted")}
"""Conditions `Synced` of sets that hold what their source has; one with noSync holds anything."""


def _take_figures(draft: SampleSetDraft) -> None:
    """What the servers measured; without a single answer the old figures stay, with the reason."""
    observed = draft.case.observed
    old = draft.case.old.cache_status
    if observed.figures:
        draft.set(cache_status=cache_status.total(observed.figures, observed.silent))
    elif observed.silent and old is not None:
        errors = "; ".join(f"{name}: {why}" for name, why in observed.silent.items())
        draft.set(cache_status=msgspec.structs.replace(old, error_massage=errors))


def _take_reads(draft: SampleSetDraft) -> None:
    """What jobs report of their reading; those that are gone keep their last words, as long as there is room."""
    known = {report.job for report in draft.case.observed.reads}
    kept = [report for report in draft.case.old.reads or () if report.job not in known]
    draft.set(reads=[*kept, *draft.case.observed.reads][-READS_KEPT:] or None)


def _show_progress(draft: SampleSetDraft) -> None:
    report, now = draft.case.observed.sync, draft.case.now
    due = cache_status.is_due(draft.case.old.progress, now=now, every=PROGRESS_EVERY)
    if report is not None and (report.ended or due):
        draft.set(progress=cache_status.progress_of([report], now=now))
        _take_figures(draft)


def _next_look(case: SampleSetCase) -> float:
    """Soon after a job's end, whose figures servers may give a moment later; often while somebody uses the data."""
    ages = [case.now - job.completed for job in case.observed.jobs if job.completed]
    if any(age < JUST_DONE for age in ages):
        return SOON
    working = [job for job in case.observed.jobs if job.phase not in ("Succeeded", "Failed")]
    moving = case.observed.readers or working or case.observed.silent or any(age < FRESHLY_DONE for age in ages)
    return REFRESH if moving else IDLE


def _leave(case: SampleSetCase) -> SampleSetPlan:
    draft = SampleSetDraft.of(case, msgspec.structs.replace(case.old, message=None))
    deletion.leave(draft)
    if draft.plan.patch and any(patch.resource == SAMPLESETS for patch in draft.plan.patch):
        return draft.plan  # the last pass: nobody is left to read a status
    return _conclude(draft)


def _conclude(draft: SampleSetDraft) -> SampleSetPlan:
    draft.set(observed_generation=draft.case.sample_set["metadata"].get("generation"))
    draft.set(retried_at=draft.case.retry_request or None)
    if draft.case.observed.trouble and not draft.status.message:
        draft.set(message=draft.case.observed.trouble)
    status = encode(draft.status)
    if status != encode(draft.case.old):
        draft.plan.status = status
    draft.plan.events += events.created(draft.plan.create)
    return draft.plan
