"""Networks made on the spot, pictures in base64, and the server of the other tests."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
import yaml
from onnx import TensorProto, helper
from PIL import Image

from unit.serving.conftest import serve as serve

Network = Callable[..., Path]


@pytest.fixture
def network(tmp_path: Path) -> Network:
    """`network(nodes, inputs, outputs, processing)` is a folder with that model and its serving.yaml."""

    def make(
        nodes: list[Any], inputs: dict[str, list[Any]], outputs: dict[str, int], processing: dict[str, Any]
    ) -> Path:
        folder = tmp_path / "model"
        folder.mkdir()
        given = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()]
        made = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * rank) for name, rank in outputs.items()]
        graph = helper.make_graph(nodes, "network", given, made)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        onnx.save(model, str(folder / "model.onnx"))
        (folder / "serving.yaml").write_text(yaml.safe_dump({"name": "network", "processing": processing}))
        return folder

    return make


@pytest.fixture
def colours(network: Network) -> Path:
    """Three classes, red, green and blue: the mean of each plane of the picture."""
    node = helper.make_node("ReduceMean", ["x"], ["score"], axes=[2, 3], keepdims=0)
    plain = {"mean": [0, 0, 0], "std": [0.01, 0.01, 0.01]}
    folder = network(
        [node], {"x": ["N", 3, 4, 4]}, {"score": 2}, {"task": "clas", "size": [4, 4], "labels": "label.txt", **plain}
    )
    (folder / "label.txt").write_text("0 red\n1 green\n2 blue\n")
    return folder


def picture(colour: tuple[int, int, int], size: tuple[int, int] = (8, 6)) -> str:
    return encoded(Image.new("RGB", size, colour))


def encoded(image: Any) -> str:
    written = io.BytesIO()
    image.save(written, "PNG")
    return base64.b64encode(written.getvalue()).decode()
