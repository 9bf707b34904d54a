"""`pdc scale`, `pdc suspend` and `pdc resume`: what is patched, and what restarts by it."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from unit.cli.conftest import Pdc
from unit.cli.samples import make_job
from unit.cli.stub import Stub


def test_scale_patches_the_scale_subresource(stub: Stub, pdc: Pdc) -> None:
    stub.add({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}})
    assert pdc("scale", "deploy/web", "--replicas", "3").out == "deployment.apps/web scaled\n"
    path, _, body = stub.asked("PATCH")[0]
    assert path == "/apis/apps/v1/namespaces/default/deployments/web/scale"
    assert body == {"spec": {"replicas": 3}}


def running_job(stub: Stub, **status: Any) -> dict[str, Any]:
    job = make_job(stub)
    job["status"] |= {
        "startTime": "2026-01-01T00:00:00Z",
        "ps": {"refs": [{"name": "wide-ps-0"}]},
        "worker": {"refs": [{"name": f"wide-worker-{index}"} for index in range(2)]},
        **status,
    }
    return job


WIDE = "paddlejob.batch.paddlepaddle.org/wide"


RESTART = f"{WIDE}: it is not elastic: all its pods (wide-ps-0, wide-worker-0, wide-worker-1) restart; "


def test_given_a_running_job_that_is_not_elastic_then_scale_says_what_restarts(stub: Stub, pdc: Pdc) -> None:
    job = running_job(stub)
    result = pdc("scale", "wide", "--replicas", "3")
    assert (result.code, result.out) == (0, f"{WIDE} scaled\n")
    assert result.err == f"{RESTART}they report no checkpoint, so training begins anew unless the program loads one\n"
    job["status"]["checkpoint"] = {"path": "/ckpt/last", "step": 300}
    job["spec"]["worker"]["replicas"] = 2
    known = pdc("scale", "wide", "--replicas", "3").err
    assert known == f"{RESTART}training goes on from the last checkpoint reported (/ckpt/last, step 300)\n"


@pytest.mark.parametrize(
    ("spec", "status", "replicas"),
    [
        ({"elastic": 1}, {}, 3),
        ({"suspend": True}, {"phase": "Suspended"}, 3),
        ({}, {"phase": "Pending", "startTime": None}, 3),
        ({}, {}, 2),
    ],
    ids=["elastic", "suspended", "not started", "the same number"],
)
def test_given_nothing_that_restarts_then_scale_says_nothing_of_it(
    stub: Stub, pdc: Pdc, spec: dict[str, Any], status: dict[str, Any], replicas: int
) -> None:
    running_job(stub, **status)["spec"] |= spec
    result = pdc("scale", "wide", "--replicas", str(replicas))
    assert (result.code, result.err) == (0, "")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("flags", "answer", "code"), [([], "y\n", 0), ([], "n\n", 103), ([], "", 103), (["-y"], "", 0)]
)
def test_given_a_terminal_then_scale_asks_before_a_restart(
    stub: Stub, pdc: Pdc, monkeypatch: pytest.MonkeyPatch, flags: list[str], answer: str, code: int
) -> None:
    running_job(stub)
    screen = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", screen)
    assert pdc("scale", "wide", "--replicas", "3", *flags).code == code
    assert RESTART in screen.getvalue()
    assert (f"Scale {WIDE} to 3? [y/N]" in screen.getvalue()) == (not flags)
    assert len(stub.asked("PATCH")) == (1 if code == 0 else 0)


def test_given_a_file_with_another_number_then_apply_says_what_restarts(stub: Stub, pdc: Pdc, tmp_path: Path) -> None:
    job = running_job(stub)
    changed = {**job, "spec": {"worker": {"replicas": 3, "template": {}}}}
    del changed["status"]
    (tmp_path / "job.yaml").write_text(json.dumps(changed))
    assert RESTART in pdc("apply", "-f", str(tmp_path / "job.yaml")).err


def test_an_object_that_is_no_job_is_scaled_in_a_phase_that_would_be_the_end_of_a_job(stub: Stub, pdc: Pdc) -> None:
    stub.kinds.append(("example.com", "v1", "databases", "Database", True, []))
    stub.add(
        {"apiVersion": "example.com/v1", "kind": "Database", "metadata": {"name": "d"}, "status": {"phase": "Error"}}
    )
    result = pdc("scale", "databases/d", "--replicas", "3")
    assert (result.code, result.out) == (0, "database.example.com/d scaled\n")


@pytest.mark.parametrize(
    ("command", "subject", "patch", "says"),
    [
        ("suspend", "wide", {"spec": {"suspend": True}}, "suspended"),
        ("resume", "wide", {"spec": {"suspend": False}}, "resumed"),
        ("suspend", "job/plain", {"spec": {"suspend": True}}, "suspended"),
    ],
)
def test_suspend_and_resume(stub: Stub, pdc: Pdc, command: str, subject: str, patch: dict[str, Any], says: str) -> None:
    make_job(stub)["spec"]["suspend"] = command == "resume"
    stub.add({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "plain"}})
    result = pdc(command, subject)
    assert result.code == 0
    assert says in result.out
    assert stub.asked("PATCH")[0][2] == patch


@pytest.mark.parametrize(("command", "suspended"), [("suspend", True), ("resume", False), ("resume", None)])
def test_a_job_that_is_as_asked_for_is_unchanged(stub: Stub, pdc: Pdc, command: str, suspended: bool | None) -> None:
    make_job(stub)["spec"]["suspend"] = suspended
    result = pdc(command, "wide")
    assert (result.code, result.out) == (0, "paddlejob.batch.paddlepaddle.org/wide unchanged\n")
    assert stub.asked("PATCH") == []


def test_a_job_that_its_run_policy_suspends_is_resumed(stub: Stub, pdc: Pdc) -> None:
    make_job(stub, phase="Suspended")["spec"]["runPolicy"] = {"suspend": True}
    assert pdc("resume", "wide").out == "paddlejob.batch.paddlepaddle.org/wide resumed\n"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["suspend", "pod/x"], 2),
        (["retry", "job/x"], 2),
        (["suspend", "none"], 3),
        (["scale", "none", "--replicas", "1"], 3),
        (["scale", "deploy/none", "--replicas", "1"], 3),
        (["scale", "deploy/x", "--replicas", "-1"], 2),
        (["scale", "deploy/x"], 2),
    ],
)
def test_acts_that_cannot_be(stub: Stub, pdc: Pdc, arguments: list[str], code: int) -> None:
    assert pdc(*arguments).code == code


def test_given_a_service_then_scale_says_that_it_is_pinned_and_the_way_back(
    stub: Stub, pdc: Pdc, tmp_path: Path
) -> None:
    stub.kinds.append(("serving.paddlepaddle.org", "v1", "paddleservices", "PaddleService", True, ["pds"]))
    service = {"apiVersion": "serving.paddlepaddle.org/v1", "kind": "PaddleService", "metadata": {"name": "s"}}
    stub.add({**service, "spec": {"model": "digits:1", "replicas": 2}})
    result = pdc("scale", "pds/s", "--replicas", "2")
    assert result.out == "paddleservice.serving.paddlepaddle.org/s scaled\n"
    assert "pinned to 2 pods" in result.err
    assert "pdc scale pds/s --replicas 0" in result.err
    assert "follows its requests" in pdc("scale", "pds/s", "--replicas", "0").err
    for spec, said in (({"model": "digits:2"}, True), ({"model": "digits:2", "replicas": 2}, False)):
        (tmp_path / "s.json").write_text(json.dumps({**service, "spec": spec}))
        stub.add({**service, "spec": {"model": "digits:1", "replicas": 2}})
        applied = pdc("apply", "-f", str(tmp_path / "s.json"))
        assert (applied.code, "pdc scale pds/s --replicas 0" in applied.err) == (0, said)
