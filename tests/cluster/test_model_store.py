"""A model by its name on real Knative: no image of one's own, files from a configured store."""

from __future__ import annotations

import base64
import io
import json
import tarfile
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from embedded.serving_world import apply
from harness import Kubectl, Target, need, until
from unit.serving import models

from .harness import own_image
from .test_paddleservice import controller, ready, status

pytestmark = [pytest.mark.full, pytest.mark.paddle, pytest.mark.timeout(600)]

SERVING = "paddlecloud/serving:latest"


def store(archive: bytes) -> list[dict[str, Any]]:
    """A web server with one model in the layout of a model store."""
    labels, place = {"app": "store"}, "/srv/model-center/double/v1"
    container = {
        "name": "store",
        "image": own_image.NAME,
        "command": ["python", "-m", "http.server", "8000", "--directory", "/srv"],
        "readinessProbe": {"tcpSocket": {"port": 8000}, "periodSeconds": 1},
        "volumeMounts": [{"name": "model", "mountPath": place}],
    }
    volume = {"name": "model", "configMap": {"name": "store"}}
    spec = {"containers": [container], "volumes": [volume], "terminationGracePeriodSeconds": 1}
    ports = [{"port": 80, "targetPort": 8000}]
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "store"},
            "binaryData": {"double.tar.gz": base64.b64encode(archive).decode()},
        },
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "store", "labels": labels}, "spec": spec},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "store"},
            "spec": {"selector": labels, "ports": ports},
        },
    ]


def packed(folder: Path) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as tar:
        tar.add(folder, arcname=folder.name)
    return made.getvalue()


def test_a_model_by_name_comes_from_the_store_the_controller_was_given(
    kubectl: Kubectl, namespace: str, server: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    have = kubectl("get", "deployment", "activator", "-n", "knative-serving", check=False).returncode == 0
    need("knative", have=have, hint="`make cluster WITH=knative`")
    gateway = kubectl("get", "service", "kourier", "-n", "kourier-system", "-o", "jsonpath={.spec.clusterIP}").stdout
    for image in (SERVING, own_image.NAME):
        server.offer(image)
    monkeypatch.setenv("SERVING_IMAGE", SERVING)
    monkeypatch.setenv("PADDLECLOUD_MODEL_ENDPOINT", f"http://store.{namespace}.svc.cluster.local")
    apply(kubectl, *store(packed(models.linear(tmp_path / "double"))))
    kubectl("wait", "--for=condition=Ready", "pod/store", "--timeout=120s", timeout=130)
    service = {
        "apiVersion": "serving.paddlepaddle.org/v1",
        "kind": "PaddleService",
        "metadata": {"name": "m"},
        "spec": {"model": "double:v1"},
    }
    with controller(server, "knative", tmp_path):
        apply(kubectl, service)
        until(lambda: ready(kubectl), timeout=400, every=0.5)
        host = status(kubectl)["url"].removeprefix("http://")
        tensor = {"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3]}
        body = json.dumps({"inputs": [tensor]}).encode()
        headers = {"Host": host, "Content-Type": "application/json"}
        request = urllib.request.Request(f"http://{gateway}/v2/models/m/infer", body, headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert json.load(answer)["outputs"][0]["data"] == [2, 4, 6]
        kubectl("delete", "paddleservice.serving.paddlepaddle.org", "m", "--wait")
