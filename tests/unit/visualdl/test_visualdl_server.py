"""The program of the image: real VisualDL, and what it lacks behind a Service.

With VisualDL's own program all of these fail: the request without a language is answered with 500, the record that is
half written ends its curve, the silent connection blocks all others.
"""

from __future__ import annotations

import json
import socket
import subprocess
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


class Server:
    def __init__(self, folder: Path) -> None:
        self.records = folder / "vdlrecords.1.log"
        self.records.write_bytes(BEGINNING + scalar("loss", 0, 1.0))
        self.address = ("127.0.0.1", free_port())
        flags = ["--logdir", str(folder), "--host", self.address[0], "--port", str(self.address[1])]
        command = [paddle.interpreter(IMAGE), str(PROGRAM), *flags, "--cache-timeout", "0.1"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
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
