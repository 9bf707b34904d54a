"""`http` templates: what is asked, and which answers are a success."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.local.workflow.executor import http_request, saving
from paddlecloud.local.workflow.executor.orders import ExecutorError
from unit.local.workflow.simulation import Simulation, workflow
from unit.local.workflow.validation.test_validation import judged


class Echo(BaseHTTPRequestHandler):
    """Answers with the code that the path names, and what it was asked."""

    release = threading.Event()

    def do_POST(self) -> None:
        if self.path == "/late":
            self.release.wait(30)
        code = int(self.path[1:]) if self.path[1:].isdigit() else 200
        asked = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        body = json.dumps({"body": asked, "key": self.headers.get("X-Key")}).encode()
        self.send_response(code)
        self.send_header("content-length", str(len(body)))
        self.send_header("x-answer", "yes")
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    Echo.release.clear()
    found = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    threading.Thread(target=found.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{found.server_port}"
    Echo.release.set()
    found.shutdown()
    found.server_close()


@pytest.fixture
def message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(saving, "MESSAGE", str(tmp_path / "message"))
    return tmp_path / "message"


@pytest.mark.parametrize(
    ("path", "condition", "problem"),
    [
        ("/200", "", ""),
        ("/404", "", "received non-2xx response code: 404"),
        ("/404", "response.statusCode == 404", ""),
        ("/200", 'response.body contains "nothing"', "evaluated false"),
        ("/200", 'response.headers["X-Answer"][0] == "yes"', ""),
    ],
)
def test_a_condition_says_what_a_success_is(
    server: str, message: Path, path: str, condition: str, problem: str
) -> None:
    code = http_request.carry_out({"url": server + path, "successCondition": condition})
    report = json.loads(message.read_text())
    assert (code, problem in report.get("error", "")) == (1 if problem else 0, True)
    assert json.loads(report["result"])["body"] == ""


def test_method_body_and_headers_are_sent_and_secrets_come_from_variables(
    server: str, message: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARGO_CREDENTIAL_0", "secret")
    headers = [{"name": "X-Key", "variable": "ARGO_CREDENTIAL_0"}]
    order = {"url": server, "method": "POST", "body": "text", "headers": headers}
    assert http_request.carry_out(order) == 0
    assert json.loads(json.loads(message.read_text())["result"]) == {"body": "text", "key": "secret"}


@pytest.mark.parametrize(("path", "why"), [("/late", "no answer within 1 s"), ("file:///etc/passwd", "no http")])
def test_what_does_not_answer_or_is_no_web_address_is_an_error(server: str, message: Path, path: str, why: str) -> None:
    url = path if "://" in path else server + path
    with pytest.raises(ExecutorError, match=why):
        http_request.carry_out({"url": url, "timeoutSeconds": 1})


SPEC = """
entrypoint: main
templates:
- name: main
  steps:
  - - {name: ask, template: ask}
  - - {name: say, template: say, arguments: {parameters: [{name: x, value: "{{steps.ask.outputs.result}}"}]}}
- name: ask
  http:
    url: http://example.com
    headers: [{name: X-Key, valueFrom: {secretKeyRef: {name: keys, key: k}}}]
- {name: say, inputs: {parameters: [{name: x}]}, container: {image: busybox, args: ["{{inputs.parameters.x}}"]}}
"""


def test_the_pod_of_the_step_asks_and_the_next_step_reads_the_answer() -> None:
    asked: list[Any] = []

    def program(pod: Any) -> Any:
        asked.append(pod)
        return "answered"

    simulation = Simulation(workflow(SPEC), program).run()
    node = simulation.nodes["ask"]
    assert (node["type"], node["phase"], node["outputs"]) == ("HTTP", "Succeeded", {"result": "answered"})
    assert asked[1]["spec"]["containers"][0]["args"] == ["answered"]
    variables = asked[0]["spec"]["containers"][0]["env"]
    assert variables[0]["valueFrom"] == {"secretKeyRef": {"name": "keys", "key": "k"}}


def test_a_request_that_failed_says_why_on_its_node() -> None:
    simulation = Simulation(workflow(SPEC))
    (pod,) = simulation.step()
    simulation.finish(pod)
    said = {"result": "gone", "error": "received non-2xx response code: 404"}
    ended = {"exitCode": 1, "reason": "Error", "message": json.dumps(said)}
    pod["status"] = {"phase": "Failed", "containerStatuses": [{"name": "main", "state": {"terminated": ended}}]}
    simulation.step()
    node = simulation.nodes["ask"]
    assert (node["phase"], node["message"], node["outputs"]) == ("Failed", said["error"], {"result": "gone"})


@pytest.mark.parametrize(
    ("http", "field"),
    [
        ({}, "url"),
        ({"url": "ftp://x"}, "url"),
        ({"url": "http://x", "timeoutSeconds": "9"}, "timeoutSeconds"),
        ({"url": "http://x", "headers": [{}]}, "headers"),
        ({"url": "http://x", "bodyFrom": "x"}, "bodyFrom"),
        ({"url": "http://x", "verb": "GET"}, "verb"),
    ],
)
def test_a_request_that_cannot_be_made_is_refused(http: dict[str, Any], field: str) -> None:
    assert judged({"entrypoint": "main", "templates": [{"name": "main", "http": http}]}) == [
        f"spec.templates[0].http.{field}"
    ]
