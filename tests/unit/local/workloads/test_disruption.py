"""Disruption budgets: what may be evicted now, and that the last disruption is given away once."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.kube.clock import rfc3339
from paddlecloud.kube.errors import TooManyRequests
from paddlecloud.kube.resource import Object
from paddlecloud.local.workloads.disruption import Observed, decide, selects, total_wanted
from paddlecloud.local.workloads.eviction import is_disruption, take

from .cluster import START, make


def budget(status: Object | None = None, **spec: Any) -> Object:
    obj = make("PodDisruptionBudget", "policy/v1", "web", {"selector": {"matchLabels": {"app": "web"}}, **spec})
    return {**obj, "status": status} if status else obj


def pod(name: str, *, ready: bool = True, phase: str = "Running", leaving: bool = False) -> Object:
    obj = make("Pod", "v1", name, {}, labels={"app": "web"})
    if leaving:
        obj["metadata"]["deletionTimestamp"] = rfc3339(START)
    conditions = [{"type": "Ready", "status": str(ready), "lastTransitionTime": rfc3339(START)}]
    return {**obj, "status": {"phase": phase, "conditions": conditions}}


def pods(ready: int, unready: int = 0) -> tuple[Object, ...]:
    return tuple(pod(f"p{n}", ready=n < ready) for n in range(ready + unready))


@pytest.mark.parametrize(
    ("spec", "ready", "unready", "wanted", "expected"),
    [  # expected: allowed, healthy, desired, expected pods
        ({"minAvailable": 2}, 3, 0, 3, (1, 3, 2, 3)),
        ({"minAvailable": 2}, 2, 1, 3, (0, 2, 2, 3)),
        ({"minAvailable": "50%"}, 4, 0, 4, (2, 4, 2, 4)),
        ({"minAvailable": "34%"}, 3, 0, 3, (1, 3, 2, 3)),
        ({"maxUnavailable": 1}, 3, 0, 3, (1, 3, 2, 3)),
        ({"maxUnavailable": 1}, 2, 0, 3, (0, 2, 2, 3)),
        ({"maxUnavailable": "100%"}, 3, 0, 3, (3, 3, 0, 3)),
        ({"minAvailable": 0}, 0, 0, 0, (0, 0, 0, 0)),
    ],
)
def test_what_is_allowed(spec: Object, ready: int, unready: int, wanted: int, expected: tuple[int, ...]) -> None:
    status = decide(budget(**spec), Observed(pods(ready, unready), wanted), START).status
    assert status is not None
    fields = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
    assert tuple(status[name] for name in fields) == expected
    assert status["conditions"][0]["reason"] == ("SufficientPods" if expected[0] else "InsufficientPods")


def test_a_pod_that_was_promisedis_disruption_as_gone_until_it_leaves_or_two_minutes_pass() -> None:
    promised = budget({"disruptedPods": {"p0": rfc3339(START)}}, minAvailable=1)
    plan = decide(promised, Observed(pods(2), 2), START + 10)
    assert plan.status is not None
    assert (plan.status["disruptionsAllowed"], plan.status["disruptedPods"]) == (0, {"p0": rfc3339(START)})
    assert plan.after == pytest.approx(111)
    gone = decide(promised, Observed((pod("p0", leaving=True), pod("p1")), 2), START + 10).status
    late = decide(promised, Observed(pods(2), 2), START + 121).status
    assert gone is not None
    assert late is not None
    assert "disruptedPods" not in gone
    assert (gone["disruptionsAllowed"], late["disruptionsAllowed"]) == (0, 1)


@pytest.mark.parametrize(("selector", "expected"), [(None, False), ({}, True), ({"matchLabels": {"app": "db"}}, False)])
def test_whom_a_budget_protects(selector: Object | None, expected: bool) -> None:
    assert selects(budget(selector=selector), pod("p")) is expected


def test_an_owner_wants_its_number_once() -> None:
    assert total_wanted([("deployment", 3), ("deployment", 3), ("job", None), ("job", None), ("pod", None)]) == 6


STATUS = {"observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1}


def test_a_disruption_istaken_and_the_next_one_refused_with_the_numbers() -> None:
    once = take(budget(dict(STATUS)), pod("p0"), START)
    assert once["status"]["disruptionsAllowed"] == 0
    assert once["status"]["disruptedPods"] == {"p0": rfc3339(START)}
    with pytest.raises(TooManyRequests, match="would violate the pod's disruption budget") as refused:
        take(once, pod("p1"), START)
    assert refused.value.details is not None
    assert "needs 1 healthy pods and has 2" in refused.value.details["causes"][0]["message"]


def test_a_budget_that_changed_is_not_trusted_before_it_was_counted() -> None:
    with pytest.raises(TooManyRequests) as refused:
        take(budget({**STATUS, "observedGeneration": 0}), pod("p0"), START)
    assert refused.value.details is not None
    assert "still being processed" in refused.value.details["causes"][0]["message"]


@pytest.mark.parametrize(
    ("case", "one", "policy", "healthy", "expected"),
    [
        ("a ready pod", pod("p"), None, 2, True),
        ("one that is over", pod("p", phase="Succeeded"), None, 2, False),
        ("one that has not begun", pod("p", phase="Pending"), None, 2, False),
        ("one that leaves", pod("p", leaving=True), None, 2, False),
        ("an unready one while enough are healthy", pod("p", ready=False), None, 2, False),
        ("an unready one while too few are healthy", pod("p", ready=False), None, 0, True),
        ("an unready one that may always go", pod("p", ready=False), "AlwaysAllow", 0, False),
    ],
)
def test_which_evictions_are_disruptions(
    case: str, one: Object, policy: str | None, healthy: int, expected: bool
) -> None:
    protected = budget({**STATUS, "currentHealthy": healthy}, unhealthyPodEvictionPolicy=policy)
    assert is_disruption(protected, one) is expected
