"""Forms of models: what Paddle Serving reads of inputs and outputs, what goes with a model, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from paddlecloud.serving import conversion
from paddlecloud.serving.errors import ModelError
from paddlecloud.serving.tensors import TensorSpec


def test_the_configuration_of_paddle_serving_names_inputs_and_outputs() -> None:
    text = conversion.prototxt([TensorSpec("x", "FP32", (-1, 1, 28, 28))], [TensorSpec('a "b"', "INT64", (-1, 5))])
    assert text == (
        'feed_var {\n  name: "x"\n  alias_name: "x"\n  is_lod_tensor: false\n  feed_type: 1\n'
        "  shape: 1\n  shape: 28\n  shape: 28\n}\n"
        'fetch_var {\n  name: "a \\"b\\""\n  alias_name: "a \\"b\\""\n  is_lod_tensor: false\n  fetch_type: 0\n'
        "  shape: 5\n}\n"
    )
    with pytest.raises(ModelError, match="no tensors of BYTES"):
        conversion.prototxt([TensorSpec("x", "BYTES")], [])


@pytest.mark.parametrize(
    ("files", "to", "why"),
    [
        (["model.onnx"], "onnx", "is ONNX already"),
        (["notes.txt"], "onnx", "holds no model"),
        (["inference.json", "inference.pdiparams"], "paddle", "no layout of Paddle Serving"),
    ],
)
def test_what_cannot_be_converted_is_refused_in_one_line(
    files: list[str], to: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for name in files:
        (source / name).write_text("{}")
    code = conversion.main(["--to", to, str(source), str(tmp_path / "target")])
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (code, said["reason"], why in said["refused"]) == (conversion.REFUSED, "Invalid", True)
    assert "paddlepaddle" in said["tools"]
