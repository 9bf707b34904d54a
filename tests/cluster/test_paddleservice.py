"""PaddleServices on a real cluster: on Knative with Kourier, and as Deployments where the controller knows of none."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from embedded.serving_world import SERVER, apply, read
from harness import Kubectl, Target, need, pdc, until

from .harness import own_image

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]

KIND = "paddleservice.serving.paddlepaddle.org"
ENGINES = {
    "knative": "from paddlecloud.controllers.__main__ import main; main(sys.argv[1:])",
    "deployment": (
        "from paddlecloud.controllers import __main__ as program\n"
        "from paddlecloud.kube.resource import HORIZONTALPODAUTOSCALERS\n"
        "async def no_knative(client): return [HORIZONTALPODAUTOSCALERS]\n"
        "program.paddleservice.served_kinds = no_knative\n"
        "program.main(sys.argv[1:])"
    ),
}


def endpoint(word: str) -> dict[str, Any]:
    image, _, tag = own_image.NAME.rpartition(":")
    return {
        "containerImage": image, "tag": tag, "port": 9292,
        "arg": f"export PORT=9292; exec python -c {shlex.quote(SERVER)} {word}",
    }  # fmt: skip


def service(word: str, canary: str = "", **spec: Any) -> dict[str, Any]:
    body = {"default": endpoint(word), "runtimeVersion": "paddleserving", "service": {"window": "6s"}, **spec}
    if canary:
        body["canary"] = endpoint(canary)
    return {
        "apiVersion": "serving.paddlepaddle.org/v1",
        "kind": "PaddleService",
        "metadata": {"name": "m"},
        "spec": body,
    }


COUNTING = """
import http.server, signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
from paddlecloud.serving.metrics import Metrics
metrics, code = Metrics(), int(sys.argv[1])
class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        if self.path == "/metrics":
            return self.say(200, metrics.registry.render())
        metrics.requests.inc("m", str(code))
        metrics.seconds.observe(0.001, "m")
        self.say(code, str(code))
    def say(self, code, text):
        self.send_response(code)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())
http.server.ThreadingHTTPServer(("0.0.0.0", 9292), Answer).serve_forever()
"""


@contextmanager
def controller(server: Target, engine: str, folder: Path) -> Iterator[None]:
    """The controller as a process of the test's, with the cluster's administrator as its account."""
    server.offer(own_image.NAME)
    definitions = pdc("crds").stdout
    command = [
        "kubectl",
        "--kubeconfig",
        str(server.kubeconfig),
        "apply",
        "--server-side",
        "--force-conflicts",
        "-f",
        "-",
    ]
    subprocess.run(command, input=definitions, text=True, check=True, capture_output=True, timeout=60)
    program = [sys.executable, "-c", f"import sys\n{ENGINES[engine]}", "paddleservice", "--health-port", "0"]
    with open(folder / "controller.log", "wb") as log:
        process = subprocess.Popen([*program, "--kubeconfig", str(server.kubeconfig)], stdout=log, stderr=log)
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)
    assert b"Traceback" not in (folder / "controller.log").read_bytes(), (folder / "controller.log").read_text()[-3000:]


def status(kubectl: Kubectl) -> dict[str, Any]:
    found: dict[str, Any] = read(kubectl, KIND, "m").get("status") or {}
    return found


def ready(kubectl: Kubectl) -> bool:
    found = status(kubectl)
    current = found.get("observedGeneration") == read(kubectl, KIND, "m")["metadata"]["generation"]
    return current and any(c["type"] == "Ready" and c["status"] == "True" for c in found.get("conditions") or ())


def ask(address: str, host: str) -> str:
    request = urllib.request.Request(f"http://{address}/", headers={"Host": host})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return str(answer.read().decode().split()[0])


@pytest.mark.core
def test_a_service_lives_its_whole_life_on_real_knative(
    kubectl: Kubectl, namespace: str, server: Target, tmp_path: Path
) -> None:
    have = kubectl("get", "deployment", "activator", "-n", "knative-serving", check=False).returncode == 0
    need("knative", have=have, hint="`make cluster WITH=knative`")
    gateway = kubectl("get", "service", "kourier", "-n", "kourier-system", "-o", "jsonpath={.spec.clusterIP}").stdout
    env = {**os.environ, "KUBECONFIG": str(server.kubeconfig)}

    def reported(count: int = 40) -> Counter[str]:
        return Counter(ask(gateway, host) for _ in range(count))

    with controller(server, "knative", tmp_path):
        apply(kubectl, service("one"))
        until(lambda: ready(kubectl), timeout=120, every=0.5)
        found = status(kubectl)
        host = found["url"].removeprefix("http://")
        assert found["engine"] == "Knative"
        assert (found["traffic"], found["replicas"]) == ("100", 1)
        assert set(reported()) == {"one"}

        first = found["default"]["name"]
        apply(kubectl, service("two"))
        until(lambda: status(kubectl)["default"]["name"] != first and ready(kubectl), timeout=120, every=0.5)
        until(lambda: set(reported(10)) == {"two"}, timeout=30)

        apply(kubectl, service("two", "three", canaryTrafficPercent=50))
        until(lambda: status(kubectl).get("traffic") == "50/50", timeout=120, every=0.5)
        until(lambda: set(reported(10)) == {"two", "three"}, timeout=30)
        shares = reported(200)
        assert 60 <= shares["three"] <= 140, shares
        names = {item["metadata"]["name"] for item in read(kubectl, "services.v1.")["items"]}
        assert {"m-default", "m-default-private", "m-canary-private"} <= names

        canary = status(kubectl)["canary"]["name"]
        pdc("-n", namespace, "rollback", "m", env=env)
        until(lambda: ready(kubectl) and set(reported(10)) == {"two"}, timeout=120, every=0.5)
        until(lambda: canary not in kubectl("get", "revisions", "-o", "name").stdout, timeout=60, every=0.5)
        apply(kubectl, service("two", "three", canaryTrafficPercent=50))
        until(lambda: status(kubectl).get("traffic") == "50/50", timeout=120, every=0.5)

        pdc("-n", namespace, "promote", "m", env=env)
        until(lambda: ready(kubectl) and set(reported(10)) == {"three"}, timeout=120, every=0.5)
        pdc("-n", namespace, "rollback", "m", env=env)
        until(lambda: ready(kubectl) and set(reported(10)) == {"two"}, timeout=120, every=0.5)

        until(lambda: status(kubectl)["replicas"] == 0, timeout=150, every=1)
        assert ask(gateway, host) == "two", "awake again"

        broken = service("two")
        broken["spec"]["default"]["containerImage"] = "nobody/has-this"  # of ours, any tag would be found
        apply(kubectl, broken)
        until(lambda: any(c["status"] == "False" for c in status(kubectl)["conditions"]), timeout=120, every=0.5)
        assert set(reported(10)) == {"two"}, "what served goes on"


def test_a_roll_out_that_brings_errors_goes_back_by_what_its_pods_report(
    kubectl: Kubectl, namespace: str, server: Target, tmp_path: Path
) -> None:
    have = kubectl("get", "deployment", "activator", "-n", "knative-serving", check=False).returncode == 0
    need("knative", have=have, hint="`make cluster WITH=knative`")
    gateway = kubectl("get", "service", "kourier", "-n", "kourier-system", "-o", "jsonpath={.spec.clusterIP}").stdout

    def answering(code: int) -> dict[str, Any]:
        rollout = {"steps": [50], "pauseSeconds": 600, "maxErrorPercent": 5}
        made = service("one", rollout=rollout)
        made["spec"]["default"]["arg"] = f"exec python -c {shlex.quote(COUNTING)} {code}"
        return made

    def answers() -> Counter[int]:
        found: Counter[int] = Counter()
        for _ in range(30):
            try:
                ask(gateway, status(kubectl)["url"].removeprefix("http://"))
                found[200] += 1
            except urllib.error.HTTPError as error:
                found[error.code] += 1
        return found

    with controller(server, "knative", tmp_path):
        apply(kubectl, answering(200))
        until(lambda: ready(kubectl), timeout=120, every=0.5)
        apply(kubectl, answering(500))
        until(lambda: (status(kubectl).get("rollout") or {}).get("percent") == 50, timeout=120, every=0.5)
        until(lambda: answers() and "went back" in status(kubectl)["rollout"].get("message", ""), timeout=120)
        until(lambda: set(answers()) == {200}, timeout=60)
        assert "answers were errors, more than 5 %" in kubectl("get", "events").stdout


def test_without_knative_a_service_is_deployments_behind_a_service(
    kubectl: Kubectl, namespace: str, server: Target, tmp_path: Path
) -> None:
    with controller(server, "deployment", tmp_path):
        apply(kubectl, service("one"))
        until(lambda: ready(kubectl), timeout=120, every=0.5)
        found = status(kubectl)
        assert found["engine"] == "Deployment"
        autoscaler = read(kubectl, "hpa", "m-default")
        assert autoscaler["spec"]["scaleTargetRef"]["name"] == "m-default"
        address = read(kubectl, "services.v1.", "m")["spec"]["clusterIP"]
        assert ask(address, "m") == "one"
        env = {**os.environ, "KUBECONFIG": str(server.kubeconfig)}
        apply(kubectl, service("two"))
        until(lambda: ready(kubectl) and _answers(address, "two"), timeout=120, every=0.5)
        pdc("-n", namespace, "rollback", "m", env=env)
        until(lambda: ready(kubectl) and _answers(address, "one"), timeout=120, every=0.5)
        apply(kubectl, service("one", "three", canaryTrafficPercent=50))
        until(lambda: ready(kubectl) and _answers(address, "one", "three"), timeout=120, every=0.5)
        assert status(kubectl)["traffic"] == "50/50"
        pdc("-n", namespace, "promote", "m", env=env)
        until(lambda: ready(kubectl) and _answers(address, "three"), timeout=120, every=0.5)


def _answers(address: str, *words: str) -> bool:
    try:
        return {ask(address, "m") for _ in range(12)} == set(words)
    except (urllib.error.URLError, OSError):
        return False
