"""The whole of the PaddleJob controller's judgement: `decide(job, observed, now)` is pure and says everything to do.

The rules are tried in order and the first that speaks has the word: not ours, being deleted, finished, invalid,
suspended, succeeded, out of time, failed, resized, refused, and finally: form the gang. Whatever is remembered between
passes stands in the job's own status, so that any pass can follow any crash.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from paddlecloud.api.paddlejob import PaddleJobStatus, decode, normalise, validate
from paddlecloud.api.paddlejob.status import Failure as FailureRecord
from paddlecloud.api.problems import DecodeError
from paddlecloud.controllers.paddlejob import (
    causes,
    failure,
    finish,
    form,
    gang,
    names,
    objects,
    obstacle,
    refusal,
    report,
    silence,
    status,
)
from paddlecloud.controllers.paddlejob.case import Case, Member, Options
from paddlecloud.controllers.paddlejob.observe import Observed
from paddlecloud.controllers.paddlejob.obstacle import number
from paddlecloud.kube.clock import parse_rfc3339, rfc3339
from paddlecloud.kube.plan import Plan, PlannedEvent
from paddlecloud.kube.resource import Object

INVALID = "InvalidSpec"


def decide(job: Object, observed: Observed, now: float, options: Options | None = None) -> Plan:
    """Everything to be done for `job` now. An empty plan means: as it should be."""
    options = options or Options()
    try:
        parsed = decode(job)
    except DecodeError as error:
        return _reject(job, PaddleJobStatus(), [str(error)], now, begun=bool(observed.pods))
    settings, warnings = normalise(parsed)
    if settings.heartbeat_seconds is not None and observed.told is None:
        warnings.append("hangDetection.heartbeatSeconds is not watched here: use logSilenceSeconds")
    if gang.missed(settings, options.gangs):
        warnings.append(gang.NOBODY)
    case = Case(job, settings, parsed.status or PaddleJobStatus(), observed, now, options)
    if settings.managed_by not in ("", options.controller_name):
        return Plan()
    if job["metadata"].get("deletionTimestamp"):
        # The garbage collector takes everything the job owns; nothing new may be made meanwhile.
        farewell = Plan()
        finish.let_go(case, farewell)
        return _conclude(case, farewell, case.old, "Terminating", reason="Deleted")
    if case.phase in status.FINISHED:
        if _asked_again(case):
            return _retry(case)
        if not _changed_since_refused(case):
            return _after_the_end(case)
        case = replace(case, old=PaddleJobStatus())
    if problems := [str(problem) for problem in validate(parsed)]:
        return _reject(job, case.old, problems, now, begun=bool(observed.pods))
    if status.condition(parsed.status or PaddleJobStatus(), "Valid"):
        case = replace(case, old=status.with_condition(case.old, "Valid", "True", reason="Repaired", now=now))
    if settings.suspend:
        return _suspend(case)
    case = replace(case, old=causes.reconsidered(case))
    for rule in (_success, _deadline, _failure, _hang, _resize, _refused):
        if (plan := rule(case)) is not None:
            return plan
    return _form(case, warnings)


# Rules, in the order they are tried


def _changed_since_refused(case: Case) -> bool:
    """An invalid job created nothing, so it may begin when its spec has changed."""
    return (
        case.phase == "Failed"
        and case.old.reason == INVALID
        and case.old.observed_generation != case.job["metadata"].get("generation")
    )


def _asked_again(case: Case) -> bool:
    """Whether the annotation asks for another run: once per value, and not when it was set before the job ended."""
    asked = (case.job["metadata"].get("annotations") or {}).get(names.RETRY_AT)
    if not asked or asked == case.old.retried_at:
        return False
    try:
        return case.old.completion_time is None or parse_rfc3339(asked) >= parse_rfc3339(case.old.completion_time)
    except ValueError:
        return True  # any word that is new will do


def _retry(case: Case) -> Plan:
    """Run a finished job again, with all its budgets and from its checkpoint. Only what a person needs is kept."""
    old = case.old
    new = PaddleJobStatus(
        generation=case.generation + 1,
        port=old.port,
        conditions=old.conditions,
        failures=old.failures,
        progress=old.progress,
        checkpoint=old.checkpoint,
        retried_at=case.job["metadata"]["annotations"][names.RETRY_AT],
    )
    text = f"run again, as asked: {number(case.settings.total, 'pod')}"
    plan = Plan(status_first=True, events=[PlannedEvent("Retried", text)])
    form.clear_stale(replace(case, old=new), plan)  # with the new generation all pods are stale
    new = status.with_counts(new, case.settings, ())
    new = status.with_condition(new, "Created", "False", reason="Retried", now=case.now)
    return _conclude(case, plan, new, "Restarting", reason="Retried", message=text)


def _reject(job: Object, old: PaddleJobStatus, problems: list[str], now: float, *, begun: bool) -> Plan:
    """Say what is wrong, create nothing. A job that has begun goes on as it is: the mistake came later."""
    text = "; ".join(problems)
    new = status.with_condition(old, "Valid", "False", reason=INVALID, message=text, now=now)
    if not begun:
        generation = job["metadata"].get("generation")
        new = status.in_phase(new, "Failed", now=now, reason=INVALID, message=text, generation=generation)
    written = status.finish(new, job.get("status") or {}, now=now)
    events = [PlannedEvent(INVALID, text, type="Warning")] if written else []
    return Plan(status=written, events=events)


def _after_the_end(case: Case) -> Plan:
    plan = Plan()
    finish.clean_up(case, plan, case.phase)
    finish.expire(case, plan)
    return plan


def _suspend(case: Case) -> Plan:
    """Take the gang down and keep it down. The generation moves on, so that nothing of this life meets the next."""
    plan = Plan()
    new = case.old
    if case.phase != "Suspended":
        plan.status_first = True
        plan.events.append(PlannedEvent("Suspended", "the job is suspended: its pods are removed"))
        new = msgspec.structs.replace(new, generation=case.generation + 1)
    form.clear_stale(replace(case, old=new), plan)  # with the new generation all pods are stale
    form.drop_gang(case, plan)
    new = status.with_counts(new, case.settings, ())
    new = status.with_condition(new, "Created", "False", reason="Suspended", now=case.now)
    return _conclude(case, plan, new, "Suspended", reason="Suspended", message="spec.suspend is true")


def _success(case: Case) -> Plan | None:
    """The workers decide, or all roles where that was asked for or there are no workers."""
    worker = case.settings.role("worker")
    deciding = case.settings.roles
    if worker is not None and worker.replicas and case.settings.success_policy == "Workers":
        deciding = (worker,)
    members = [(role.name, index) for role in deciding for index in range(role.replicas)]
    done = all(member in case.current and case.current[member].state == "succeeded" for member in members)
    if not members or not done:
        return None
    text = f"{number(len(members), 'worker' if len(deciding) < len(case.settings.roles) else 'pod')} succeeded"
    plan = Plan(status_first=True, events=[PlannedEvent("Completed", text)])
    finish.clean_up(case, plan, "Completed")
    return _conclude(case, plan, _at_the_end(case), "Completed", reason="Completed", message=text)


def _deadline(case: Case) -> Plan | None:
    """Active for too long, or not scheduled for too long."""
    created = status.condition(case.old, "Created")
    if created is None or not created.last_transition_time:
        return None
    if created.status != "True" and created.reason != refusal.REASON:
        return None
    age = case.now - parse_rfc3339(created.last_transition_time)
    waits = case.phase in status.FORMING
    cause = case.observed.trouble or form.awaited(case) if waits else ""
    limit = case.settings.active_deadline_seconds
    if limit is not None and age >= limit and created.status == "True":
        text = f"the job was active for more than {limit} seconds"
        text += f", and had not started: {cause}" if cause else ""
        return _fail(_with_start_timeout(case, cause) if waits else case, "DeadlineExceeded", text)
    limit = case.settings.scheduling.timeout_seconds
    unscheduled = [pod.name for pod in case.current.values() if not pod.node] or case.missing
    if limit is not None and age >= limit and waits and unscheduled:
        text = f"{number(len(unscheduled), 'pod')} not scheduled within {limit} seconds: {cause}"
        return _fail(_with_start_timeout(case, cause), "ScheduleTimeout", text)
    return None


def _failure(case: Case) -> Plan | None:
    """Restart the gang or fail the job, once per generation however many ranks fall over each other."""
    missing = case.missing if case.formed and not case.resized else ()
    gone = [pod for pod in case.observed.gone if pod.generation == case.generation]
    pods = tuple(case.current.values())
    in_place = objects.restarts_in_place(case.settings, case.etcd)
    if in_place and (worn := failure.worn_out(case.settings, pods)) is not None:
        return _fail(replace(case, old=_with_record(case, worn, "Fail")), "BackoffLimitExceeded", worn.describe())
    found = [*failure.failures(pods), *failure.lost(case.settings, missing, gone)]
    if not found or causes.awaited(case) > 0:
        return None
    return _answer(case, found[0])


def _hang(case: Case) -> Plan | None:
    """Nobody said anything for longer than the job may be silent: a line in a log, or a report."""
    if case.phase != "Running":
        return None
    limit, heard = case.settings.log_silence_seconds, case.observed.heard
    if limit is not None and heard is not None and case.now - heard >= limit:
        ranks = [rank for rank in case.members if rank[0] == "worker"] or list(case.members)
        return _restart_hung(case, ranks[0], f"no pod wrote a line for {case.now - heard:.0f} seconds")
    if (silent := silence.ranks(case)) is not None:
        return _restart_hung(case, silent.ranks[0], silent.text)
    return None


def _restart_hung(case: Case, rank: Member, text: str) -> Plan:
    pod = case.current[rank]
    plan = _answer(case, failure.Failure(pod.name, pod.role, pod.node, "Hung", "Hung", None, text, ""))
    plan.events[:0] = [PlannedEvent("StackDump", text, type="Warning") for text in silence.dumps(case)]
    return plan


def _answer(case: Case, first: failure.Failure) -> Plan:
    """What is done about a failure: the whole gang is restarted, or the job ends."""
    verdict = failure.judge(
        case.settings, first, restarts=case.old.restarts or 0, disruptions=case.old.disruptions or 0
    )
    old = _with_record(case, first, verdict.action)
    if verdict.action == "Fail":
        return _fail(replace(case, old=old), verdict.reason, first.describe())
    if case.etcd:
        return _replace(case, old, first)
    counted = verdict.action == "Restart"
    restarts = (old.restarts or 0) + (1 if counted and not first.is_disruption else 0)
    disruptions = (old.disruptions or 0) + (1 if counted and first.is_disruption else 0)
    new = msgspec.structs.replace(
        old, generation=case.generation + 1, restarts=restarts or None, disruptions=disruptions or None
    )
    of = f" (restart {restarts} of {case.settings.backoff_limit})" if counted and not first.is_disruption else ""
    text = f"{first.describe()}; restarting {number(case.settings.total, 'pod')}{of}"
    plan = Plan(status_first=True, events=[PlannedEvent("Restarting", text, type="Warning")])
    form.clear_stale(replace(case, old=new), plan)  # with the new generation all pods are stale
    new = status.with_counts(new, case.settings, ())
    return _conclude(case, plan, new, "Restarting", reason=verdict.reason, message=text)


def _replace(case: Case, old: PaddleJobStatus, first: failure.Failure) -> Plan:
    """Put new pods in the place of those that failed for good, and leave the others to it."""
    text = f"{first.describe()}; replacing it"
    plan = Plan(status_first=True, events=[PlannedEvent("Replacing", text, type="Warning")])
    form.replace_pods(case, plan)
    new = msgspec.structs.replace(old, disruptions=(old.disruptions or 0) + 1)
    new = status.with_counts(new, case.settings, tuple(case.current.values()))
    return _conclude(case, plan, new, case.phase, reason=first.kind, message=text)


def _resize(case: Case) -> Plan | None:
    """Other numbers of pods than the gang was formed with: form it anew, from its checkpoint."""
    if not case.resized:
        return None
    text = f"the job is formed anew with {case.replicas.replace(',', ', ')}"
    new = msgspec.structs.replace(case.old, generation=case.generation + 1)
    plan = Plan(status_first=True, events=[PlannedEvent("Scaling", text)])
    form.clear_stale(replace(case, old=new), plan)  # with the new generation all pods are stale
    new = status.with_counts(new, case.settings, ())
    return _conclude(case, plan, new, "Scaling", reason="Scaling", message=text)


def _refused(case: Case) -> Plan | None:
    """The API server refuses some of the pods: the gang holds nothing until it is tried again as a whole."""
    retry_at = case.observed.retry_at
    if retry_at is None or case.now >= retry_at or not case.missing or case.etcd:
        return None
    plan, new, text = Plan(), case.old, case.observed.trouble
    if case.current:
        plan.status_first = True
        new = msgspec.structs.replace(new, generation=case.generation + 1)
    form.clear_stale(replace(case, old=new), plan)  # with the new generation all pods are stale
    form.look_again(plan, retry_at - case.now)
    _watch_the_clock(case, plan)
    new = status.with_counts(new, case.settings, ())
    new = status.with_condition(new, "Created", "False", reason=refusal.REASON, message=text, now=case.now)
    phase = status.phase_while_forming(case.settings, (), case.phase, reforming=_reforming(case))
    return _conclude(case, plan, new, phase, reason=refusal.REASON, message=text)


def _form(case: Case, warnings: list[str]) -> Plan:
    """Make what is missing, and say how far it is."""
    plan = Plan()
    new, waiting = case.old, ""
    if (found := obstacle.find(case)) is not None:
        new, waiting = obstacle.tell(case, plan, found), found.text
    elif case.port is not None and not form.clear_stale(case, plan):
        if case.settings.sample_set is not None:
            new = status.with_condition(new, "DataReady", "True", reason="Ready", now=case.now)
        new, waiting = _create(case, plan, new, case.port)
    if warnings and case.old.phase is None:
        plan.events.append(PlannedEvent("Guessed", "; ".join(warnings), type="Warning"))
    pods = tuple(case.current.values())
    new = msgspec.structs.replace(new, generation=case.generation, port=case.port)
    if objects.restarts_in_place(case.settings, case.etcd):
        new = msgspec.structs.replace(new, restarts=failure.restarts_in_place(pods) or None)
    reforming = _reforming(case)
    phase = status.phase_while_forming(case.settings, pods, case.phase, reforming=reforming)
    new = status.with_counts(new, case.settings, pods)
    if phase == "Running":
        return _conclude(case, plan, new, phase, reason="Running")
    reason = (case.old.reason or phase) if reforming else phase
    message = case.observed.trouble or waiting or form.awaited(case)
    return _conclude(case, plan, new, phase, reason=reason, message=message)


def _create(case: Case, plan: Plan, new: PaddleJobStatus, port: int) -> tuple[PaddleJobStatus, str]:
    waiting = ""
    if case.missing:
        if gang.missed(case.settings, case.options.gangs):
            new = status.with_condition(
                new, "GangScheduled", "False", reason="NoGangScheduler", message=gang.NOBODY, now=case.now
            )
        elif status.condition(new, "GangScheduled"):
            new = status.with_condition(new, "GangScheduled", "True", reason="EngineFound", now=case.now)
        waiting = form.ensure_gang(case, plan)
        if not waiting and (pause := form.restart_delay(case)):
            waiting = f"the next restart is due in {pause:.0f} seconds"
            form.look_again(plan, pause)
        if not waiting:
            form.ensure_pods(case, plan, port)
    else:
        waiting = form.ensure_config(case, plan, port)
    _watch_the_clock(case, plan)
    if case.observed.retry_at is None:  # otherwise the next pass knows whether it was granted this time
        new = status.with_condition(new, "Created", "True", reason="Created", now=case.now)
    return new, waiting


def _watch_the_clock(case: Case, plan: Plan) -> None:
    """Come back when a deadline is due, or a verdict."""
    if (wait := causes.awaited(case)) > 0:
        form.look_again(plan, wait)
    if case.phase == "Running":
        for moment in silence.due(case):
            form.look_again(plan, max(1.0, moment - case.now))
    limits = (case.settings.active_deadline_seconds, case.settings.scheduling.timeout_seconds)
    created = status.condition(case.old, "Created")
    since = parse_rfc3339(created.last_transition_time) if created and created.last_transition_time else case.now
    for limit in limits:
        if limit is not None and since + limit > case.now:
            form.look_again(plan, since + limit - case.now)


# Helpers


def _fail(case: Case, reason: str, text: str) -> Plan:
    plan = Plan(status_first=True, events=[PlannedEvent("Failed", f"{reason}: {text}", type="Warning")])
    finish.clean_up(case, plan, "Failed")
    return _conclude(case, plan, _at_the_end(case), "Failed", reason=reason, message=text)


def _reforming(case: Case) -> bool:
    return case.generation > 0 and case.phase in ("Restarting", "Scaling")


def _at_the_end(case: Case) -> PaddleJobStatus:
    pods = tuple(case.current.values())
    return status.with_start(status.with_counts(case.old, case.settings, pods), pods)


def _with_start_timeout(case: Case, cause: str) -> Case:
    """The case with a pod on record that did not come to run in time, one without a place if there is such."""
    places = {member: pod.node for member, pod in case.current.items() if pod.state not in ("running", "succeeded")}
    places |= dict.fromkeys(case.missing, "")
    if not places:
        return case
    (role, index), node = min(places.items(), key=lambda entry: (bool(entry[1]), entry[0]))
    name = names.pod_name(case.settings.name, role, index)
    late = failure.Failure(name, role, node, failure.LATE, failure.LATE, None, cause, "")
    return replace(case, old=_with_record(case, late, "Fail"))


def _with_record(case: Case, first: failure.Failure, action: str) -> PaddleJobStatus:
    record = FailureRecord(
        time=rfc3339(case.now),
        pod=first.pod,
        node=first.node or None,
        failure_class=first.kind,
        exit_code=first.exit_code,
        message=first.message or None,
        action=action,
    )
    kept = [*(case.old.failures or ()), record][-status.FAILURES_KEPT :]
    return msgspec.structs.replace(case.old, failures=kept)


def _conclude(case: Case, plan: Plan, new: PaddleJobStatus, phase: str, *, reason: str, message: str = "") -> Plan:
    new = report.fold(new, case.observed.told, ended=phase in status.FINISHED)
    new = msgspec.structs.replace(new, elastic=status.elastic_state(case.settings, new.elastic, phase))
    new = status.in_phase(
        new, phase, now=case.now, reason=reason, message=message, generation=case.job["metadata"].get("generation")
    )
    plan.status = status.finish(new, case.job.get("status") or {}, now=case.now)
    return plan
