"""What is done about what went wrong: a time that is over, pods that failed or vanished, ranks that stopped reporting.

Each rule looks at one kind of trouble and returns a plan, or None where there is none of it. What a failure is and how
it is judged stands elsewhere (`failure`); here is what follows.
"""

from __future__ import annotations

import msgspec

from paddlecloud.controllers.paddlejob import names, status
from paddlecloud.controllers.paddlejob.decision import gang_formation, refusal, startup
from paddlecloud.controllers.paddlejob.decision.case import JobCase, Member
from paddlecloud.controllers.paddlejob.decision.conclusion import conclude, fail, on_record, take_down
from paddlecloud.controllers.paddlejob.failure import cause as failure
from paddlecloud.controllers.paddlejob.failure import policy, secondary, silence
from paddlecloud.controllers.paddlejob.pods import objects
from paddlecloud.kube.clock import parse_rfc3339
from paddlecloud.kube.plan import Plan, PlannedEvent
from paddlecloud.kube.wording import number_of


def to_deadlines(case: JobCase) -> Plan | None:
    """Active for too long, or not scheduled for too long."""
    created = status.condition(case.old, "Created")
    if created is None or not created.last_transition_time:
        return None
    if created.status != "True" and created.reason != refusal.REASON:
        return None
    age = case.now - parse_rfc3339(created.last_transition_time)
    waits = case.phase in status.FORMING
    cause = case.observed.trouble or gang_formation.awaited(case) if waits else ""
    limit = case.settings.active_deadline_seconds
    if limit is not None and age >= limit and created.status == "True":
        text = f"the job was active for more than {limit} seconds"
        text += f", and had not started: {cause}" if cause else ""
        return fail(_with_start_timeout(case, cause) if waits else case, "DeadlineExceeded", text)
    limit = case.settings.scheduling.timeout_seconds
    unscheduled = [pod.name for pod in case.current.values() if not pod.node] or case.missing
    if limit is not None and age >= limit and waits and unscheduled:
        text = f"{number_of(len(unscheduled), 'pod')} not scheduled within {limit} seconds: {cause}"
        return fail(_with_start_timeout(case, cause), "ScheduleTimeout", text)
    return None


def _with_start_timeout(case: JobCase, cause: str) -> JobCase:
    """The case with a pod on record that did not come to run in time, one without a place if there is such."""
    places = {member: pod.node for member, pod in case.current.items() if pod.state not in ("running", "succeeded")}
    places |= dict.fromkeys(case.missing, "")
    if not places:
        return case
    (role, index), node = min(places.items(), key=lambda entry: (bool(entry[1]), entry[0]))
    name = names.pod_name(case.settings.name, role, index)
    return on_record(case, failure.Failure(name, role, node, failure.LATE, failure.LATE, None, cause, ""), "Fail")


def to_failures(case: JobCase) -> Plan | None:
    """Restart the gang or fail the job, once per generation however many ranks fall over each other."""
    pods = tuple(case.current.values())
    in_place = objects.restarts_in_place(case.settings, case.etcd)
    if in_place and (worn := failure.worn_out(case.settings, pods)) is not None:
        return fail(on_record(case, worn, "Fail"), "BackoffLimitExceeded", worn.describe())
    missing = case.missing if case.formed and not case.resized else ()
    gone = [pod for pod in case.observed.gone if pod.generation == case.generation]
    found = [*failure.failures(pods), *failure.lost(case.settings, missing, gone)]
    if not found or secondary.awaited(case) > 0:
        return None
    return _answer(case, found[0])


def to_failed_starts(case: JobCase) -> Plan | None:
    """A container could not start for longer than its cause may last."""
    found = startup.failure(case)
    return _answer(case, found) if found is not None else None


def to_silence(case: JobCase) -> Plan | None:
    """Nobody said anything for longer than the job may be silent: a line in a log, or a report."""
    if case.phase != "Running":
        return None
    limit, last_log_line = case.settings.log_silence_seconds, case.observed.last_log_line
    if limit is not None and last_log_line is not None and case.now - last_log_line >= limit:
        ranks = [rank for rank in case.members if rank[0] == "worker"] or list(case.members)
        return _restart_hung(case, ranks[0], f"no pod wrote a line for {case.now - last_log_line:.0f} seconds")
    if (silent := silence.ranks(case)) is not None:
        return _restart_hung(case, silent.ranks[0], silent.text)
    return None


def _restart_hung(case: JobCase, rank: Member, text: str) -> Plan:
    pod = case.current[rank]
    plan = _answer(case, failure.Failure(pod.name, pod.role, pod.node, "Hung", "Hung", None, text, ""))
    plan.events[:0] = [PlannedEvent("StackDump", text, type="Warning") for text in silence.dumps(case)]
    return plan


def _answer(case: JobCase, first: failure.Failure) -> Plan:
    """The whole gang is restarted, one pod is replaced where ranks form themselves, or the job ends."""
    verdict = policy.judge(case, first)
    case = on_record(case, first, verdict.action)
    if verdict.action == "Fail":
        plan = fail(case, verdict.reason, first.describe())
    elif case.etcd:
        plan = _replace(case, first)
    else:
        plan = _restart(case, first, verdict)
    if verdict.too_costly:
        skipped = ", ".join(f"rules[{rule}]" for rule in verdict.too_costly)
        text = f"skipped spec.failurePolicy.{skipped}: matching messagePattern takes too many steps; use a simpler one"
        plan.events.insert(0, PlannedEvent("PatternTooCostly", text, type="Warning"))
    return plan


def _restart(case: JobCase, first: failure.Failure, verdict: policy.Judgement) -> Plan:
    """All ranks together, on one of two budgets, or on none where a rule says that it does not count."""
    counted = verdict.action == "Restart"
    restarts = (case.old.restarts or 0) + (1 if counted and not first.is_disruption else 0)
    disruptions = (case.old.disruptions or 0) + (1 if counted and first.is_disruption else 0)
    new = msgspec.structs.replace(case.old, restarts=restarts or None, disruptions=disruptions or None)
    of = f" (restart {restarts} of {case.settings.backoff_limit})" if counted and not first.is_disruption else ""
    text = f"{first.describe()}; restarting {number_of(case.settings.total, 'pod')}{of}"
    kind = "Normal" if first.kind == failure.SHUTDOWN else "Warning"
    plan = Plan(events=[PlannedEvent("Restarting", text, type=kind)])
    return take_down(case, plan, new, "Restarting", reason=verdict.reason, message=text)


def _replace(case: JobCase, first: failure.Failure) -> Plan:
    """Put new pods in the place of those that failed for good, and leave the others to it."""
    text = f"{first.describe()}; replacing it"
    plan = Plan(status_first=True, events=[PlannedEvent("Replacing", text, type="Warning")])
    gang_formation.replace_pods(case, plan)
    new = msgspec.structs.replace(case.old, disruptions=(case.old.disruptions or 0) + 1)
    new = status.with_counts(new, case.settings, tuple(case.current.values()))
    return conclude(case, plan, new, case.phase, reason=first.kind, message=text)
