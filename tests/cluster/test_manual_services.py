"""The manual's PaddleServices on real Knative, in both groups, as they are printed and asked as the manual asks.

They get a fifth of a processor, as their YAML says nothing else: a start takes half a minute, or more if others work.
"""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest

from harness import Kubectl, Target, need, pdc, until
from paddlecloud.serving.grpc_messages import PACKAGE, message

from .test_paddleservice import controller

pytestmark = [pytest.mark.full, pytest.mark.paddle, pytest.mark.timeout(1800)]

MANUAL = Path(__file__).parents[2] / "examples" / "manual"
SPACE, NAME = "paddleservice-system", "paddleservice-sample"
PRINTED, TODAY = "elasticserving.paddlepaddle.org", "serving.paddlepaddle.org"
IMAGES = (
    "jinmionhaobaidu/resnet:latest",
    "jinmionhaobaidu/resnetcanary:latest",
    "registry.baidubce.com/paddleflow-public/lac-serving:latest",
)
DAISY = {"feed": [{"image": "https://paddle-serving.bj.bcebos.com/imagenet-example/daisy.jpg"}], "fetch": ["score"]}
WORDS = {"feed": [{"words": "我爱北京天安门"}], "fetch": ["word_seg"]}


class Manual:
    """The manual's service in one of the groups, and what its users do with it."""

    def __init__(self, kubectl: Kubectl, group: str, gateway: str) -> None:
        self._kubectl, self._group, self.gateway = kubectl, group, gateway
        self.host = ""

    def apply(self, file: str) -> None:
        text = (MANUAL / file).read_text().replace(PRINTED, self._group)
        self._kubectl("apply", "-n", SPACE, "-f", "-", input=text)

    def status(self) -> dict[str, Any]:
        shown = self._kubectl("get", f"paddleservices.{self._group}", NAME, "-n", SPACE, "-o", "json").stdout
        found = json.loads(shown)
        state: dict[str, Any] = found.get("status") or {}
        return state if state.get("observedGeneration") == found["metadata"]["generation"] else {}

    def is_ready(self, traffic: str) -> bool:
        state = self.status()
        conditions = {c["type"]: c["status"] for c in state.get("conditions") or ()}
        served = state.get("default", {}).get("percent", 0) + state.get("canary", {}).get("percent", 0)
        return conditions.get("Ready") == "True" and state.get("traffic") == traffic and served == 100

    def ask(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        headers = {"Host": self.host, "Content-Type": "application/json"}
        request = urllib.request.Request(f"http://{self.gateway}{path}", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=290) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def is_shown_by_kubectl(self, *endpoints: str) -> bool:
        """Whether the manual's `kubectl get svc|ksvc|pods` and `logs` show the service while it is awake."""
        services = self._list("svc")
        pods = self._list("pods", "-l", f"PaddleService={NAME}")
        listed = self._kubectl("get", "ksvc", NAME, "-n", SPACE).stdout.splitlines()
        assert listed[0].split()[:3] == ["NAME", "URL", "LATESTCREATED"]
        assert listed[1].split()[:2] == [NAME, self.status()["url"]]
        assert {f"service/{name}" for name in (NAME, *endpoints)} <= set(services)
        return bool(pods) and self._kubectl("logs", pods[0], "-n", SPACE, "-c", "paddleserving").returncode == 0

    def _list(self, *what: str) -> list[str]:
        return self._kubectl("get", *what, "-n", SPACE, "-o", "name").stdout.splitlines()

    def canaries(self, count: int) -> int:
        """Of so many requests for a flower's name, how many the canary answered; all must know it.

        At once: one after the other, each would wait for one endpoint while the other falls asleep."""
        with ThreadPoolExecutor(count) as many:
            asked = many.map(lambda _: self.ask("/image/prediction", DAISY), range(count))
            answers = [answer["result"] for answer in asked]
        assert {tuple(answer["label"]) for answer in answers} == {("daisy",)}
        return sum(answer.get("isCanary") == ["true"] for answer in answers)


@pytest.fixture
def manual(request: pytest.FixtureRequest, kubectl: Kubectl, server: Target, tmp_path: Path) -> Iterator[Manual]:
    have = kubectl("get", "deployment", "activator", "-n", "knative-serving", check=False).returncode == 0
    need("knative", have=have, hint="`make cluster WITH=knative`")
    gateway = kubectl("get", "service", "kourier", "-n", "kourier-system", "-o", "jsonpath={.spec.clusterIP}").stdout
    for image in IMAGES:
        server.offer(image)
    with controller(server, "knative", tmp_path):
        yield Manual(kubectl, request.param, gateway)
        # Their shell passes no signal on, so that pods stay for the whole of their five minutes' grace.
        kubectl("delete", "pods", "--all", "-n", SPACE, "--grace-period=1", "--wait=false")
        kubectl("delete", "namespace", SPACE, "--ignore-not-found", "--timeout=400s", timeout=410)


@pytest.mark.parametrize("manual", [PRINTED, TODAY], indirect=True)
def test_resnet_is_split_sleeps_wakes_is_promoted_and_taken_back_then_lac_follows(
    manual: Manual, server: Target
) -> None:
    env = {**os.environ, "KUBECONFIG": str(server.kubeconfig)}
    manual.apply("sample-service.yaml")
    until(lambda: manual.is_ready("50/50"), timeout=400, every=0.5)
    manual.host = manual.status()["url"].removeprefix("http://")
    assert manual.host.startswith(f"{NAME}.{SPACE}."), "below the domain that this Knative was given"
    assert 10 <= manual.canaries(40) <= 30
    assert manual.is_shown_by_kubectl(f"{NAME}-default", f"{NAME}-default-private", f"{NAME}-canary-private")

    until(lambda: manual.status().get("replicas") == 0, timeout=150, every=1)
    manual.canaries(1)  # the first request wakes it, and is answered like any other

    pdc("-n", SPACE, "promote", NAME, env=env)
    until(lambda: manual.is_ready("100") and manual.canaries(4) == 4, timeout=400, every=0.5)
    pdc("-n", SPACE, "rollback", NAME, env=env)
    until(lambda: manual.is_ready("100") and manual.canaries(4) == 0, timeout=400, every=0.5)

    manual.apply("lac.yaml")

    def segments() -> bool:
        try:
            return manual.ask("/lac/prediction", WORDS) == {"result": [{"word_seg": "我|爱|北京|天安门"}]}
        except urllib.error.HTTPError:
            return False  # still the flowers' server, which has no such path

    until(segments, timeout=400, every=0.5)
    assert manual.is_shown_by_kubectl(f"{NAME}-default", f"{NAME}-default-private")


@pytest.mark.parametrize("manual", [TODAY], indirect=True)
def test_grpc_is_reached_through_knative_and_through_the_pods_service(manual: Manual, kubectl: Kubectl) -> None:
    image, _, tag = IMAGES[2].rpartition(":")
    line = "exec python3 -m paddlecloud.serving --model ./lac_model --name lac --grpc-port 9292 --port 9293"
    endpoint = {"containerImage": image, "tag": tag, "port": 9292, "arg": line}
    spec = {"default": endpoint, "protocol": "grpc", "service": {"minScale": 1}}
    service = {"apiVersion": f"{TODAY}/v1", "kind": "PaddleService", "metadata": {"name": NAME}, "spec": spec}
    kubectl("create", "namespace", SPACE)
    kubectl("apply", "-n", SPACE, "-f", "-", input=json.dumps(service))
    until(lambda: manual.is_ready("100"), timeout=400, every=0.5)
    host = manual.status()["url"].removeprefix("http://")
    name = f"{NAME}-default-private"
    direct = kubectl("get", "service", name, "-n", SPACE, "-o", "jsonpath={.spec.clusterIP}").stdout
    for address in (manual.gateway, direct):
        with grpc.insecure_channel(f"{address}:80", options=[("grpc.default_authority", host)]) as channel:
            call = channel.unary_unary(
                f"/{PACKAGE}.GRPCInferenceService/ModelMetadata",
                request_serializer=message("ModelMetadataRequest").SerializeToString,
                response_deserializer=message("ModelMetadataResponse").FromString,
            )
            answer = call(message("ModelMetadataRequest")(name="lac"), timeout=60, wait_for_ready=True)
        assert (answer.name, answer.platform) == ("lac", "paddle")
