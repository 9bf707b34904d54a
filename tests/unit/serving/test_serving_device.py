"""A model computes on the GPU that its pod was given, and says so where it cannot.

No machine that runs these tests has a GPU: paddle.inference and the engine's providers are played. On a machine with
one, tests/tools/gpu.py asks the real thing.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import onnxruntime
import pytest

from paddlecloud.serving import model_folder, runners

from .conftest import Serve
from .models import linear

IDLE = "the pod has a GPU, and the model computes on the CPU: its image has no {} that can use this one"


class Config:
    """paddle.inference.Config, of a Paddle with or without CUDA."""

    cuda = True

    def __init__(self, program: str, params: str) -> None:
        self._gpu = False

    def disable_glog_info(self) -> None: ...

    def set_cpu_math_library_num_threads(self, threads: int) -> None: ...

    def enable_use_gpu(self, megabytes: int, device: int) -> None:
        assert device == 0, "the pod's own GPU is its first one"
        self._gpu = self.cuda

    def use_gpu(self) -> bool:
        return self._gpu


class Predictor:
    def __init__(self, config: Config) -> None:
        self.config = config

    def get_input_names(self) -> list[str]:
        return []

    get_output_names = get_input_names

    def clone(self) -> Predictor:
        return Predictor(self.config)


def paddle_runner(monkeypatch: pytest.MonkeyPatch, folder: Path, *, cuda: bool) -> runners.PaddleRunner:
    paddle = ModuleType("paddle")
    config = type("Config", (Config,), {"cuda": cuda})
    paddle.inference = SimpleNamespace(Config=config, create_predictor=Predictor)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "paddle", paddle)
    for name in ("inference.json", "inference.pdiparams"):
        (folder / name).write_text('{"program": {}}')
    return runners.PaddleRunner(model_folder.find(folder), threads=1)


@pytest.mark.parametrize(
    ("given", "cuda", "device", "remark"),
    [
        (True, True, "gpu", ""),
        (True, False, "cpu", IDLE.format("paddlepaddle-gpu")),
        (False, True, "cpu", ""),
    ],
)
def test_paddle_computes_where_it_may(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, given: bool, cuda: bool, device: str, remark: str
) -> None:
    monkeypatch.setattr(runners, "_gpu_given", lambda: given)
    runner = paddle_runner(monkeypatch, tmp_path, cuda=cuda)
    assert (runner.device, runner.clone().device) == (device, device)
    assert runners.idle_gpu(runner) == remark


def test_onnx_asks_for_the_gpu_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """And only where the engine has it: it warns about each that it has not."""
    asked: list[list[str]] = []
    real = onnxruntime.InferenceSession

    def session(*args: Any, providers: list[str]) -> Any:
        asked.append(providers)
        return real(*args, providers=["CPUExecutionProvider"])

    monkeypatch.setattr(onnxruntime, "InferenceSession", session)
    monkeypatch.setattr(runners, "_gpu_given", lambda: True)
    with_cuda = ["TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"]
    for available in (with_cuda, ["CPUExecutionProvider"]):
        monkeypatch.setattr(onnxruntime, "get_available_providers", lambda available=available: available)
        runners.load(model_folder.find(linear(tmp_path)), threads=1)
    assert asked == [["CUDAExecutionProvider", "CPUExecutionProvider"], ["CPUExecutionProvider"]]


async def test_an_idle_gpu_is_shown_to_clients(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, serve: Serve) -> None:
    monkeypatch.setattr(runners, "_gpu_given", lambda: True)
    client = await serve(linear(tmp_path))
    (entry,) = await (await client.post("/v2/repository/index")).json()
    assert (entry["state"], entry["reason"]) == ("READY", IDLE.format("onnxruntime-gpu"))
