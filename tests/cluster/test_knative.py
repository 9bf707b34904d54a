"""A service on real Knative: ready, scaled to zero, and back at the first request."""

from __future__ import annotations

import json
import time
import urllib.request

import pytest

from harness import Kubectl, need, until

pytestmark = [pytest.mark.core, pytest.mark.timeout(300)]

# Not a name that Knative leaves unresolved: its controller must find the image's digest at the registry.
IMAGE = "registry.baidubce.com/library/busybox:1.36"
PROGRAM = """
mkdir /tmp/www; echo hello > /tmp/www/index.html
httpd -f -p $PORT -h /tmp/www &
trap "exit 0" TERM  # a first process without a handler is not ended by it, and Knative waits five minutes
wait
"""


@pytest.fixture(autouse=True)
def _knative(kubectl: Kubectl) -> None:
    have = kubectl("get", "deployment", "activator", "-n", "knative-serving", check=False).returncode == 0
    need("knative", have=have, hint="`make cluster WITH=knative`")


def service() -> str:
    main = {"image": IMAGE, "command": ["sh", "-c", PROGRAM], "ports": [{"containerPort": 8080}]}
    return json.dumps(
        {
            "apiVersion": "serving.knative.dev/v1",
            "kind": "Service",
            "metadata": {"name": "hello"},
            "spec": {"template": {"spec": {"containers": [main]}}},
        }
    )


def ask(gateway: str, host: str) -> tuple[str, float]:
    """The answer, and how long it took."""
    began = time.monotonic()
    request = urllib.request.Request(f"http://{gateway}/", headers={"Host": host})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read().decode().strip(), time.monotonic() - began


def test_a_service_answers_scales_to_zero_and_comes_back(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", input=service())
    kubectl("wait", "--for=condition=Ready", "ksvc/hello", "--timeout=120s", timeout=130)
    shown = json.loads(kubectl("get", "ksvc", "hello", "-o", "json").stdout)
    host = shown["status"]["url"].removeprefix("http://")
    gateway = kubectl("get", "service", "kourier", "-n", "kourier-system", "-o", "jsonpath={.spec.clusterIP}").stdout
    assert ask(gateway, host)[0] == "hello"

    def gone() -> bool:
        return kubectl("get", "pods", "-l", "serving.knative.dev/service=hello", "-o", "name").stdout == ""

    until(gone, timeout=120, every=0.5)
    answer, seconds = ask(gateway, host)
    assert answer == "hello"
    print(f"cold start {seconds:.2f} s, warm {ask(gateway, host)[1] * 1000:.0f} ms")


def test_a_tag_is_pinned_to_the_digest_the_registry_names(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", input=service())
    kubectl("wait", "--for=condition=Ready", "ksvc/hello", "--timeout=120s", timeout=130)
    revision = json.loads(kubectl("get", "revisions", "-o", "json").stdout)["items"][0]
    assert revision["status"]["containerStatuses"][0]["imageDigest"].startswith(IMAGE.rpartition(":")[0] + "@sha256:")
