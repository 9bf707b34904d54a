"""`pdc explain` of a service on a cluster: what its inference servers say of the model, nothing where none tells."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.api.names import SERVICE_LABEL
from unit.cli.conftest import Pdc
from unit.cli.stub import Stub

INDEX = "/api/v1/namespaces/default/pods/p:8081/proxy/v2/repository/index"
REASON = "the newest version is not served, version 2 is: /models/digits/3/model.onnx cannot be loaded"


@pytest.fixture
def service(stub: Stub) -> dict[str, Any]:
    stub.kinds.append(("serving.paddlepaddle.org", "v1", "paddleservices", "PaddleService", True, ["pds"]))
    ready = {"type": "Ready", "status": "True"}
    arguments = ["--model", "/mnt/model", "--name", "m", "--grpc-port", "8080", "--port", "8081"]
    stub.add(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "labels": {SERVICE_LABEL: "m"}},
            "spec": {"nodeName": "n", "containers": [{"name": "paddleserving", "args": arguments}]},
            "status": {"phase": "Running", "conditions": [ready]},
        }
    )
    body = {"apiVersion": "serving.paddlepaddle.org/v1", "kind": "PaddleService", "metadata": {"name": "m"}}
    return stub.add({**body, "spec": {"model": "file:///models/digits"}, "status": {"conditions": [ready]}})


def test_a_newer_version_that_cannot_be_loaded_is_reported(stub: Stub, pdc: Pdc, service: dict[str, Any]) -> None:
    stub.proxied[INDEX] = [{"name": "m", "version": "2", "state": "READY", "reason": f"{REASON}\x1b[2J\n"}]
    assert pdc("explain", "pds/m").out.splitlines()[0] == "pds/m: ok (ModelWarning)"
    verdict = pdc("explain", "pds/m", "-o", "json").json()
    assert verdict["text"] == f"ready: {REASON} [2J", "what a pod says moves no cursor"


@pytest.mark.parametrize("answer", [[], [3], {}, [{"reason": ""}], [{"reason": 3}], "text", None])
def test_without_a_reason_the_service_is_ready(stub: Stub, pdc: Pdc, service: dict[str, Any], answer: Any) -> None:
    stub.proxied[INDEX] = answer
    assert "ok (Ready)\n  ready\n" in pdc("explain", "pds/m").out


def test_who_may_not_ask_pods_gets_the_verdict_all_the_same(stub: Stub, pdc: Pdc, service: dict[str, Any]) -> None:
    stub.refuse[("GET", INDEX)] = (403, {"reason": "Forbidden", "code": 403, "message": "no pods/proxy for you"})
    assert "ok (Ready)\n  ready\n" in pdc("explain", "pds/m").out


def test_programs_of_others_are_not_asked(stub: Stub, pdc: Pdc, service: dict[str, Any]) -> None:
    stub.objects["pods", "default", "p"]["spec"]["containers"][0]["args"] = ["--port", "8081"]
    assert "ok (Ready)" in pdc("explain", "pds/m").out
    service["spec"] = {"default": {"containerImage": "nginx"}}
    assert "ok (Ready)" in pdc("explain", "pds/m").out
    assert not [path for path, _, _ in stub.asked("GET") if "/proxy/" in path]
