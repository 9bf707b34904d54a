"""`pdc wait`: goals, ends, and waits that cannot succeed."""

from __future__ import annotations

from typing import Any

import pytest

from unit.cli.conftest import Pdc
from unit.cli.samples import PENDING, READY, make_job, pod_with
from unit.cli.stub import Stub

ENOUGH = {0: "60s", 8: "1s", 124: "50ms"}
"""Time to wait, by how it ends: what is there is seen at once, however long that takes; the rest lasts as long."""


@pytest.mark.parametrize(
    ("goal", "status", "code"),
    [
        ("condition=Ready", READY, 0),
        ("condition=ready", READY, 0),
        ("condition=Ready=True", READY, 0),
        ("condition=Ready=False", READY, 124),
        ("condition=Initialized", READY, 124),
        ("condition=Ready", PENDING, 8),
        ("jsonpath={.status.phase}=Running", READY, 0),
        ("jsonpath=.status.phase=Running", READY, 0),
        ("jsonpath={.status.phase}=Pending", READY, 124),
        ("jsonpath={.status.podIP}", READY, 124),
        ("jsonpath={.status.phase}", READY, 0),
        ("create", READY, 0),
        ("delete", READY, 124),
    ],
)
def test_wait_on_what_is_there(stub: Stub, pdc: Pdc, goal: str, status: dict[str, Any], code: int) -> None:
    stub.add(pod_with(status))
    assert pdc("wait", "pod/p", f"--for={goal}", f"--timeout={ENOUGH[code]}").code == code


@pytest.mark.parametrize(
    ("goal", "right"),
    [("condition=Completed", 'did you mean "Succeeded"?'), ("condition=PodReady", 'did you mean "PodsReady"?')],
)
def test_a_condition_that_jobs_never_have_is_refused_of_a_finished_job_too(
    stub: Stub, pdc: Pdc, goal: str, right: str
) -> None:
    job = {"apiVersion": "batch.paddlepaddle.org/v1", "kind": "PaddleJob", "metadata": {"name": "train"}}
    stub.add({**job, "status": {"phase": "Completed"}})
    result = pdc("wait", "pdj/train", f"--for={goal}")
    assert right in result.err
    assert result.code == 2


def test_wait_sees_changes(stub: Stub, pdc: Pdc) -> None:
    stub.add(pod_with({"phase": "Pending"}))
    stub.watch_events = [{"type": "MODIFIED", "object": pod_with(READY)}]
    result = pdc("wait", "pod/p", "--for=condition=Ready", "--timeout=60s")
    assert (result.code, result.out) == (0, "pod/p condition met\n")


def test_what_is_waited_for_is_said_though_nothing_changes_any_more(stub: Stub, pdc: Pdc) -> None:
    waiting = {"reason": "ContainerCreating", "message": "the folder is not there"}
    containers = [{"name": "main", "state": {"waiting": waiting}}]
    stub.add(pod_with({"phase": "Pending"}))
    stub.watch_events = [
        {"type": "MODIFIED", "object": pod_with({"phase": "Pending", "containerStatuses": containers})}
    ]
    stub.endless_watches = True
    result = pdc("wait", "pod/p", "--for=condition=Ready", "--timeout=4s")
    assert result.code == 124
    assert "pod/p: container main waits: ContainerCreating: the folder is not there\n" in result.err


def test_wait_for_deletion(stub: Stub, pdc: Pdc) -> None:
    stub.add(pod_with(READY))
    stub.watch_events = [{"type": "DELETED", "object": pod_with(READY)}]
    assert pdc("wait", "pod/p", "--for=delete", "--timeout=60s").code == 0
    assert pdc("wait", "pod/never-was", "--for=delete", "--timeout=60s").code == 0


@pytest.mark.parametrize(
    ("phase", "timeout", "code"),
    [("Completed", "60s", 0), ("Failed", "60s", 100), ("Running", "0", 101), ("Running", "50ms", 124)],
)
def test_wait_for_the_end_of_a_job(stub: Stub, pdc: Pdc, phase: str, timeout: str, code: int) -> None:
    make_job(stub, phase)
    assert pdc("wait", "pdj/wide", "--for=finished", f"--timeout={timeout}").code == code


def test_a_job_whose_pods_find_no_node_is_exit_8(stub: Stub, pdc: Pdc) -> None:
    make_job(stub, "Pending", workers=1, servers=0)
    stub.objects[("pods", "default", "wide-worker-0")]["status"] = PENDING
    result = pdc("wait", "pdj/wide", "--for=finished", f"--timeout={ENOUGH[8]}")
    assert result.code == 8
    assert "wide-worker-0 is not scheduled: no GPU" in result.err


def test_a_job_deleted_while_waited_for_is_cancelled(stub: Stub, pdc: Pdc) -> None:
    job = make_job(stub)
    stub.watch_events = [{"type": "DELETED", "object": job}]
    assert pdc("wait", "pdj/wide", "--for=finished", "--timeout=60s").code == 103


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["pod/none", "--for=condition=Ready"], 3),
        (["pdj/none", "--for=finished"], 3),
        (["pods", "-l", "a=b", "--for=condition=Ready"], 3),
        (["pods", "--for=condition=Ready"], 2),
        (["pod/p", "--for=nonsense"], 2),
        (["pod/p", "--for=condition="], 2),
        (["pod/p"], 2),
        (["pod/p", "--for=create", "--timeout=soon"], 2),
    ],
)
def test_waits_that_cannot_succeed_end_at_once(stub: Stub, pdc: Pdc, arguments: list[str], code: int) -> None:
    assert pdc("wait", *arguments).code == code


def ended(kind: str, **status: Any) -> dict[str, Any]:
    versions = {"PaddleJob": "batch.paddlepaddle.org/v1", "SampleJob": "batch.paddlepaddle.org/v1alpha1"}
    version = versions.get(kind, "batch/v1" if kind == "Job" else "v1")
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "x", "generation": 2}, "status": status}


FAILED_JOB = {"conditions": [{"type": "Failed", "status": "True", "message": "BackoffLimitExceeded"}]}


@pytest.mark.parametrize(
    ("obj", "goal", "says"),
    [
        (ended("PaddleJob", phase="Failed", message="worker 0"), "jsonpath={.status.phase}=Completed", "failed"),
        (ended("PaddleJob", phase="Failed", message="worker 0"), "jsonpath=.status.phase=Completed", "worker 0"),
        (ended("PaddleJob", phase="Failed", message="worker 0"), "condition=Succeeded", "worker 0"),
        (ended("PaddleJob", phase="Failed", message="worker 0"), "condition=Running=True", "worker 0"),
        (ended("PaddleJob", phase="Completed"), "condition=Failed", "it has succeeded"),
        (ended("SampleJob", phase="Failed", message="no such set"), "jsonpath={.status.phase}=Succeeded", "no such"),
        (ended("Job", **FAILED_JOB), "condition=Complete", "BackoffLimitExceeded"),
        (ended("Pod", phase="Failed", reason="Evicted"), "condition=Ready", "Evicted"),
        (ended("Pod", phase="Succeeded"), "jsonpath={.status.phase}=Running", "it has succeeded"),
    ],
)
def test_a_wait_for_a_status_that_cannot_come_any_more_ends_at_once(
    stub: Stub, pdc: Pdc, obj: dict[str, Any], goal: str, says: str
) -> None:
    stub.add(obj)
    result = pdc("wait", f"{obj['kind'].lower()}/x", f"--for={goal}", "--timeout=60s")
    assert result.code == 100
    assert says in result.out + result.err


@pytest.mark.parametrize(
    ("change", "goal"),
    [
        ({}, "jsonpath={.metadata.labels.done}=yes"),
        ({}, "delete"),
        ({"metadata": {"name": "x", "generation": 3}}, "condition=Succeeded"),
        ({"metadata": {"name": "x", "annotations": {"paddlepaddle.org/retry-at": "now"}}}, "condition=Succeeded"),
        ({"status": {"phase": "Restarting"}}, "condition=Succeeded"),
    ],
    ids=["a label", "its deletion", "another spec", "another run", "it goes on"],
)
def test_a_wait_for_what_may_still_come_goes_on(stub: Stub, pdc: Pdc, change: dict[str, Any], goal: str) -> None:
    stub.add({**ended("PaddleJob", phase="Failed", observedGeneration=2), **change})
    assert pdc("wait", "paddlejob/x", f"--for={goal}", f"--timeout={ENOUGH[124]}").code == 124


def test_a_refusal_is_said_while_it_is_waited_for_though_nothing_changes_any_more(stub: Stub, pdc: Pdc) -> None:
    text = "the data of a deleted set is kept: pdc sampleset rm-data words"
    refused = [{"type": "Valid", "status": "False", "reason": "DataRetained", "message": text}]
    words = {"apiVersion": "batch.paddlepaddle.org/v1alpha1", "kind": "SampleSet", "metadata": {"name": "x"}}
    stub.add({**words, "status": {"conditions": refused}})
    result = pdc("wait", "sampleset/x", "--for=condition=Ready", "--timeout=0.3s")
    noted, late, *_ = result.err.splitlines()
    assert (result.code, text in noted, "after 0.3 s" in late) == (124, True, True), result.err
    assert "after 0.3 s" not in noted, "the reason comes with the time-out only"


def test_wait_on_all_and_for_programs(stub: Stub, pdc: Pdc) -> None:
    for name in ("a", "b"):
        stub.add({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "status": READY})
    report = pdc("wait", "pods", "--all", "--for=condition=Ready", "-o", "json").json()
    assert [item["object"] for item in report["items"]] == ["pod/a", "pod/b"]
    assert {item["state"] for item in report["items"]} == {"met"}
