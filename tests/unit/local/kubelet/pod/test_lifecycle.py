"""What the kubelet does next, rule by rule: pods in, plans out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.kube.clock import rfc3339
from paddlecloud.local.apiserver.table.pods import summarize
from paddlecloud.local.kubelet.pod.lifecycle import PodEnd, Start, backoff_delay, decide, streak_after
from paddlecloud.local.kubelet.pod.pod_state import ContainerRun, Observed, Waiting
from paddlecloud.local.kubelet.pod.status import build_status

NOW = 1_700_000_000.0


def make_pod(*, policy: str = "Always", init: Any = (), containers: Any = ("main",), **spec: Any) -> dict[str, Any]:
    def container(item: Any) -> dict[str, Any]:
        return {"name": item} if isinstance(item, str) else dict(item)

    return {
        "metadata": {"name": "p", "namespace": "d", "uid": "u"},
        "spec": {
            "restartPolicy": policy,
            "initContainers": [container(item) for item in init],
            "containers": [container(item) for item in containers],
            **spec,
        },
        "status": {"phase": "Pending"},
    }


def running(attempt: int = 0, *, since: float = 5.0) -> ContainerRun:
    return ContainerRun(attempt, "running", NOW - since, started=NOW - since)


def ended(code: int = 0, *, attempt: int = 0, streak: int = 0, ago: float = 0.0, lasted: float = 1.0) -> ContainerRun:
    return ContainerRun(
        attempt,
        "exited",
        NOW - ago - lasted,
        started=NOW - ago - lasted,
        finished=NOW - ago,
        exit_code=code,
        streak=streak,
    )


def starts(pod: dict[str, Any], **runs: ContainerRun) -> list[Start]:
    return decide(pod, Observed(runs=runs), NOW).start


SIDECAR = {"name": "side", "restartPolicy": "Always"}


DEBUG = {"ephemeralContainers": [{"name": "debug"}]}


@pytest.mark.parametrize("policy", ["Always", "OnFailure", "Never"])
def test_an_ephemeral_container_runs_once_beside_the_others(policy: str) -> None:
    pod = make_pod(policy=policy, **DEBUG)
    assert starts(pod, main=running()) == [Start("debug", 0, 0)]
    assert starts(pod, main=running(), debug=running()) == []
    assert starts(pod, main=running(), debug=ended(1)) == []
    assert starts(make_pod(init=("first",), **DEBUG), first=running()) == [Start("debug", 0, 0)]


def test_a_pod_does_not_wait_for_ephemeral_containers_and_takes_them_along() -> None:
    pod = make_pod(policy="Never", **DEBUG)
    plan = decide(pod, Observed(runs={"main": ended(), "debug": running()}), NOW)
    assert ([stop.name for stop in plan.stop], plan.done, plan.outcome) == (["debug"], False, None)
    plan = decide(pod, Observed(runs={"main": ended(), "debug": ended(137)}), NOW)
    assert (plan.done, plan.outcome) == (True, PodEnd("Succeeded"))


def test_the_status_lists_ephemeral_containers_apart_and_none_makes_a_pod_unready() -> None:
    pod, observed = make_pod(**DEBUG), Observed(runs={"main": running(), "debug": ended(3)})
    status = build_status(pod, observed, decide(pod, observed, NOW), NOW)
    (debug,) = status["ephemeralContainerStatuses"]
    assert (debug["name"], debug["state"]["terminated"]["exitCode"]) == ("debug", 3)
    assert [entry["name"] for entry in status["containerStatuses"]] == ["main"]
    assert {condition["type"]: condition["status"] for condition in status["conditions"]}["Ready"] == "True"


def test_all_main_containers_of_a_new_pod_start_together() -> None:
    assert starts(make_pod(containers=("a", "b"))) == [Start("a", 0, 0), Start("b", 0, 0)]


def test_init_containers_run_one_after_the_other_before_the_rest() -> None:
    pod = make_pod(init=("one", "two"))
    assert starts(pod) == [Start("one", 0, 0)]
    assert starts(pod, one=running()) == []
    assert starts(pod, one=ended(0)) == [Start("two", 0, 0)]
    assert starts(pod, one=ended(0), two=ended(0)) == [Start("main", 0, 0)]


def test_a_sidecar_starts_before_and_runs_beside_what_follows() -> None:
    pod = make_pod(init=(SIDECAR, "after"))
    assert starts(pod) == [Start("side", 0, 0)]
    assert starts(pod, side=running()) == [Start("after", 0, 0)]
    assert starts(pod, side=running(), after=ended(0)) == [Start("main", 0, 0)]


def test_a_sidecar_whose_startup_probe_has_not_passed_holds_the_rest_back() -> None:
    pod = make_pod(init=(SIDECAR,))
    assert decide(pod, Observed(runs={"side": running()}, started={"side": False}), NOW).start == []


def test_a_sidecar_that_ends_is_restarted_without_disturbing_the_main_container() -> None:
    pod = make_pod(init=(SIDECAR,), policy="Never")
    assert starts(pod, side=ended(0), main=running()) == [Start("side", 1, 1)]


@pytest.mark.parametrize(
    ("policy", "code", "restarts"),
    [
        ("Always", 0, True),
        ("Always", 1, True),
        ("OnFailure", 0, False),
        ("OnFailure", 1, True),
        ("Never", 0, False),
        ("Never", 1, False),
    ],
)
def test_the_restart_policy_says_what_happens_after_an_end(policy: str, code: int, restarts: bool) -> None:
    plan = decide(make_pod(policy=policy), Observed(runs={"main": ended(code)}), NOW)
    assert bool(plan.start) == restarts
    assert (plan.outcome is None) == restarts
    if not restarts:
        assert plan.outcome == PodEnd("Succeeded" if code == 0 else "Failed")
        assert plan.done


@pytest.mark.parametrize(
    ("streak", "delay"), [(1, 0), (2, 10), (3, 20), (4, 40), (5, 80), (6, 160), (7, 300), (50, 300)]
)
def test_back_off_doubles_from_ten_seconds_to_five_minutes(streak: int, delay: float) -> None:
    assert backoff_delay(streak) == delay


def test_the_first_restart_is_immediate_and_the_next_waits_as_crash_loop() -> None:
    pod = make_pod()
    assert starts(pod, main=ended(1, streak=0)) == [Start("main", 1, 1)]
    plan = decide(pod, Observed(runs={"main": ended(1, attempt=1, streak=1, ago=4)}), NOW)
    assert plan.start == []
    assert plan.waiting["main"] == Waiting("CrashLoopBackOff", "back-off 10s restarting failed container=main")
    assert plan.requeue_at == NOW - 4 + 10
    later = decide(pod, Observed(runs={"main": ended(1, attempt=1, streak=1, ago=10)}), NOW)
    assert later.start == [Start("main", 2, 2)]


def test_a_long_run_forgives_earlier_failures() -> None:
    assert streak_after(ended(1, streak=6, lasted=599)) == 7
    assert streak_after(ended(1, streak=6, lasted=600)) == 1
    assert streak_after(ended(1, streak=1)._replace(reason="NodeShutdown")) == 1, "a planned stop delays no restart"


def test_a_failed_init_container_fails_a_pod_that_must_not_restart() -> None:
    plan = decide(make_pod(init=("one",), policy="Never"), Observed(runs={"one": ended(2)}), NOW)
    assert plan.outcome == PodEnd("Failed")
    assert plan.start == []


def test_a_failed_init_container_is_tried_again_otherwise() -> None:
    for policy in ("Always", "OnFailure"):
        assert starts(make_pod(init=("one",), policy=policy), one=ended(2)) == [Start("one", 1, 1)]


def test_init_containers_do_not_run_again_once_the_main_ones_began() -> None:
    """Their record may be lost with a shim; what they prepared is not."""
    assert starts(make_pod(init=("one",)), main=ended(1)) == [Start("main", 1, 1)]


def test_sidecars_are_stopped_after_the_main_containers_ended_and_then_the_pod_is_over() -> None:
    pod = make_pod(
        init=({"name": "s1", "restartPolicy": "Always"}, {"name": "s2", "restartPolicy": "Always"}), policy="Never"
    )
    plan = decide(pod, Observed(runs={"s1": running(), "s2": running(), "main": ended(0)}), NOW)
    assert [stop.name for stop in plan.stop] == ["s2"]
    assert plan.outcome is None
    plan = decide(pod, Observed(runs={"s1": running(), "s2": ended(0), "main": ended(0)}), NOW)
    assert [stop.name for stop in plan.stop] == ["s1"]
    plan = decide(pod, Observed(runs={"s1": ended(143), "s2": ended(0), "main": ended(0)}), NOW)
    assert plan.outcome == PodEnd("Succeeded")
    assert plan.done
    assert plan.start == []


def test_a_deadline_stops_everything_and_says_why() -> None:
    pod = make_pod(activeDeadlineSeconds=60)
    before = decide(pod, Observed(runs={"main": running()}, start_time=NOW - 59), NOW)
    assert (before.stop, before.requeue_at) == ([], NOW + 1)
    after = decide(pod, Observed(runs={"main": running()}, start_time=NOW - 60), NOW)
    assert [stop.name for stop in after.stop] == ["main"]
    assert after.outcome is not None
    assert after.outcome.reason == "DeadlineExceeded"


@pytest.mark.parametrize(
    ("code", "reason", "before", "shown"),
    [
        (143, "Error", "", "Ended"),
        (1, "Error", "", "Ended"),
        (0, "Completed", "", "Completed"),
        (137, "OOMKilled", "", "OOMKilled"),
        (1, "Error", "Error", "Error"),
    ],
    ids=["signal", "handled badly", "handled", "out of memory", "failed before"],
)
def test_a_container_that_the_controller_ended_is_shown_as_ended(
    code: int, reason: str, before: str, shown: str
) -> None:
    pod = make_pod(policy="Never", activeDeadlineSeconds=1)
    pod["metadata"]["annotations"] = {"paddlepaddle.org/ended": "on purpose: its job is Completed"}
    if before:
        pod["status"]["containerStatuses"] = [{"name": "main", "state": {"terminated": {"reason": before}}}]
    observed = Observed(runs={"main": ended(code)._replace(reason=reason)}, start_time=NOW - 60)
    for _ in range(2):  # as it is published, and as it is once it was
        pod["status"] = build_status(pod, observed, decide(pod, observed, NOW), NOW)
        (container,) = pod["status"]["containerStatuses"]
        assert pod["status"]["phase"] == "Failed"
        assert container["state"]["terminated"]["exitCode"] == code
        assert summarize(pod).reason == shown, "the STATUS that kubectl prints"


@pytest.mark.parametrize(
    ("waited", "shown"),
    [
        ("ErrImagePull", "ErrImagePull"),
        ("ContainerCreating", "ContainerStatusUnknown"),
        (None, "ContainerStatusUnknown"),
    ],
)
def test_a_container_that_waited_when_its_pod_ended_is_shown_as_terminated(waited: str | None, shown: str) -> None:
    pod = make_pod(activeDeadlineSeconds=60)
    if waited:
        before = {"name": "main", "state": {"waiting": {"reason": waited, "message": "no recipe"}}}
        pod["status"]["containerStatuses"] = [before]
    observed = Observed(start_time=NOW - 60)
    for _ in range(2):  # as it is published, and as it is once it was
        pod["status"] = build_status(pod, observed, decide(pod, observed, NOW), NOW)
        (container,) = pod["status"]["containerStatuses"]
        assert pod["status"]["phase"] == "Failed"
        assert (container["state"]["terminated"]["reason"], container["state"]["terminated"]["exitCode"]) == (
            shown,
            137,
        )


def test_a_container_whose_turn_never_came_goes_on_waiting_when_an_init_container_failed() -> None:
    init = {"name": "first", "image": "i"}
    pod = make_pod(restartPolicy="Never", initContainers=[init])
    observed = Observed(runs={"first": ended(1)})
    status = build_status(pod, observed, decide(pod, observed, NOW), NOW)
    assert status["phase"] == "Failed"
    assert status["containerStatuses"][0]["state"] == {"waiting": {"reason": "PodInitializing"}}


def deleted(pod: dict[str, Any], *, grace: int = 30) -> dict[str, Any]:
    pod["metadata"].update(deletionTimestamp=rfc3339(NOW + grace), deletionGracePeriodSeconds=grace)
    return pod


def test_deletion_stops_what_runs_with_its_grace_and_starts_nothing() -> None:
    plan = decide(deleted(make_pod(), grace=7), Observed(runs={"main": running()}), NOW)
    assert plan.start == []
    assert [(stop.name, stop.grace, stop.hook) for stop in plan.stop] == [("main", 7.0, True)]
    assert not plan.remove


def test_a_deleted_pod_goes_when_its_last_process_is_gone() -> None:
    plan = decide(deleted(make_pod()), Observed(runs={"main": ended(143)}), NOW)
    assert (plan.done, plan.remove) == (True, True)
    assert plan.outcome == PodEnd("Failed")


def test_a_pod_deleted_before_it_started_goes_at_once() -> None:
    assert decide(deleted(make_pod()), Observed(), NOW).remove


def test_deletion_without_grace_kills_without_a_hook() -> None:
    plan = decide(deleted(make_pod(), grace=0), Observed(runs={"main": running()}), NOW)
    assert [(stop.grace, stop.hook) for stop in plan.stop] == [(0.0, False)]


def test_a_published_end_is_final() -> None:
    pod = make_pod()
    pod["status"] = {"phase": "Failed", "reason": "Evicted", "message": "m"}
    plan = decide(pod, Observed(runs={"main": running()}), NOW)
    assert plan.start == []
    assert [stop.name for stop in plan.stop] == ["main"]
    assert plan.outcome == PodEnd("Failed", "Evicted", "m")


def test_an_unhealthy_container_is_stopped_with_the_grace_its_probe_names() -> None:
    pod = make_pod(terminationGracePeriodSeconds=20)
    unhealthy = Observed(runs={"main": running()}, unhealthy={"main": "probe failed"})
    for observed, grace in ((unhealthy, 20.0), (replace(unhealthy, probe_grace={"main": 3.0}), 3.0)):
        stops = decide(pod, observed, NOW).stop
        assert [(stop.name, stop.grace, stop.hook) for stop in stops] == [("main", grace, True)]


@given(st.floats(-1e6, 1e6))
def test_a_clock_that_jumps_never_makes_a_container_wait_longer(jump: float) -> None:
    plan = decide(make_pod(), Observed(runs={"main": ended(1, streak=1)}), NOW + jump)
    assert plan.start or (plan.requeue_at is not None and plan.requeue_at - (NOW + jump) <= 10)


def test_a_pod_that_took_too_much_has_a_second_to_end() -> None:
    pod = make_pod(terminationGracePeriodSeconds=600)
    stops = decide(pod, Observed(runs={"main": running()}, evicted="too much"), NOW).stop
    assert [stop.grace for stop in stops] == [1.0]


def test_a_blocked_container_waits_with_its_reason_and_holds_back_no_other() -> None:
    pod = make_pod(containers=("a", "b"))
    plan = decide(pod, Observed(blocked={"a": Waiting("ImagePullBackOff", "no recipe")}), NOW)
    assert [start.name for start in plan.start] == ["b"]
    assert plan.waiting == {"a": Waiting("ImagePullBackOff", "no recipe")}


runs = st.one_of(
    st.none(),
    st.builds(running, st.integers(0, 3)),
    st.builds(
        ended, st.sampled_from([0, 1, 137]), attempt=st.integers(0, 3), streak=st.integers(0, 3), ago=st.floats(0, 400)
    ),
)


@given(
    policy=st.sampled_from(["Always", "OnFailure", "Never"]),
    states=st.tuples(runs, runs, runs, runs),
    deleting=st.booleans(),
)
def test_no_plan_starts_what_runs_or_stops_what_ended(policy: str, states: Any, deleting: bool) -> None:
    pod = make_pod(policy=policy, init=("one", SIDECAR), containers=("a", "b"))
    if deleting:
        deleted(pod)
    observed = {name: run for name, run in zip(("one", "side", "a", "b"), states, strict=True) if run}
    plan = decide(pod, Observed(runs=observed), NOW)
    for start in plan.start:
        assert start.name not in observed or observed[start.name].ended
        assert start.attempt == (observed[start.name].attempt + 1 if start.name in observed else 0)
    for stop in plan.stop:
        assert not observed[stop.name].ended
    if plan.done:
        assert all(run.ended for run in observed.values())
    if deleting:
        assert not plan.start
    names = [start.name for start in plan.start]
    assert len(names) == len(set(names))
