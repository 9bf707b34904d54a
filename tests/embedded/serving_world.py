"""For the tests of serving: a small HTTP server, Knative Services and PaddleServices made of it, and load."""

from __future__ import annotations

import http.client
import json
import shlex
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from harness import Kubectl

SERVER = """
import http.server, os, signal, socket, sys, threading, time
word = sys.argv[1]
class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        if self.path.startswith("/slow/"):
            time.sleep(float(self.path.rpartition("/")[2]))
        if self.path == "/die":
            os._exit(3)
        code = 500 if self.path == "/bad" or word == "broken" else 200
        self.say(code, (word + " " + os.environ.get("K_REVISION", "")).encode())
    def do_POST(self):
        left = int(self.headers["Content-Length"])
        while left:
            left -= len(self.rfile.read(min(left, 1 << 16)))
        self.do_GET()
    def say(self, code, body):
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 1024
server = Server(("0.0.0.0", int(os.environ.get("PORT", "9292"))), Answer)
signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
server.serve_forever()
"""
PORT = 9292
QUICK = {"window": "6s", "target": "1"}
"""Autoscaling that a test can wait for."""
AUTOSCALER = {
    "apiVersion": "v1",
    "kind": "List",
    "items": [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "knative-serving"}},
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "config-autoscaler", "namespace": "knative-serving"},
            "data": {"scale-to-zero-grace-period": "1s"},
        },
    ],
}


def kservice(name: str, word: str, *, annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    container = {"image": "python", "command": ["python3", "-c", SERVER, word]}
    traffic = spec.pop("traffic", None)
    template: dict[str, Any] = {"spec": {"containers": [container], **spec}}
    if annotations:
        template["metadata"] = {"annotations": annotations}
    body = {"template": template, **({"traffic": traffic} if traffic else {})}
    return {"apiVersion": "serving.knative.dev/v1", "kind": "Service", "metadata": {"name": name}, "spec": body}


def endpoint(word: str) -> dict[str, Any]:
    line = f"exec python3 -c {shlex.quote(SERVER)} {word}"
    return {"containerImage": "python", "tag": "3", "port": PORT, "arg": line}


def paddleservice(
    name: str, word: str, canary: str = "", *, group: str = "serving.paddlepaddle.org", **spec: Any
) -> dict[str, Any]:
    body = {"default": endpoint(word), "runtimeVersion": "paddleserving", **spec}
    if canary:
        body["canary"] = endpoint(canary)
    return {"apiVersion": f"{group}/v1", "kind": "PaddleService", "metadata": {"name": name}, "spec": body}


def apply(kubectl: Kubectl, *objects: dict[str, Any]) -> None:
    for obj in objects:
        kubectl("apply", "-f", "-", input=json.dumps(obj))


def read(kubectl: Kubectl, *what: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(kubectl("get", *what, "-o", "json").stdout)
    return found


def url_of(kubectl: Kubectl, *what: str, timeout: str = "30s") -> str:
    """The URL of a service, once it is ready."""
    kubectl("wait", "--for=condition=Ready", "/".join(what), f"--timeout={timeout}", timeout=60)
    return str(read(kubectl, *what)["status"]["url"])


def ask(
    url: str,
    path: str = "/",
    *,
    host: str = "",
    body: bytes | None = None,
    extra: dict[str, str] | None = None,
    timeout: float = 30,
) -> tuple[int, str]:
    """Status and text. Names below localhost are not looked up: resolvers differ."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection("127.0.0.1", parts.port, timeout=timeout)
    try:
        method = "GET" if body is None else "POST"
        connection.request(method, path, body, headers={"Host": host or parts.netloc, **(extra or {})})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


class Load:
    """Requests one after the other from several clients, with every answer they got."""

    def __init__(
        self,
        url: str,
        *,
        clients: int = 4,
        pause: float = 0.01,
        path: str = "/",
        body: bytes = b"x" * 100,
        gateway: str = "",
        word: Callable[[str], str] = lambda text: text.split()[0],
    ) -> None:
        """`gateway` is the address of one elsewhere; `word` is what of an answer is counted."""
        self.answers: Counter[str] = Counter()
        self.errors: list[str] = []
        self._url, self._pause, self._path = url, pause, path
        self._body, self._gateway, self._word = body, gateway, word
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run) for _ in range(clients)]

    def _run(self) -> None:
        parts = urlsplit(self._url)
        connection: http.client.HTTPConnection | None = None
        while not self._stop.is_set():
            try:
                place = (self._gateway, 80) if self._gateway else ("127.0.0.1", parts.port)
                connection = connection or http.client.HTTPConnection(*place, timeout=30)
                connection.request("POST", self._path, body=self._body, headers={"Host": parts.netloc})
                answer = connection.getresponse()
                text = answer.read().decode()
                if answer.status == 200:
                    self.answers[self._word(text)] += 1
                else:
                    self.errors.append(f"{answer.status} {text}")
            except (OSError, http.client.HTTPException) as error:
                self.errors.append(repr(error))
                connection = None
            self._stop.wait(self._pause)

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(timeout=35)

    def since(self, count: Counter[str]) -> Counter[str]:
        """What was answered after `count` was taken."""
        return self.answers - count

    def more(self, number: int, timeout: float = 20) -> Counter[str]:
        """Wait for so many further answers and return them."""
        before = Counter(self.answers)
        deadline = time.monotonic() + timeout
        while sum(self.since(before).values()) < number:
            assert time.monotonic() < deadline, f"no {number} answers: {self.answers}, {self.errors[:3]}"
            self._stop.wait(0.02)
        return self.since(before)
