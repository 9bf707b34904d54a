"""What is to be done about a failure: restart, fail, or restart without counting it.

The job's own rules come first, then what is known of the class of failure, then the role's restart policy and the
budget that is left of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from paddlecloud.api.paddlejob import JobSettings
from paddlecloud.api.pattern import TooCostly, compile_pattern
from paddlecloud.controllers.paddlejob.decision.case import JobCase
from paddlecloud.controllers.paddlejob.failure.cause import SHUTDOWN, Failure

Action = Literal["Restart", "Fail", "Ignore"]

DISRUPTION_LIMIT = 20
"""Restarts after disruptions; a job that is disrupted this often is in the wrong place."""

MAX_STEPS = 50_000
"""What searching a message for a pattern may cost: tens of milliseconds."""

_HOPELESS = frozenset({"Image", "Config", "Mount", "NoParameterServer"})
"""Classes that no restart can cure."""


class Judgement(NamedTuple):
    action: Action
    reason: str
    """Why, in a word for programs: BackoffLimitExceeded, DisruptionLimitExceeded, or the failure's class."""
    too_costly: tuple[int, ...] = ()
    """Numbers of the rules that were skipped because searching for their pattern was too costly."""


def judge(case: JobCase, failure: Failure) -> Judgement:
    """The first rule that matches decides; then the kind of failure; then the role's restart policy and the budget."""
    rule, too_costly = _first_match(case.settings.failure_rules, failure)
    if rule is None:
        verdict = _without_rule(case, failure)
    elif rule.action == "Restart":
        verdict = _within_budget(case, failure)
    else:
        verdict = Judgement(rule.action, failure.kind)
    return verdict._replace(too_costly=too_costly)


def _without_rule(case: JobCase, failure: Failure) -> Judgement:
    if failure.kind in _HOPELESS:
        return Judgement("Fail", failure.kind)
    if failure.kind == SHUTDOWN:
        return Judgement("Ignore", failure.kind)
    if failure.is_disruption:
        if (case.old.disruptions or 0) < DISRUPTION_LIMIT:
            return Judgement("Restart", failure.kind)
        return Judgement("Fail", "DisruptionLimitExceeded")
    if not _policy_restarts(case.settings, failure):
        return Judgement("Fail", failure.kind)
    return _within_budget(case, failure)


def _within_budget(case: JobCase, failure: Failure) -> Judgement:
    limit = case.settings.backoff_limit
    if (case.old.restarts or 0) < limit:
        return Judgement("Restart", failure.kind)
    return Judgement("Fail", "BackoffLimitExceeded" if limit else failure.kind)


def _policy_restarts(settings: JobSettings, failure: Failure) -> bool:
    role = settings.role(failure.role)
    policy = role.restart_policy if role else "OnFailure"
    if policy == "ExitCode":
        return failure.exit_code is not None and failure.exit_code >= 128
    if policy == "Never":
        # Where every template says Never, a limit above zero was written on purpose and means restarts by the job.
        return settings.backoff_limit > 0 and all(r.restart_policy == "Never" for r in settings.roles)
    return True


def _first_match(rules: Sequence[Any], failure: Failure) -> tuple[Any | None, tuple[int, ...]]:
    """The rule that matches first, and the numbers of those before it whose pattern was too costly to search for.

    Pattern and message are a tenant's, and all tenants wait during the search: beyond a bound it counts as not found.
    """
    too_costly: list[int] = []
    for index, rule in enumerate(rules):
        try:
            if _matches(rule, failure):
                return rule, tuple(too_costly)
        except TooCostly:
            too_costly.append(index)
    return None, tuple(too_costly)


def _matches(rule: Any, failure: Failure) -> bool:
    if rule.roles is not None and failure.role not in rule.roles:
        return False
    if rule.exit_codes is not None and not _in_ranges(failure.exit_code, rule.exit_codes):
        return False
    if rule.reasons is not None and not rule.reasons & {failure.reason, failure.kind}:
        return False
    pattern = rule.message_pattern
    return pattern is None or compile_pattern(pattern).search(failure.message, limit=MAX_STEPS)


def _in_ranges(code: int | None, ranges: Sequence[tuple[int, int]]) -> bool:
    return code is not None and any(low <= code <= high for low, high in ranges)
