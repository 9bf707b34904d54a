"""Knative's pod autoscaler as a pure function: what was seen in two windows, and how many pods there should be.

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
class Seen:
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
    """Seconds since the first pod was ready: nobody is sent to sleep who has just got up."""


@dataclass(frozen=True, slots=True)
class Mood:
    """What the autoscaler remembers of a revision between decisions; `Mood()` is one it has just met."""

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


def decide(scaling: Scaling, seen: Seen, mood: Mood) -> tuple[ScaleDecision, Mood]:
    """How many pods there should be now."""
    pods, mood, why = _by_load(scaling, seen, mood)
    pods, mood = _delayed(scaling, seen, mood, pods)
    low, high = _bounds(scaling, seen)
    bounded = max(pods, low)
    if high:
        bounded = min(bounded, max(high, 1) if seen.waiting else high)
    if bounded != pods:
        why = f"{why}, within {low} to {high or '∞'}"
    bounded, mood, kept = _last_pod(scaling, seen, mood, bounded)
    return ScaleDecision(bounded, mood.panic_since is not None, kept or why), mood


def _by_load(scaling: Scaling, seen: Seen, mood: Mood) -> tuple[int, Mood, str]:
    if seen.stable is None or seen.panic is None:
        pods = max(seen.ready, 1 if seen.waiting else 0)
        return pods, mood, "nothing was reported yet"
    ready = max(1, seen.ready)
    most = math.ceil(scaling.up_rate * ready)
    least = math.floor(ready / scaling.down_rate) if seen.reachable else 0
    by_stable, by_panic = (math.ceil(value / scaling.goal) for value in (seen.stable, seen.panic))
    stable, panic = (_activated(scaling, raw, min(max(raw, least), most)) for raw in (by_stable, by_panic))
    over = by_panic / ready >= scaling.panic_threshold
    if over:
        mood = replace(mood, panic_since=seen.now)
    elif mood.panic_since is not None and mood.panic_since + scaling.window < seen.now:
        mood = replace(mood, panic_since=None, panic_pods=0)
    if mood.panic_since is None:
        return stable, mood, f"{seen.stable:.1f} over {scaling.window:.0f} s, {scaling.goal:g} a pod"
    mood = replace(mood, panic_pods=max(mood.panic_pods, stable, panic))
    return mood.panic_pods, mood, f"sudden load: {seen.panic:.1f} over {scaling.panic_window:.0f} s"


def _activated(scaling: Scaling, raw: int, pods: int) -> int:
    """A revision that is needed at all gets its activation scale."""
    return max(pods, scaling.activation_scale) if raw > 0 and scaling.activation_scale > 1 else pods


def _delayed(scaling: Scaling, seen: Seen, mood: Mood, pods: int) -> tuple[int, Mood]:
    if not scaling.scale_down_delay or not seen.reachable:
        return pods, mood
    since = seen.now - scaling.scale_down_delay
    recent = (*(entry for entry in mood.recent if entry[0] > since), (seen.now, pods))
    return max(count for _, count in recent), replace(mood, recent=recent)


def _bounds(scaling: Scaling, seen: Seen) -> tuple[int, int]:
    low = scaling.min_scale if seen.reachable else 0
    if not seen.started:
        low = max(low, scaling.initial_scale)
    if seen.waiting:
        low = max(low, scaling.activation_scale, 1)
    return low, scaling.max_scale


def _last_pod(scaling: Scaling, seen: Seen, mood: Mood, pods: int) -> tuple[int, Mood, str]:
    """Zero is an answer only after nothing else was for long enough."""
    if pods > 0:
        return pods, replace(mood, idle_since=None), ""
    if not scaling.zero and seen.reachable:
        return 1, mood, "scaling to zero is switched off"
    if seen.ready == 0:
        return 0, mood, ""
    if seen.reachable and seen.active_for < scaling.window:
        return 1, replace(mood, idle_since=None), f"awake for {seen.active_for:.0f} of {scaling.window:.0f} s"
    since = mood.idle_since if mood.idle_since is not None else seen.now
    mood = replace(mood, idle_since=since)
    patience = max(scaling.grace, scaling.retention) if seen.reachable else 0.0
    if seen.now - since < patience:
        return 1, mood, f"idle for {seen.now - since:.0f} of {patience:.0f} s"
    return 0, mood, ""
