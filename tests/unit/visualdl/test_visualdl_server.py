"""The program of the image: real VisualDL, and what it lacks behind a Service.

With VisualDL's own program all of these fail: the request without a language is answered with 500, the record that is
half written ends its curve, the silent connection blocks all others.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import paddlecloud
from harness import until
from paddlecloud.visualdl.server import IMAGE
from tools import paddle
from tools.ports import free_port
from unit.budgets.inputs import field
from unit.visualdl.record_makers import framed, scalar

pytestmark = pytest.mark.timeout(600)
PROGRAM = Path(paddlecloud.__file__).parent / "local/images/recipes/visualdl/serve.py"
BEGINNING = framed(field(1, field(2, b"meta_data_tag") + field(10, b"")))


IDLE_SECONDS = 2


class Server:
    def __init__(self, folder: Path, *, idle: float = 1800) -> None:
        self.records = folder / "vdlrecords.1.log"
        self.records.write_bytes(BEGINNING + scalar("loss", 0, 1.0))
        self.address = ("127.0.0.1", free_port())
        flags = ["--logdir", str(folder), "--host", self.address[0], "--port", str(self.address[1])]
        command = [paddle.interpreter(IMAGE), str(PROGRAM), *flags, "--cache-timeout", "0.1"]
        env = {**os.environ, "VISUALDL_IDLE_SECONDS": str(idle)}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        assert said == f"VisualDL listens on {self.address[0]}:{self.address[1]}/app\n", (
            said + self.process.stdout.read()
        )
        until(self.is_alive)

    def is_alive(self) -> bool:
        try:
            return self.get("/alive")[0] == 204
        except OSError:
            return False

    def get(self, path: str) -> tuple[int, str, Any]:
        host, port = self.address
        with urllib.request.urlopen(f"http://{host}:{port}{path}", timeout=20) as response:
            return response.status, response.read().decode(), response.headers

    def steps(self) -> list[int]:
        self.get("/app/api/components")  # reads what is new
        found = json.loads(self.get(f"/app/api/scalar/list?run={self.records.parent}&tag=loss")[1])
        return [step for _, step, _ in found["data"]]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path)
    yield made
    made.process.terminate()
    made.process.wait(20)


def test_a_request_without_a_language_is_answered_in_english(server: Server) -> None:
    status, page, headers = server.get("/app/index")
    assert status == 200
    assert "vdl_lng=en" in headers["Set-Cookie"]
    assert "hm.baidu" not in page


def test_a_connection_that_sends_nothing_blocks_nobody(server: Server) -> None:
    with socket.create_connection(server.address):
        assert json.loads(server.get("/app/api/runs")[1])["data"] == [str(server.records.parent)]


def test_a_record_that_is_half_written_is_read_when_it_is_complete(server: Server) -> None:
    second, third = scalar("loss", 1, 0.5), scalar("loss", 2, 0.25)
    assert server.steps() == [0]
    with server.records.open("ab", buffering=0) as file:
        for part, steps in ((second[:5], [0]), (second[5:13], [0]), (second[13:], [0, 1]), (third, [0, 1, 2])):
            file.write(part)
            until(server.steps, steps)


def test_while_nobody_asks_it_takes_no_memory_and_the_next_request_starts_it(tmp_path: Path) -> None:
    server = Server(tmp_path, idle=IDLE_SECONDS)
    assert server.process.stdout is not None
    try:
        assert server.steps() == [0]
        assert server.process.stdout.readline().startswith("VisualDL is stopped, as nobody asked for anything")
        assert not children(server.process.pid)
        with socket.create_connection(server.address):
            assert server.is_alive(), "a probe finds it ready, also while a connection sends nothing"
        assert not children(server.process.pid), "and does not start it"
        assert resident(server.process.pid) < 40e6
        with server.records.open("ab", buffering=0) as file:
            file.write(scalar("loss", 1, 0.5))
        assert server.steps() == [0, 1], "what was written meanwhile is there"
        assert len(children(server.process.pid)) == 1
    finally:
        server.process.terminate()
        assert server.process.wait(20) == 0


def children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def resident(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


ASKED = """
import json, sys
sys.path.insert(0, sys.argv[1])
import serve
said = []
def shown(environ, start_response):
    start_response("200 OK", [])
    return [b"curves"]
for key, environ in json.loads(sys.argv[2]):
    answer = []
    body = serve.guarded(shown, key)(environ, lambda status, headers: answer.extend([status[:3], dict(headers)]))
    said.append([*answer, b"".join(body).decode()])
print(json.dumps(said))
"""


def test_requests_from_outside_of_the_pod_need_the_key(tmp_path: Path) -> None:
    near, far = {"REMOTE_ADDR": "127.0.0.1"}, {"REMOTE_ADDR": "10.1.2.3", "PATH_INFO": "/app/scalar"}
    tried: list[tuple[str, dict[str, str], str]] = [
        ("u-1", near, "200"),
        ("u-1", {"REMOTE_ADDR": "::1"}, "200"),
        ("u-1", {"REMOTE_ADDR": "::ffff:127.0.0.1"}, "200"),
        ("u-1", far, "403"),
        ("u-1", {}, "403"),
        ("u-1", {**far, "QUERY_STRING": "key=u-2"}, "403"),
        ("u-1", {**far, "QUERY_STRING": "key=u-1&run=a%26b"}, "302"),
        ("u-1", {**far, "PATH_INFO": "//evil.example/x", "QUERY_STRING": "key=u-1"}, "302"),
        ("u-1", {**far, "HTTP_COOKIE": "a=b; visualdl_key=u-1"}, "200"),
        ("u-1", {**far, "HTTP_COOKIE": "visualdl_key=u-2"}, "403"),
        ("u-1", {**far, "HTTP_COOKIE": "visualdl_key=\u00fc;;=="}, "403"),
        ("", far, "200"),
    ]
    given = json.dumps([[key, environ] for key, environ, _ in tried])
    command = [sys.executable, "-c", ASKED, str(PROGRAM.parent), given]
    said = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert [status for status, *_ in said] == [status for *_, status in tried]
    assert said[6][1]["Location"] == "/app/scalar?run=a%26b"
    assert "visualdl_key=u-1" in said[6][1]["Set-Cookie"]
    assert said[7][1]["Location"] == "/evil.example/x"
