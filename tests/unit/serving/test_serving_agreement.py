"""An ONNX export is served only if it answers as the Paddle model it was made of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from paddlecloud.serving import agreement, model_folder
from paddlecloud.serving.runners import OnnxRunner
from tools import paddle

from .models import linear, lookup


def runner(folder: Path) -> OnnxRunner:
    return OnnxRunner(model_folder.find(folder), threads=1)


def test_equal_models_agree_whatever_they_take(tmp_path: Path) -> None:
    numbers, places = runner(linear(tmp_path / "numbers")), runner(lookup(tmp_path / "places"))
    assert agreement.difference(numbers, numbers) == ""
    assert agreement.difference(places, places) == ""


@pytest.mark.parametrize(
    ("factor", "columns", "words"),
    [
        (2.0001, 3, ""),
        (2.1, 3, "output 'y' of the export is off by"),
        (float("nan"), 3, "is off by nan"),
        (2.0, 4, "the export fails where the original answers"),
    ],
)
def test_what_differs_is_reported(tmp_path: Path, factor: float, columns: int, words: str) -> None:
    original = runner(linear(tmp_path / "original"))
    export = runner(linear(tmp_path / "export", factor=factor, columns=columns))
    reported = agreement.difference(original, export)
    assert words in reported if words else reported == ""


def test_models_that_take_different_things(tmp_path: Path) -> None:
    reported = agreement.difference(runner(linear(tmp_path / "a")), runner(lookup(tmp_path / "b")))
    assert reported == "the export takes index (INT64), the original x (FP32)"


MAKE = """
    import sys, numpy, paddle
    model = paddle.nn.Linear(3, 3, bias_attr=False)
    model.weight.set_value(numpy.eye(3, dtype="float32") * 2)
    spec = paddle.static.InputSpec([None, 3], "float32", "x")
    for folder in sys.argv[1:]:
        paddle.jit.save(model, folder + "/inference", input_spec=[spec])
    import asyncio, json, logging
    from pathlib import Path
    from paddlecloud.serving.metrics import Metrics
    from paddlecloud.serving.model import Resources
    from paddlecloud.serving.slot import Slot

    async def look(folder):
        slot = Slot(Path(folder), name="m", resources=Resources(), metrics=Metrics())
        model = await slot.load()
        (answer,) = (await model.infer({"x": numpy.ones((1, 3), "float32")})).values()
        await slot.close()
        return [model.platform, answer.tolist(), slot.problem]

    print(json.dumps([asyncio.run(look(folder)) for folder in sys.argv[1:]]))
"""


@pytest.mark.paddle
def test_with_real_paddle_a_good_export_is_served_and_a_bad_one_is_not(tmp_path: Path) -> None:
    good, bad = linear(tmp_path / "good"), linear(tmp_path / "bad", factor=2.1)
    done = paddle.run(MAKE, str(good), str(bad))
    assert done.returncode == 0, done.stderr[-3000:]
    first, second = json.loads(done.stdout.splitlines()[-1])
    assert first == ["onnx", [[2.0, 2.0, 2.0]], ""]
    assert second[:2] == ["paddle", [[2.0, 2.0, 2.0]]]
    assert "model.onnx is not served, inference.json is: output" in second[2]
    assert "is off by" in second[2]
