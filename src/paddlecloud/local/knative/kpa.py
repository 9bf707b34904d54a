"""Knative's pod autoscaler as a pure function: what was observed in two windows, and how many pods there should be.

    wanted = ceil(average of the metric over the window ÷ (target × utilisation))

Two windows are looked at. The *stable* one (60 s) decides in quiet times. The *panic* one (a tenth of it) decides when
it wants at least twice the pods there are: from then on the number only grows, until a whole stable window has passed
without another such moment. No step is larger than the rates allow, and the last pod goes only when nothing was asked
for during the stable window, the retention period and the grace period.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from paddlecloud.local.knative.settings import Scaling


@dataclass(frozen=True, slots=True)
class Observed:
    """What one decision is about. Averages are None while nothing has been reported yet."""

    now: float
    ready: int
    """Pods that take requests."""
    stable: float | None
    panic: float | None
    reachable: bool = True
    """Whether a route leads to the revision; one that nobody can reach needs no smallest number of pods."""
    waiting: bool = False
    """Whether requests wait for the first pod."""
    started: bool = True
    """Whether the revision has once had its initial pods."""
    active_for: float = math.inf
    """Seconds since the first pod was ready: a revision that has just started is not scaled to zero."""


@dataclass(frozen=True, slots=True)
class AutoscalerState:
    """What the autoscaler remembers of a revision between decisions; `AutoscalerState()` is that of a new revision."""

    panic_since: float | None = None
    panic_pods: int = 0
    idle_since: float | None = None
    recent: tuple[tuple[float, int], ...] = ()
    """Past answers within the scale-down delay, for it keeps the largest of them."""


@dataclass(frozen=True, slots=True)
class ScaleDecision:
    pods: int
    panicking: bool
    why: str


def decide(scaling: Scaling, observed: Observed, state: AutoscalerState) -> tuple[ScaleDecision, AutoscalerState]:
    """How many pods there should be now."""
    pods, state, why = _by_load(scaling, observed, state)
    pods, state = _delayed(scaling, observed, state, pods)
    low, high = _bounds(scaling, observed)
    bounded = max(pods, low)
    if high:
        bounded = min(bounded, max(high, 1) if observed.waiting else high)
    if bounded != pods:
        why = f"{why}, within {low} to {high or '∞'}"
    bounded, state, kept = _last_pod(scaling, observed, state, bounded)
    return ScaleDecision(bounded, state.panic_since is not None, kept or why), state


def _by_load(scaling: Scaling, observed: Observed, state: AutoscalerState) -> tuple[int, AutoscalerState, str]:
    if observed.stable is None or observed.panic is None:
        pods = max(observed.ready, 1 if observed.waiting else 0)
        return pods, state, "nothing was reported yet"
    ready = max(1, observed.ready)
    most = math.ceil(scaling.up_rate * ready)
    least = math.floor(ready / scaling.down_rate) if observed.reachable else 0
    by_stable, by_panic = (math.ceil(value / scaling.goal) for value in (observed.stable, observed.panic))
    stable, panic = (_activated(scaling, raw, min(max(raw, least), most)) for raw in (by_stable, by_panic))
    over = by_panic / ready >= scaling.panic_threshold
    if over:
        state = replace(state, panic_since=observed.now)
    elif state.panic_since is not None and state.panic_since + scaling.window < observed.now:
        state = replace(state, panic_since=None, panic_pods=0)
    if state.panic_since is None:
        return stable, state, f"{observed.stable:.1f} over {scaling.window:.0f} s, {scaling.goal:g} a pod"
    state = replace(state, panic_pods=max(state.panic_pods, stable, panic))
    return state.panic_pods, state, f"sudden load: {observed.panic:.1f} over {scaling.panic_window:.0f} s"


def _activated(scaling: Scaling, raw: int, pods: int) -> int:
    """A revision that is needed at all gets its activation scale."""
    return max(pods, scaling.activation_scale) if raw > 0 and scaling.activation_scale > 1 else pods


def _delayed(scaling: Scaling, observed: Observed, state: AutoscalerState, pods: int) -> tuple[int, AutoscalerState]:
    if not scaling.scale_down_delay or not observed.reachable:
        return pods, state
    since = observed.now - scaling.scale_down_delay
    recent = (*(entry for entry in state.recent if entry[0] > since), (observed.now, pods))
    return max(count for _, count in recent), replace(state, recent=recent)


def _bounds(scaling: Scaling, observed: Observed) -> tuple[int, int]:
    low = scaling.min_scale if observed.reachable else 0
    if not observed.started:
        low = max(low, scaling.initial_scale)
    if observed.waiting:
        low = max(low, scaling.activation_scale, 1)
    return low, scaling.max_scale


def _last_pod(
    scaling: Scaling, observed: Observed, state: AutoscalerState, pods: int
) -> tuple[int, AutoscalerState, str]:
    """Zero is an answer only after nothing else was for long enough."""
    if pods > 0:
        return pods, replace(state, idle_since=None), ""
    if not scaling.zero and observed.reachable:
        return 1, state, "scaling to zero is switched off"
    if observed.ready == 0:
        return 0, state, ""
    if observed.reachable and observed.active_for < scaling.window:
        return 1, replace(state, idle_since=None), f"awake for {observed.active_for:.0f} of {scaling.window:.0f} s"
    since = state.idle_since if state.idle_since is not None else observed.now
    state = replace(state, idle_since=since)
    patience = max(scaling.grace, scaling.retention) if observed.reachable else 0.0
    if observed.now - since < patience:
        return 1, state, f"idle for {observed.now - since:.0f} of {patience:.0f} s"
    return 0, state, ""
