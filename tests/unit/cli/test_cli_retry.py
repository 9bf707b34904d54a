"""`pdc retry`: the same job as a new object, and nothing lost when something comes between."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from paddlecloud.sdk import watching
from unit.cli.conftest import Pdc
from unit.cli.samples import make_job
from unit.cli.stub import Stub

KEY = ("paddlejobs", "default", "wide")
PATH = "/apis/batch.paddlepaddle.org/v1/namespaces/default/paddlejobs"


@pytest.fixture
def failed(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(watching, "ROUND_SECONDS", 0.01)
    job = make_job(stub, phase="Failed", workers=1, servers=0)
    job["metadata"] |= {"labels": {"team": "a"}, "annotations": {"note": "b"}, "finalizers": ["x"], "generation": 4}
    return job


def test_the_new_job_has_the_users_words_and_nothing_else(stub: Stub, pdc: Pdc, failed: dict[str, Any]) -> None:
    spec, uid = failed["spec"], failed["metadata"]["uid"]
    result = pdc("retry", "wide")
    assert (result.code, result.out) == (0, "paddlejob.batch.paddlepaddle.org/wide runs again\n")
    [(_, _, options)] = stub.asked("DELETE")
    assert options["preconditions"] == {"uid": uid}, "another job of that name is not ours to delete"
    [(path, _, sent)] = stub.asked("POST")
    assert path == PATH
    assert sent["spec"] == spec
    assert "status" not in sent
    assert sent["metadata"] == {
        "name": "wide", "namespace": "default", "labels": {"team": "a"}, "annotations": {"note": "b"},
    }  # fmt: skip


def test_an_applied_job_keeps_its_owner(stub: Stub, pdc: Pdc, failed: dict[str, Any]) -> None:
    failed["metadata"]["managedFields"] = [
        {"manager": "controller", "operation": "Apply", "subresource": "status"},
        {"manager": "argo", "operation": "Apply"},
    ]
    assert pdc("retry", "wide").code == 0
    assert stub.asked("POST") == []
    [(path, query, _)] = stub.asked("PATCH")
    assert (path, query["fieldManager"]) == (f"{PATH}/wide", "argo")


@pytest.mark.parametrize("phase", ["Running", "Pending", "Suspended", "Restarting"])
def test_a_job_that_has_not_ended_is_left_alone(stub: Stub, pdc: Pdc, failed: dict[str, Any], phase: str) -> None:
    failed["status"]["phase"] = phase
    result = pdc("retry", "wide")
    assert result.code == 4
    assert phase in result.err
    assert stub.asked("DELETE") == []


def test_one_that_has_not_ended_spares_the_others(stub: Stub, pdc: Pdc, failed: dict[str, Any]) -> None:
    stub.add({**failed, "metadata": {"name": "other"}, "status": {"phase": "Running"}})
    assert pdc("retry", "wide", "other").code == 4
    assert stub.asked("DELETE") == []


def test_a_job_that_cannot_be_created_again_is_kept_in_a_file(stub: Stub, pdc: Pdc, failed: dict[str, Any]) -> None:
    spec = failed["spec"]
    stub.refuse["POST", PATH] = (403, {"reason": "Forbidden", "code": 403, "message": "quota exceeded"})
    result = pdc("retry", "wide")
    assert result.code == 1
    assert "quota exceeded" in result.err
    found = re.search(r"pdc apply -f (\S+)", result.err)
    assert found is not None
    saved = Path(found[1])
    try:
        assert yaml.safe_load(saved.read_text())["spec"] == spec
    finally:
        saved.unlink()


def test_only_paddlejobs_can_be_retried(stub: Stub, pdc: Pdc) -> None:
    stub.add({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}})
    assert pdc("retry", "pod/p").code == 2
    assert pdc("retry", "nothing").code == 3
