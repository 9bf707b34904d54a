"""The autoscaler against Knative's published rules: worked examples, then whole days of simulated traffic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.local.knative.kpa import AutoscalerState, Observed, decide
from paddlecloud.local.knative.settings import Defaults, Scaling
from paddlecloud.local.knative.windows import Window

STOCK = Scaling.of({}, 0, Defaults())


def scaling(**annotations: str) -> Scaling:
    named = {f"autoscaling.knative.dev/{name.replace('_', '-')}": value for name, value in annotations.items()}
    return Scaling.of(named, 0, Defaults())


def observed(load: float, ready: int, *, panic: float | None = None, now: float = 1000.0, **more: object) -> Observed:
    return replace(Observed(now=now, ready=ready, stable=load, panic=load if panic is None else panic), **more)


def test_the_stock_values_are_those_of_knative() -> None:
    assert (STOCK.target, STOCK.utilization, STOCK.goal) == (100, 0.7, 70)
    assert (STOCK.window, STOCK.panic_window, STOCK.panic_threshold) == (60, 6, 2)
    assert (STOCK.up_rate, STOCK.down_rate, STOCK.grace, STOCK.initial_scale) == (1000, 2, 30, 1)
    assert scaling(metric="rps").target == 200


# (settings, load over the stable window, over the panic window, pods that are ready) → pods
EXAMPLES = [
    ("a pod for every 70 requests in progress", STOCK, 70, 70, 1, 1),
    ("and one for the next", STOCK, 71, 71, 1, 2),
    ("twice as many make panic", STOCK, 71, 141, 1, 3),
    ("but only from the threshold on", STOCK, 71, 140, 2, 2),
    ("at most half of the pods go at once", STOCK, 70, 70, 10, 5),
    ("three become one", STOCK, 1, 1, 3, 1),
    ("a target of its own", scaling(target="10"), 21, 21, 3, 3),
    ("a utilisation of its own", scaling(target="10", target_utilization_percentage="100"), 20, 20, 2, 2),
    ("requests per second", scaling(metric="rps", target="100"), 350, 350, 5, 5),
    ("never fewer than the least", scaling(min_scale="3"), 0, 0, 3, 3),
    ("never more than the most", scaling(max_scale="4"), 10_000, 10_000, 2, 4),
    ("a service that is needed gets its activation scale", scaling(activation_scale="3"), 1, 1, 1, 3),
]


@pytest.mark.parametrize(
    ("name", "settings", "stable", "panic", "ready", "pods"), EXAMPLES, ids=[e[0] for e in EXAMPLES]
)
def test_worked_examples(name: str, settings: Scaling, stable: float, panic: float, ready: int, pods: int) -> None:
    answer, _ = decide(settings, observed(stable, ready, panic=panic), AutoscalerState())
    assert answer.pods == pods


def test_panic_only_ever_adds_pods_and_ends_a_stable_window_after_its_last_cause() -> None:
    answer, state = decide(STOCK, observed(80, 1, panic=700, now=0), AutoscalerState())
    assert (answer.pods, answer.panicking) == (10, True)
    answer, state = decide(STOCK, observed(80, 10, panic=80, now=30), state)
    assert (answer.pods, answer.panicking) == (10, True), "less load during panic takes nothing away"
    answer, state = decide(STOCK, observed(80, 10, panic=80, now=60), state)
    assert answer.panicking
    answer, state = decide(STOCK, observed(80, 10, panic=80, now=61), state)
    assert (answer.pods, answer.panicking) == (5, False)


def test_the_last_pod_goes_after_window_and_grace() -> None:
    _, state = decide(STOCK, observed(0, 1, now=0), AutoscalerState())
    assert decide(STOCK, observed(0, 1, now=29), state)[0].pods == 1
    assert decide(STOCK, observed(0, 1, now=30), state)[0].pods == 0


def test_a_request_during_the_grace_period_begins_it_anew() -> None:
    _, state = decide(STOCK, observed(0, 1, now=0), AutoscalerState())
    answer, state = decide(STOCK, observed(0.1, 1, now=20), state)
    assert answer.pods == 1
    _, state = decide(STOCK, observed(0, 1, now=25), state)
    assert decide(STOCK, observed(0, 1, now=40), state)[0].pods == 1
    assert decide(STOCK, observed(0, 1, now=55), state)[0].pods == 0


def test_a_pod_that_has_just_got_up_is_not_sent_to_sleep() -> None:
    idle = AutoscalerState(idle_since=0.0)
    assert decide(STOCK, observed(0, 1, now=100, active_for=59), idle)[0].pods == 1
    assert decide(STOCK, observed(0, 1, now=100, active_for=60), idle)[0].pods == 0


def test_a_longer_retention_keeps_the_last_pod() -> None:
    settings = scaling(scale_to_zero_pod_retention_period="5m")
    _, state = decide(settings, observed(0, 1, now=0), AutoscalerState())
    assert decide(settings, observed(0, 1, now=299), state)[0].pods == 1
    assert decide(settings, observed(0, 1, now=300), state)[0].pods == 0


def test_scaling_to_zero_can_be_switched_off() -> None:
    settings = Scaling.of({}, 0, Defaults.of({"data": {"enable-scale-to-zero": "false"}}))
    assert decide(settings, observed(0, 1, now=1e6), AutoscalerState(idle_since=0.0))[0].pods == 1


def test_waiting_requests_wake_a_sleeping_revision_at_once() -> None:
    asleep = Observed(now=0, ready=0, stable=0.0, panic=0.0, waiting=True)
    assert decide(STOCK, asleep, AutoscalerState())[0].pods == 1
    assert decide(scaling(activation_scale="3"), asleep, AutoscalerState())[0].pods == 3
    never_reported = replace(asleep, stable=None, panic=None)
    assert decide(STOCK, never_reported, AutoscalerState())[0].pods == 1


def test_a_new_revision_has_its_initial_pods_until_it_was_ready_once() -> None:
    settings = scaling(initial_scale="4")
    assert decide(settings, observed(0, 2, started=False), AutoscalerState())[0].pods == 4
    assert decide(settings, observed(0, 4, started=True), AutoscalerState())[0].pods < 4


def test_a_revision_nobody_can_reach_needs_no_pods() -> None:
    settings = scaling(min_scale="5")
    assert decide(settings, observed(0, 5, reachable=True), AutoscalerState())[0].pods == 5
    assert decide(settings, observed(0, 5, reachable=False), AutoscalerState())[0].pods == 0


def test_a_scale_down_delay_keeps_the_largest_of_the_last_answers() -> None:
    settings = scaling(scale_down_delay="30s")
    _, state = decide(settings, observed(350, 5, now=0), AutoscalerState())
    assert decide(settings, observed(70, 5, now=29), state)[0].pods == 5
    assert decide(settings, observed(70, 5, now=31), state)[0].pods == 2


def test_a_concurrency_limit_is_the_target_where_none_is_given_and_its_ceiling_where_one_is() -> None:
    assert Scaling.of({}, 10, Defaults()).target == 10
    assert Scaling.of({"autoscaling.knative.dev/target": "50"}, 10, Defaults()).target == 10


def test_annotations_are_read_in_both_spellings() -> None:
    for spelling in ("min-scale", "minScale"):
        assert Scaling.of({f"autoscaling.knative.dev/{spelling}": "2"}, 0, Defaults()).min_scale == 2


def simulate(settings: Scaling, load: Callable[[int], float], seconds: int) -> list[int]:
    """Pods second by second: a report a second, a decision every two, a pod ready two seconds after it is wanted."""
    window, memory = Window(settings.window), AutoscalerState()
    asked, history = [1, 1, 1], []
    for now in range(seconds):
        ready = asked[-3] if asked[-3] < asked[-1] else asked[-1]
        window.add(now, load(now))
        history.append(ready)
        if now % 2 == 0:
            state = Observed(
                now=float(now),
                ready=ready,
                stable=window.average(now, settings.window),
                panic=window.average(now, settings.panic_window),
                waiting=ready == 0 and load(now) > 0,
            )
            answer, memory = decide(settings, state, memory)
            asked.append(answer.pods)
        else:
            asked.append(asked[-1])
    return history


def test_steady_traffic_keeps_steady_pods() -> None:
    history = simulate(STOCK, lambda now: 200.0, 600)
    assert set(history[60:]) == {3}


def test_a_burst_is_met_within_seconds_and_forgotten_after_the_window() -> None:
    history = simulate(STOCK, lambda now: 1000.0 if 100 <= now < 160 else 10.0, 500)
    assert max(history[:100]) == 1
    assert history[112] >= 10, "the panic window is six seconds"
    assert history[-1] == 1


def test_silence_puts_to_sleep_and_a_request_wakes() -> None:
    history = simulate(STOCK, lambda now: 5.0 if now < 60 or now >= 300 else 0.0, 330)
    assert 0 in history[150:300]
    assert history[149] == 1, "sixty seconds of window and thirty of grace"
    assert history[305] == 1


@given(
    st.lists(st.floats(0, 500), min_size=5, max_size=120),
    st.integers(0, 3),
    st.integers(0, 6),
)
def test_whatever_the_traffic_the_bounds_hold(loads: list[float], low: int, high: int) -> None:
    settings = scaling(min_scale=str(low), max_scale=str(max(high, low)) if high else "0")
    history = simulate(settings, lambda now: loads[now], len(loads))
    for pods in history[4:]:
        assert pods >= low
        assert not settings.max_scale or pods <= max(settings.max_scale, 1)


def test_a_window_averages_what_it_has_and_counts_silence_as_zero() -> None:
    window = Window(60)
    assert window.average(10, 60) is None
    window.add(10, 60.0)
    assert window.average(10, 60) == 60
    assert window.average(11, 60) == 60, "a second that is not over counts once somebody has reported in it"
    assert window.average(12, 60) == 30
    assert window.average(200, 60) == 0
