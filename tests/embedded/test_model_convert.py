"""Real Paddle models in other forms: an export that answers otherwise is not stored, and says by how much."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness import Target, pdc
from paddlecloud.cli.commands.model_convert import IMAGE
from paddlecloud.local.images.store import ImageStore

pytestmark = [pytest.mark.paddle, pytest.mark.timeout(900)]

NETS = """
import paddle
from paddle import nn
for name, size in (("good", 7), ("bad", 4)):
    first = nn.Conv2D(1, 4, 3, stride=2, padding=1), nn.AdaptiveAvgPool2D(size)
    net = nn.Sequential(*first, nn.Flatten(), nn.Linear(4 * size * size, 5))
    net.eval()
    shape = paddle.static.InputSpec([None, 1, 28, 28], "float32", name="x")
    paddle.jit.save(net, f"{name}/inference", input_spec=[shape])
"""
"""paddle2onnx 2.1.0 converts adaptive pooling wrongly where the size does not divide: 14 to 4."""


@pytest.fixture
def nets(tmp_path: Path) -> Path:
    environment = asyncio.run(ImageStore().prepare(IMAGE))
    python = next(found for folder in environment.path if (found := Path(folder) / "python").exists())
    subprocess.run([str(python), "-c", NETS], cwd=tmp_path, check=True, capture_output=True, timeout=600)
    (tmp_path / "good" / "labels.txt").write_text("a b c d e")
    return tmp_path


def test_forms_are_made_once_checked_and_traced(server: Target, namespace: str, nets: Path) -> None:
    def run(*words: str) -> Any:
        done = pdc("-n", namespace, *words, "-o", "json", "--store", f"file://{nets}/store", env=server.env)
        return json.loads(done.stdout)

    assert run("model", "push", "net", str(nets / "good"))["signature"] == {
        "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 1, 28, 28]}],
        "outputs": [{"name": "fetch_name_0", "datatype": "FP32", "shape": [-1, 5]}],
    }
    made = run("model", "convert", "net", "--to", "onnx")
    assert (made["version"], made["created"]) == ("net:1-onnx", True)
    assert made["tools"]["paddle2onnx"] == "2.1.0"
    assert run("model", "convert", "net:1", "--to", "onnx")["created"] is False
    pulled = run("model", "pull", "net:1-onnx", str(nets / "onnx"))
    assert sorted(file["path"] for file in pulled["files"]) == ["labels.txt", "model.onnx"]
    assert pulled["origin"]["source"] == "net:1"
    assert pulled["signature"]["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 1, 28, 28]}]
    assert run("model", "show", "net")["version"] == "1", "latest is what was trained"

    run("model", "convert", "net:1", "--to", "serving")
    run("model", "convert", "net:1-serving", "--to", "paddle")
    back = run("model", "pull", "net:1-serving-paddle", str(nets / "back"))
    first = {file["path"]: file["sha256"] for file in run("model", "pull", "net:1", str(nets / "first"))["files"]}
    assert {file["path"]: file["sha256"] for file in back["files"]} == first
    shown = pdc("-n", namespace, "trace", "net:1-serving-paddle", env=server.env).stdout
    assert [line.strip("│├└─ ").split()[0] for line in shown.splitlines()[2:]] == ["model/net:1-serving", "model/net:1"]

    run("model", "push", "bad", str(nets / "bad"))
    words = ("model", "convert", "bad", "--to", "onnx", "--store", f"file://{nets}/store")
    refused = pdc("-n", namespace, *words, env=server.env, check=False)
    assert refused.returncode == 5, refused.stderr
    assert "is off by 0." in refused.stderr
    assert [one["version"] for one in run("model", "ls", "bad")["items"]] == ["1"]
