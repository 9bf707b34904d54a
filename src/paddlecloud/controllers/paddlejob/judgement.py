"""What is to be done about a failure: restart, fail, or restart without counting it.

The job's own rules come first, then what is known of the class of failure, then the role's restart policy and the
budget that is left of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from paddlecloud.api.paddlejob import JobSettings
from paddlecloud.api.pattern import TooCostly, compile_pattern
from paddlecloud.controllers.paddlejob.case import Case
from paddlecloud.controllers.paddlejob.failure import Failure

Action = Literal["Restart", "Fail", "Ignore"]

DISRUPTION_LIMIT = 20
"""Restarts after disruptions; a job that is disrupted this often is in the wrong place."""

MAX_STEPS = 50_000
"""What searching a message for a pattern may cost: tens of milliseconds."""

_HOPELESS = frozenset({"Image", "NoParameterServer"})
"""Classes that no restart can cure."""


class Judgement(NamedTuple):
    action: Action
    reason: str
    """Why, in a word for programs: BackoffLimitExceeded, DisruptionLimitExceeded, or the failure's class."""


def judge(case: Case, failure: Failure) -> Judgement:
    """The first rule that matches decides; then the kind of failure; then the role's restart policy and the budget."""
    settings, restarts = case.settings, case.old.restarts or 0
    for rule in settings.failure_rules:
        if _matches(rule, failure):
            if rule.action == "Restart":
                return _within_budget(settings, failure, restarts)
            return Judgement(rule.action, failure.kind)
    if failure.kind in _HOPELESS:
        return Judgement("Fail", failure.kind)
    if failure.is_disruption:
        if (case.old.disruptions or 0) < DISRUPTION_LIMIT:
            return Judgement("Restart", failure.kind)
        return Judgement("Fail", "DisruptionLimitExceeded")
    if not _policy_restarts(settings, failure):
        return Judgement("Fail", failure.kind)
    return _within_budget(settings, failure, restarts)


def _within_budget(settings: JobSettings, failure: Failure, restarts: int) -> Judgement:
    if restarts < settings.backoff_limit:
        return Judgement("Restart", failure.kind)
    return Judgement("Fail", "BackoffLimitExceeded" if settings.backoff_limit else failure.kind)


def _policy_restarts(settings: JobSettings, failure: Failure) -> bool:
    role = settings.role(failure.role)
    policy = role.restart_policy if role else "OnFailure"
    if policy == "ExitCode":
        return failure.exit_code is not None and failure.exit_code >= 128
    if policy == "Never":
        # Where every template says Never, a limit above zero was written on purpose and means restarts by the job.
        return settings.backoff_limit > 0 and all(r.restart_policy == "Never" for r in settings.roles)
    return True


def _matches(rule: Any, failure: Failure) -> bool:
    if rule.roles is not None and failure.role not in rule.roles:
        return False
    if rule.exit_codes is not None and not _in_ranges(failure.exit_code, rule.exit_codes):
        return False
    if rule.reasons is not None and not rule.reasons & {failure.reason, failure.kind}:
        return False
    return rule.message_pattern is None or _is_found(rule.message_pattern, failure.message)


def _is_found(pattern: str, message: str) -> bool:
    """Both are a tenant's, and all tenants wait while it is searched for: beyond a bound it counts as not found."""
    try:
        return compile_pattern(pattern).search(message, limit=MAX_STEPS)
    except TooCostly:
        return False


def _in_ranges(code: int | None, ranges: Sequence[tuple[int, int]]) -> bool:
    return code is not None and any(low <= code <= high for low, high in ranges)
