"""Versions of the ModelHub behind real Knative: an alias that moves under steady requests.

Each pod fetches for itself there: Knative mounts folders of nodes read-only, so pods cannot share what they fetch.
"""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest

from embedded.hub_world import KIND, follows_its_alias, push_two, sent
from embedded.serving_world import apply, read
from harness import Completed, Kubectl, Target, need, pdc
from paddlecloud.kube import config
from paddlecloud.modelhub import names, read_grant

from .harness import own_image
from .test_model_store import SERVING
from .test_paddleservice import controller

pytestmark = [pytest.mark.full, pytest.mark.paddle, pytest.mark.timeout(900)]

KEY = base64.b64encode(b"k" * 32).decode()


def key_secret(namespace: str) -> dict[str, Any]:
    """The controller signs with the one of its own namespace, the hub of this test reads the one beside it."""
    return {
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": read_grant.KEY_NAME, "namespace": namespace},
        "data": {"key": KEY},
    }  # fmt: skip


def hub(namespace: str) -> list[dict[str, Any]]:
    """The hub's server on a folder of its pod, and an account that may push."""
    labels = {"app": names.SERVICE}
    account = "/var/run/secrets/kubernetes.io/serviceaccount"
    container = {
        "name": "hub",
        "image": own_image.NAME,
        "command": ["python", "-m", "paddlecloud.modelhub.server", "--store", "file:///srv/models"],
        "args": ["--ca", f"{account}/ca.crt", "--grant-key", "/key/key"],
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": names.PORT}, "periodSeconds": 1},
        "volumeMounts": [{"name": "store", "mountPath": "/srv/models"}, {"name": "key", "mountPath": "/key"}],
    }
    volumes = [{"name": "store", "emptyDir": {}}, {"name": "key", "secret": {"secretName": read_grant.KEY_NAME}}]
    spec = {"containers": [container], "volumes": volumes, "terminationGracePeriodSeconds": 1}
    rules = [{"apiGroups": ["modelhub.paddlepaddle.org"], "resources": ["models", "modelversions"], "verbs": ["*"]}]
    rbac = "rbac.authorization.k8s.io"
    return [
        key_secret(namespace),
        {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": {"name": "models"}, "rules": rules},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "models"},
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "models"},
            "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": namespace}],
        },
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "hub", "labels": labels}, "spec": spec},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": names.SERVICE},
            "spec": {"selector": labels, "ports": [{"port": names.PORT}]},
        },
    ]


def test_an_alias_moves_forth_and_back_under_load_on_real_knative(
    kubectl: Kubectl, namespace: str, server: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    have = kubectl("get", "deployment", "activator", "-n", "knative-serving", check=False).returncode == 0
    need("knative", have=have, hint="`make cluster WITH=knative`")
    gateway = kubectl("get", "service", "kourier", "-n", "kourier-system", "-o", "jsonpath={.spec.clusterIP}").stdout
    for image in (SERVING, own_image.NAME):
        server.offer(image)
    own = config.load(str(server.kubeconfig)).namespace
    monkeypatch.setenv("SERVING_IMAGE", SERVING)
    monkeypatch.setenv("PADDLECLOUD_MODEL_HUB", f"http://{names.SERVICE}.{namespace}.svc.cluster.local:{names.PORT}")
    with controller(server, "knative", tmp_path):  # which also applies the definitions
        kubectl("delete", "secret", read_grant.KEY_NAME, "-n", own, "--ignore-not-found")
        kubectl("apply", "-n", own, "-f", "-", input=json.dumps(key_secret(own)))
        apply(kubectl, *hub(namespace))
        kubectl("wait", "--for=condition=Ready", "pod/hub", "--timeout=120s", timeout=130)
        address = kubectl("get", "service", names.SERVICE, "-o", "jsonpath={.spec.clusterIP}").stdout
        token = kubectl("create", "token", "default").stdout.strip()
        through = {names.VARIABLE: f"http://{address}:{names.PORT}", names.TOKEN_VARIABLE: token}
        env = {**os.environ, "KUBECONFIG": str(server.kubeconfig), **through}

        def run(*args: str, check: bool = True) -> Completed:
            return pdc("-n", namespace, *args, env=env, check=check, timeout=400)

        def files_sent() -> int:
            path = f"/api/v1/namespaces/{namespace}/services/{names.SERVICE}:{names.PORT}/proxy/metrics"
            return sent(kubectl("get", "--raw", path).stdout)

        push_two(run, tmp_path)
        run("serve", "ocr@production", "--follow", "--min", "1", "--timeout", "6m")
        assert files_sent() == 1, "one pod, one file"
        follows_its_alias(run, kubectl, str(read(kubectl, KIND, "ocr")["status"]["url"]), gateway, timeout=300)
        kubectl("delete", KIND, "ocr", "--wait")
        kubectl("delete", "secret", read_grant.KEY_NAME, "-n", own)
