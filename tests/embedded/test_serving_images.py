"""The images of the serving examples, started by the examples' own shell lines and asked as their texts ask."""

from __future__ import annotations

import http.server
import json
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness import Kubectl, Target, until

pytestmark = [pytest.mark.paddle, pytest.mark.timeout(600)]

EXAMPLES = Path(__file__).parents[2] / "examples"
RECIPES = Path(__file__).parents[2] / "suites/src/paddlecloud_suites/recipes"


def endpoints(path: str) -> dict[str, Any]:
    (service,) = [each for each in yaml.safe_load_all((EXAMPLES / path).read_text()) if each["kind"] == "PaddleService"]
    spec: dict[str, Any] = service["spec"]
    return spec


def pod(name: str, endpoint: dict[str, Any], **env: str) -> dict[str, Any]:
    """What a PaddleService makes of an endpoint."""
    container = {
        "name": "paddleserving",
        "image": f"{endpoint['containerImage']}:{endpoint['tag']}",
        "command": ["/bin/bash", "-c"],
        "args": [endpoint["arg"]],
        "env": [{"name": key, "value": value} for key, value in env.items()],
        "readinessProbe": {"tcpSocket": {"port": endpoint["port"]}, "periodSeconds": 1},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], "restartPolicy": "Never", "terminationGracePeriodSeconds": 5},
    }


@pytest.fixture
def started(kubectl: Kubectl, server: Target) -> Any:
    """Start endpoints by name; returns how to ask each of them."""

    def start(*pods: dict[str, Any]) -> dict[str, Any]:
        for each in pods:
            server.offer(each["spec"]["containers"][0]["image"])
        kubectl("apply", "-f", "-", input=yaml.safe_dump_all(pods))
        names = [each["metadata"]["name"] for each in pods]
        ready = kubectl(
            "wait",
            "--for=condition=Ready",
            "--timeout=80s",
            *(f"pod/{name}" for name in names),
            check=False,
            timeout=90,
        )
        assert ready.returncode == 0, "\n".join(kubectl("logs", name, check=False).stdout[-2000:] for name in names)
        addresses = {
            item["metadata"]["name"]: item["status"]["podIP"]
            for item in json.loads(kubectl("get", "pods", "-o", "json").stdout)["items"]
        }
        return {name: lambda path, body, ip=addresses[name]: post(f"http://{ip}:9292{path}", body) for name in names}

    return start


def post(url: str, body: dict[str, Any]) -> Any:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def test_the_manuals_resnet_its_canary_and_its_word_segmentation(started: Any, kubectl: Kubectl) -> None:
    resnet, lac = endpoints("manual/sample-service.yaml"), endpoints("manual/lac.yaml")
    asked = started(
        pod("default", resnet["default"], PADDLECLOUD_SERVING_PRIVATE="127.0.0.1"),
        pod("canary", resnet["canary"]),
        pod("lac", lac["default"]),
    )
    daisy = {"image": "https://paddle-serving.bj.bcebos.com/imagenet-example/daisy.jpg"}
    answer = asked["default"]("/image/prediction", {"feed": [daisy], "fetch": ["score"]})["result"]
    assert answer["label"] == ["daisy"]
    assert answer["prob"][0] > 0.9
    assert "isCanary" not in answer
    log = kubectl("logs", "default").stdout.splitlines()
    assert "is a stand-in" in log[0]
    assert len([line for line in log if line.endswith(f"{daisy['image']} is a drawing, daisy.jpg")]) == 1
    assert asked["canary"]("/image/prediction", {"feed": [daisy], "fetch": ["score"]})["result"]["isCanary"] == ["true"]

    words = {"feed": [{"words": "我爱北京天安门"}], "fetch": ["word_seg"]}
    assert asked["lac"]("/lac/prediction", words) == {"result": [{"word_seg": "我|爱|北京|天安门"}]}

    with picture_server() as url:
        assert asked["default"]("/image/prediction", {"feed": [{"image": url}]})["result"]["label"] == ["daisy"]
        with pytest.raises(urllib.error.HTTPError) as refused:
            asked["canary"]("/image/prediction", {"feed": [{"image": url}]})
        assert refused.value.code == 400
        assert "is an address inside" in json.load(refused.value)["error"]


class picture_server:
    """A picture behind a loopback URL, for services that were allowed to ask there."""

    def __enter__(self) -> str:
        content = (RECIPES / "serving-resnet/model/daisy.jpg").read_bytes()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: object) -> None:
                """Nothing."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self._server.server_address[1]}/flower.jpg"

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def test_sentence_vectors_and_click_through_rates(started: Any) -> None:
    asked = started(
        pod("bert", endpoints("paddleservice/bert.yaml")["default"]),
        pod("ctr", endpoints("paddleservice/criteo-ctr.yaml")["default"]),
        pod("wide-and-deep", endpoints("paddleservice/wide-and-deep.yaml")["default"]),
    )
    column = [[number] for number in range(128)]
    feed = {"input_ids": column, "position_ids": column, "segment_ids": [[0]] * 128, "input_mask": [[1.0]] * 128}
    vectors = asked["bert"]("/bert/prediction", {"feed": [feed, feed], "fetch": ["pooled_output"]})["result"]
    assert [len(vector) for vector in vectors["pooled_output"]] == [32, 32]
    assert vectors["pooled_output"][0] == pytest.approx(vectors["pooled_output"][1])

    features = {f"embedding_{number}.tmp_0": [number] for number in range(26)}
    prob = asked["ctr"]("/ctr/prediction", {"feed": [{"dense_input": [0.5] * 13, **features}], "fetch": ["prob"]})
    assert 0 < prob["result"]["prob"][0][0] < 1

    tensors = [{"name": "dense_input", "elem_type": 1, "shape": [1, 13], "float_data": [0.5] * 13}]
    tensors += [
        {"name": f"C{number}", "elem_type": 0, "shape": [1, 1], "int64_data": [number]} for number in range(1, 27)
    ]
    body = {"tensor": tensors, "fetch_var_names": ["sigmoid_0.tmp_0"]}
    (output,) = asked["wide-and-deep"]("/GeneralModelService/inference", body)["outputs"][0]["tensor"]
    assert output["name"] == "sigmoid_0.tmp_0"
    assert 0 < output["float_data"][0] < 1


def test_a_model_that_cannot_be_served_says_why_in_the_pods_status(kubectl: Kubectl, server: Target) -> None:
    broken = pod("broken", {"containerImage": "paddlecloud/serving", "tag": "latest", "port": 8080, "arg": ""})
    container = broken["spec"]["containers"][0]
    server.offer(container["image"])
    del container["command"]
    container["args"] = ["--model", "/nowhere"]
    kubectl("apply", "-f", "-", input=json.dumps(broken))
    found: dict[str, Any] = {}

    def ended() -> bool:
        status = json.loads(kubectl("get", "pod", "broken", "-o", "json").stdout)["status"]
        found.update((status.get("containerStatuses") or [{}])[0].get("state", {}).get("terminated") or {})
        return bool(found)

    until(ended, timeout=240)  # its image may have to be built first
    assert found["exitCode"] == 2
    assert "/nowhere is no folder" in found["message"]
