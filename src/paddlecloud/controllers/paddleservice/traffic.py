"""Who gets how much of the traffic now. Pure.

A new revision gets nothing before it is ready; then all of it, or one step of the roll-out after the other. What served
before goes last. A roll-out that makes clients worse off goes back, and stays back until the endpoint or `spec.rollout`
changes, or another attempt is requested.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from paddlecloud.api.paddleservice import ServiceSettings
from paddlecloud.api.paddleservice.settings import RolloutSettings
from paddlecloud.controllers.paddleservice.observe import Measure, RevisionView

ENOUGH = 20
"""Requests that must have been answered before their errors and times are judged."""

FORGOTTEN_AFTER = 60.0
"""Seconds that answers count. A revision that went back is tried again only when those of the last attempt do not."""

UNJUDGED = "not judged: this platform reports no error rate or latency"

Shares = dict[str, int]
"""Percentages by name of revision; they add up to 100."""


Phase = Literal["Progressing", "Paused", "Waiting", "WentBack"]


class RolloutStep(NamedTuple):
    """How far a roll-out is. `due` is when the next step may be taken, None when nothing is awaited."""

    percent: int
    done: int
    due: float | None
    message: str = ""
    phase: Phase = "Progressing"


class Situation(NamedTuple):
    """`current` is what was asked of the engine last; `due`, `went_back` with its reason, and `not_before`, the time of
    the first step of another attempt, are what the status remembers."""

    settings: ServiceSettings
    default: str
    canary: str | None
    revisions: Mapping[str, RevisionView]
    current: Shares
    due: float | None
    went_back: str
    now: float
    reason: str = ""
    not_before: float | None = None


class TrafficSplit(NamedTuple):
    shares: Shares
    serving: str
    """The default revision that clients get now; beside it may be a newer one that is being rolled out."""
    step: RolloutStep | None = None
    went_back: str = ""


def decide(case: Situation) -> TrafficSplit:
    canary = case.canary if case.canary and _ready(case, case.canary) else None
    percent = case.settings.canary_percent if canary else 0
    old = _old_default(case)
    share, step, went_back = _new_share(case, old)
    left = 100 - percent
    shares: Shares = {}
    if old is None or share >= 100:
        shares[case.default] = left
    else:
        shares[case.default] = left * share // 100
        shares[old] = left - shares[case.default]
    if canary:
        shares[canary] = shares.get(canary, 0) + percent
    serving = case.default if old is None or share >= 100 else old
    return TrafficSplit(
        {name: value for name, value in shares.items() if value} or {serving: 100}, serving, step, went_back
    )


def _ready(case: Situation, name: str) -> bool:
    found = case.revisions.get(name)
    return found is not None and (found.ready is True or case.current.get(name, 0) > 0)


def _old_default(case: Situation) -> str | None:
    """The default that served until now, if it is another one and still there."""
    found = [
        name
        for name in case.current
        if name not in (case.default, case.canary)
        and name in case.revisions
        and case.revisions[name].endpoint == "default"
    ]
    return max(found, key=lambda name: case.current[name]) if found else None


def _new_share(case: Situation, old: str | None) -> tuple[int, RolloutStep | None, str]:
    """Percent of the default traffic for the newest default revision."""
    if old is None:
        return 100, None, ""
    if case.went_back == case.default:
        return 0, RolloutStep(0, 0, None, case.reason, "WentBack"), case.went_back
    if not _ready(case, case.default):
        return 0, None, ""
    rollout = case.settings.rollout
    if rollout is None or not rollout.steps or case.revisions[old].ready is False:  # it has nobody to be compared with
        return 100, None, ""
    return _rolled(case, rollout, old)


def _rolled(case: Situation, rollout: RolloutSettings, old: str) -> tuple[int, RolloutStep | None, str]:
    own = case.current.get(case.default, 0)
    total = own + case.current.get(old, 0)
    reached = round(own * 100 / total) if total else 0
    measure = case.revisions[case.default].measure
    trouble = _trouble(rollout, measure)
    if reached and trouble:
        return 0, RolloutStep(0, 0, None, f"went back: {trouble}", "WentBack"), case.default
    if not reached and case.not_before is not None and case.now < case.not_before:
        why = "begins when answers of the attempt before do not count"
        return 0, RolloutStep(0, 0, case.not_before, why, "Waiting"), ""
    done = sum(step <= reached for step in rollout.steps)
    if rollout.paused:
        return reached, RolloutStep(reached, done, None, "paused", "Paused"), ""
    if reached and case.due is not None and case.now < case.due:
        return reached, RolloutStep(reached, done, case.due, _unjudged(rollout, measure)), ""
    following = next((step for step in rollout.steps if step > reached), 100)
    if following >= 100:
        return 100, None, ""
    due = case.now + rollout.pause_seconds
    return following, RolloutStep(following, done + 1, due, _unjudged(rollout, measure)), ""


def _unjudged(rollout: RolloutSettings, measure: Measure | None) -> str:
    return UNJUDGED if measure is None and rollout.has_limits else ""


def _trouble(rollout: RolloutSettings, measure: Measure | None) -> str:
    if measure is None or measure.requests < ENOUGH:
        return ""
    most, slowest = rollout.max_error_percent, rollout.max_latency_milliseconds
    if most is not None and measure.error_percent > most:
        return f"{measure.error_percent:.1f} % of {measure.requests} answers were errors, more than {most:g} %"
    if slowest is not None and measure.latency_milliseconds > slowest:
        return f"the 95th percentile took {measure.latency_milliseconds:.0f} ms, more than {slowest} ms"
    return ""
