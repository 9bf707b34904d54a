"""The manual's two services, applied as they are printed there, and asked with the manual's own requests."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from embedded.serving_world import AUTOSCALER, ask
from harness import Completed, Kubectl, Target, until

pytestmark = [pytest.mark.paddle, pytest.mark.timeout(600)]

MANUAL = Path(__file__).parents[2] / "examples" / "manual"
SPACE, NAME = "paddleservice-system", "paddleservice-sample"
HOST = f"{NAME}.{SPACE}.example.com"
IMAGES = (
    "jinmionhaobaidu/resnet",
    "jinmionhaobaidu/resnetcanary",
    "registry.baidubce.com/paddleflow-public/lac-serving",
)
JSON = {"Content-Type": "application/json"}


@pytest.fixture
def shell(embedded: Target, kubectl_binary: str, kubectl_cache: Path) -> Iterator[Kubectl]:
    env = {**embedded.env, "KUBECACHEDIR": str(kubectl_cache)}

    def run(*args: str, check: bool = True, input: str | None = None, timeout: float = 120) -> Completed:
        return subprocess.run(
            [kubectl_binary, *args], env=env, input=input, check=check, timeout=timeout, capture_output=True, text=True
        )

    for image in IMAGES:
        embedded.offer(f"{image}:latest")
    run("apply", "-f", "-", input=json.dumps(AUTOSCALER))
    yield run
    run("delete", "namespace", SPACE, "--wait=false")


def status(shell: Kubectl) -> dict[str, Any]:
    kind = "paddleservice.elasticserving.paddlepaddle.org"
    found: dict[str, Any] = json.loads(shell("get", kind, NAME, "-n", SPACE, "-o", "json").stdout)
    return found.get("status") or {}


def ready(shell: Kubectl) -> bool:
    conditions = status(shell).get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def is_shown_by_kubectl(shell: Kubectl, url: str, *endpoints: str) -> None:
    """The manual's `kubectl get svc|ksvc|pods` and `logs` show the service while it is awake."""
    services = shell("get", "svc", "-n", SPACE, "-o", "name").stdout.splitlines()
    assert {f"service/{name}" for name in (NAME, *endpoints)} <= set(services)
    header, line = shell("get", "ksvc", NAME, "-n", SPACE).stdout.splitlines()
    assert header.split()[:3] == ["NAME", "URL", "LATESTCREATED"]
    assert line.split()[:2] == [NAME, url]
    pod = shell("get", "pods", "-n", SPACE, "-l", f"PaddleService={NAME}", "-o", "name").stdout.splitlines()[0]
    assert shell("logs", pod, "-n", SPACE, "-c", "paddleserving").returncode == 0


def test_resnet_and_its_canary_answer_sleep_and_wake_then_lac_follows(shell: Kubectl) -> None:
    shell("apply", "-f", str(MANUAL / "sample-service.yaml"))
    until(lambda: ready(shell) and status(shell)["traffic"] == "50/50", timeout=180, every=0.5)
    url = status(shell)["url"]
    daisy = {"image": "https://paddle-serving.bj.bcebos.com/imagenet-example/daisy.jpg"}
    body = json.dumps({"feed": [daisy], "fetch": ["score"]}).encode()

    def predict(path: str, body: bytes) -> dict[str, Any]:
        code, text = ask(url, path, host=HOST, body=body, extra=JSON, timeout=120)
        assert code == 200, text
        found: dict[str, Any] = json.loads(text)
        return found

    answers = [predict("/image/prediction", body)["result"] for _ in range(20)]
    assert {tuple(answer["label"]) for answer in answers} == {("daisy",)}
    canary = [answer for answer in answers if answer.get("isCanary") == ["true"]]
    assert 8 <= len(canary) <= 12

    is_shown_by_kubectl(shell, url, f"{NAME}-default", f"{NAME}-default-private", f"{NAME}-canary-private")

    until(lambda: status(shell)["replicas"] == 0, timeout=120, every=1)
    assert predict("/image/prediction", body)["result"]["label"] == ["daisy"], "the first request wakes it"

    shell("apply", "-f", str(MANUAL / "lac.yaml"))
    words = json.dumps({"feed": [{"words": "我爱北京天安门"}], "fetch": ["word_seg"]}).encode()

    def segments() -> bool:
        code, text = ask(url, "/lac/prediction", host=HOST, body=words, extra=JSON, timeout=60)
        return code == 200 and json.loads(text) == {"result": [{"word_seg": "我|爱|北京|天安门"}]}

    until(segments, timeout=180, every=0.5)
    is_shown_by_kubectl(shell, url, f"{NAME}-default", f"{NAME}-default-private")
