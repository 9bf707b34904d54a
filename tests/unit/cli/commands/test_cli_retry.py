"""`pdc retry`: the annotation that asks for another run, and what is said until the controller has taken it up."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.api.names import RETRY_AT
from paddlecloud.cli.commands import retry
from paddlecloud.kube.times import parse_rfc3339
from paddlecloud.sdk import watching
from paddlecloud.sdk.outcome import retry_time
from unit.cli.conftest import Pdc
from unit.cli.samples import make_job
from unit.cli.stub import Stub

KEY = ("paddlejobs", "default", "wide")


def asked_for(job: dict[str, Any]) -> str:
    return str((job["metadata"].get("annotations") or {}).get(RETRY_AT) or "")


@pytest.fixture
def failed(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A job that has ended, and a controller that takes requests up."""
    monkeypatch.setattr(watching, "ROUND_SECONDS", 0.01)
    job = make_job(stub, phase="Failed", workers=1, servers=0)

    def controller(method: str, _: str) -> None:
        for one in stub.objects.values():
            if method == "GET" and asked_for(one):
                one["status"] = {"phase": "Restarting", "retriedAt": asked_for(one)}

    stub.before = controller
    return job


def test_another_run_is_requested_of_this_very_job(stub: Stub, pdc: Pdc, failed: dict[str, Any]) -> None:
    result = pdc("retry", "wide")
    assert (result.code, result.out) == (0, "paddlejob.batch.paddlepaddle.org/wide runs again\n")
    [(_, _, patch)] = stub.asked("PATCH")
    assert patch["metadata"]["uid"] == failed["metadata"]["uid"], "another job of that name was not meant"
    assert stub.objects[KEY]["spec"] == failed["spec"]
    assert (stub.asked("DELETE"), stub.asked("POST")) == ([], [])


def test_the_request_is_later_than_the_end_whatever_this_machines_clock_says() -> None:
    job = {"status": {"completionTime": "2030-01-01T00:00:00Z"}}
    end = parse_rfc3339("2030-01-01T00:00:00Z")
    assert parse_rfc3339(retry_time(job, end - 3600)) > end
    assert parse_rfc3339(retry_time(job, end + 3600)) == pytest.approx(end + 3600)


def test_a_request_that_nobody_takes_up_is_kept_and_said(
    stub: Stub, pdc: Pdc, failed: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "TAKEN_UP_SECONDS", 0.05)
    stub.before = lambda method, path: None
    result = pdc("retry", "wide")
    assert result.code == 124
    assert "the request is kept" in result.err
    assert asked_for(stub.objects[KEY])


def test_a_job_that_was_deleted_meanwhile_is_not_waited_for(stub: Stub, pdc: Pdc, failed: dict[str, Any]) -> None:
    def deleted(method: str, _: str) -> None:
        if method == "GET" and stub.asked("PATCH"):
            stub.objects.pop(KEY, None)

    stub.before = deleted
    result = pdc("retry", "wide")
    assert result.code == 4
    assert "was deleted before it ran again" in result.err


@pytest.mark.parametrize("phase", ["Running", "Pending", "Suspended", "Restarting"])
def test_a_job_that_has_not_ended_is_left_alone(stub: Stub, pdc: Pdc, failed: dict[str, Any], phase: str) -> None:
    failed["status"]["phase"] = phase
    result = pdc("retry", "wide")
    assert result.code == 4
    assert phase in result.err
    assert stub.asked("PATCH") == []


def test_one_that_has_not_ended_spares_the_others(stub: Stub, pdc: Pdc, failed: dict[str, Any]) -> None:
    stub.add({**failed, "metadata": {"name": "other"}, "status": {"phase": "Running"}})
    assert pdc("retry", "wide", "other").code == 4
    assert stub.asked("PATCH") == []


def test_a_job_whose_spec_was_refused_needs_another_spec(stub: Stub, pdc: Pdc, failed: dict[str, Any]) -> None:
    failed["status"] |= {"reason": "InvalidSpec", "message": "worker: no image"}
    result = pdc("retry", "wide")
    assert result.code == 5
    assert "worker: no image" in result.err
    assert stub.asked("PATCH") == []


@pytest.mark.parametrize(("phase", "code"), [("Failed", 0), ("Succeeded", 4)])
def test_a_samplejob_runs_again_after_a_failure_only(
    stub: Stub, pdc: Pdc, failed: dict[str, Any], phase: str, code: int
) -> None:
    job = {"apiVersion": "batch.paddlepaddle.org/v1alpha1", "kind": "SampleJob", "metadata": {"name": "warm"}}
    stub.add({**job, "status": {"phase": phase}})
    assert pdc("retry", "samplejob/warm").code == code
    assert len(stub.asked("PATCH")) == (1 if code == 0 else 0)


@pytest.mark.parametrize(("phase", "code"), [("SyncFailed", 0), ("Syncing", 4), ("Ready", 4)])
def test_the_failed_import_of_a_set_is_tried_again(
    stub: Stub, pdc: Pdc, failed: dict[str, Any], phase: str, code: int
) -> None:
    body = {"apiVersion": "batch.paddlepaddle.org/v1alpha1", "kind": "SampleSet", "metadata": {"name": "words"}}
    stub.add({**body, "status": {"phase": phase}})
    result = pdc("retry", "sampleset/words")
    assert (result.code, len(stub.asked("PATCH"))) == (code, 1 if code == 0 else 0), result.err
    if code == 0:
        assert result.out == "sampleset.batch.paddlepaddle.org/words is tried again\n"
        assert "--for=condition=Ready" in result.err


SERVICES = {
    "its newest revision fails": ({"conditions": [{"type": "Ready", "status": "False", "reason": "CrashLoop"}]}, 0),
    "its canary fails": (
        {"conditions": [{"type": "Ready", "status": "True"}, {"type": "CanaryEndpointReady", "status": "False"}]},
        0,
    ),
    "its roll-out went back": (
        {
            "conditions": [{"type": "Ready", "status": "True", "reason": "WentBack"}],
            "default": {"name": "old", "latest": "new"},
            "rollout": {"phase": "WentBack"},
        },
        0,
    ),
    "all is well": ({"conditions": [{"type": "Ready", "status": "True"}]}, 4),
    "its spec is refused": ({"conditions": [{"type": "Ready", "status": "False", "reason": "InvalidSpec"}]}, 5),
}


@pytest.mark.parametrize("state", SERVICES)
def test_a_service_is_tried_again_where_something_of_it_does_not_serve(
    stub: Stub, pdc: Pdc, failed: dict[str, Any], state: str
) -> None:
    stub.kinds.append(("serving.paddlepaddle.org", "v1", "paddleservices", "PaddleService", True, ["pds"]))
    status, code = SERVICES[state]
    body = {"apiVersion": "serving.paddlepaddle.org/v1", "kind": "PaddleService", "metadata": {"name": "m"}}
    stub.add({**body, "status": status})
    result = pdc("retry", "pds/m")
    assert (result.code, len(stub.asked("PATCH"))) == (code, 1 if code == 0 else 0), result.err
    if code == 0:
        assert result.out == "paddleservice.serving.paddlepaddle.org/m is tried again\n"
        assert "pdc wait paddleservice" in result.err


def test_other_kinds_cannot_be_retried(stub: Stub, pdc: Pdc) -> None:
    stub.add({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}})
    assert pdc("retry", "pod/p").code == 2
    assert pdc("retry", "nothing").code == 3
