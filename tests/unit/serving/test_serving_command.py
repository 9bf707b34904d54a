"""The server as a process: it says why it cannot serve, and ends without dropping anybody."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import pytest

from harness import until
from tools import ports
from unit.serving import models

COMMAND = [sys.executable, "-m", "paddlecloud.serving", "--host", "127.0.0.1"]


@pytest.fixture
def free_port() -> int:
    return ports.free_port()


def ask(port: int) -> list[float]:
    body = json.dumps({"feed": [{"x": [1, 2, 3]}]}).encode()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/double/prediction", body, timeout=10) as answer:
        result: list[float] = json.load(answer)["result"]["y"][0]
        return result


def test_it_serves_until_asked_to_stop_and_answers_who_is_there(tmp_path: Path, free_port: int) -> None:
    folder = models.linear(tmp_path / "double")
    (folder / "serving.yaml").write_text("batch: {delayMilliseconds: 700}\n")
    server = subprocess.Popen([*COMMAND, "--model", str(folder), "--port", str(free_port)], stderr=subprocess.PIPE)
    try:
        until(lambda: _answers(free_port))
        answers: list[list[float]] = []
        asking = threading.Thread(target=lambda: answers.append(ask(free_port)))
        asking.start()
        until(lambda: _waiting(free_port) or answers)
        server.send_signal(signal.SIGTERM)
        asking.join(10)
        assert answers == [[2, 4, 6]]
        assert server.wait(10) == 0
    finally:
        server.kill()
        server.communicate()


def _answers(port: int) -> bool:
    try:
        return bool(urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/health/ready", timeout=5).status == 200)
    except OSError:
        return False


def _waiting(port: int) -> bool:
    text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5).read().decode()
    return 'paddlecloud_serving_waiting{model="double"} 1' in text


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "holds no model"),
        ({"model.onnx": "junk"}, "model.onnx cannot be loaded"),
        ({"inference.json": "{", "inference.pdiparams": ""}, "paddlepaddle, which is not installed|is damaged"),
    ],
)
def test_what_cannot_be_served_ends_with_one_sentence(tmp_path: Path, files: dict[str, str], message: str) -> None:
    folder = tmp_path / "m"
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_text(content)
    done = subprocess.run([*COMMAND, "--model", str(folder)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("error: ")
    assert any(part in last for part in message.split("|")), last


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        command = [*COMMAND, "--model", str(models.linear(tmp_path / "m")), "--port", str(port)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert f"cannot listen on port {port}" in done.stderr


def test_a_model_larger_than_the_machine_is_refused_with_figures(tmp_path: Path) -> None:
    """Sparse, so that only its size is that large: it is refused before a byte of it is read."""
    folder = tmp_path / "huge"
    folder.mkdir()
    with (folder / "model.onnx").open("wb") as file:
        file.truncate(1 << 42)
    done = subprocess.run([*COMMAND, "--model", str(folder)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "the model is 4194304 MiB" in done.stderr
    assert "give the service more memory (spec.resources)" in done.stderr
