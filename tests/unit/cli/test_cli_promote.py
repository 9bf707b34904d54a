"""`pdc promote` while the controller writes the status, and while somebody else changes the spec."""

from __future__ import annotations

from typing import Any

import pytest

from unit.cli.conftest import Pdc
from unit.cli.stub import Stub

PATH = "/apis/serving.paddlepaddle.org/v1/namespaces/default/paddleservices/flowers"
CONFLICT = (409, {"reason": "Conflict", "code": 409, "message": "the object has been modified"})


@pytest.fixture
def service(stub: Stub) -> dict[str, Any]:
    stub.kinds.append(("serving.paddlepaddle.org", "v1", "paddleservices", "PaddleService", True, ["pds"]))
    ready = {"type": "CanaryEndpointReady", "status": "True"}
    return stub.add(
        {
            "apiVersion": "serving.paddlepaddle.org/v1",
            "kind": "PaddleService",
            "metadata": {"name": "flowers", "generation": 3},
            "spec": {"default": {"tag": "1"}, "canary": {"tag": "2"}, "canaryTrafficPercent": 50},
            "status": {"conditions": [ready]},
        }
    )


def overtaken(stub: Stub, service: dict[str, Any], *, generations: int, times: int) -> None:
    """The first patches come too late: each time somebody wrote the object before."""
    left = [times]

    def write(method: str, path: str) -> None:
        stub.refuse.clear()
        if method == "PATCH" and left[0]:
            left[0] -= 1
            service["metadata"]["generation"] += generations
            stub.add(service)
            stub.refuse[("PATCH", PATH)] = CONFLICT

    stub.before = write


def test_a_status_written_meanwhile_does_not_stop_it(stub: Stub, pdc: Pdc, service: dict[str, Any]) -> None:
    overtaken(stub, service, generations=0, times=3)
    result = pdc("promote", "flowers")
    assert result.code == 0, result.err
    spec = stub.objects["paddleservices", "default", "flowers"]["spec"]
    assert (spec["default"], spec.get("canary")) == ({"tag": "2"}, None)
    versions = [body["metadata"]["resourceVersion"] for _, _, body in stub.asked("PATCH")]
    assert len(versions) == len(set(versions)) == 4, "each attempt is based on what it read"


def test_a_spec_changed_meanwhile_is_not_written_over(stub: Stub, pdc: Pdc, service: dict[str, Any]) -> None:
    overtaken(stub, service, generations=1, times=1)
    result = pdc("promote", "flowers")
    assert (result.code, len(stub.asked("PATCH"))) == (4, 1)
    assert "modified" in result.err
    assert stub.objects["paddleservices", "default", "flowers"]["spec"]["canary"] == {"tag": "2"}


def test_it_gives_up_when_the_object_never_rests(stub: Stub, pdc: Pdc, service: dict[str, Any]) -> None:
    overtaken(stub, service, generations=0, times=1000)
    assert pdc("promote", "flowers").code == 4
    assert len(stub.asked("PATCH")) == 10
