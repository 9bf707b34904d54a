"""Small models made on the spot, so that tests know what every answer must be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def linear(folder: Path, *, factor: float = 2.0, rows: int | str = "batch", columns: int = 3) -> Path:
    """`y = factor · x`, over rows of `columns` numbers, in its own folder."""
    weights = numpy_helper.from_array(np.eye(columns, dtype="float32") * factor, "w")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "linear",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, columns])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [rows, columns])],
        [weights],
    )
    return _saved(graph, folder)


def wide(folder: Path, *, columns: int = 4096) -> Path:
    """Rows of one number become rows of `columns`: a small request with a large answer."""
    weights = numpy_helper.from_array(np.ones((1, columns), dtype="float32"), "w")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "wide",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", columns])],
        [weights],
    )
    return _saved(graph, folder)


def lookup(folder: Path) -> Path:
    """Picks rows of a table by INT64 indices; an index out of range fails inside the model."""
    table = numpy_helper.from_array(np.arange(10, dtype="float32") * 10, "table")
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "index"], ["value"])],
        "lookup",
        [helper.make_tensor_value_info("index", TensorProto.INT64, ["batch"])],
        [helper.make_tensor_value_info("value", TensorProto.FLOAT, ["batch"])],
        [table],
    )
    return _saved(graph, folder)


def echo(folder: Path, *, types: dict[str, int]) -> Path:
    """Gives back what it gets: one input and one output (`NAME_out`) for each name, over any number of rows."""
    graph = helper.make_graph(
        [helper.make_node("Identity", [name], [f"{name}_out"]) for name in types],
        "echo",
        [helper.make_tensor_value_info(name, kind, ["batch", 2]) for name, kind in types.items()],
        [helper.make_tensor_value_info(f"{name}_out", kind, ["batch", 2]) for name, kind in types.items()],
    )
    return _saved(graph, folder)


def _saved(graph: Any, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    draft = folder / ".draft"
    onnx.save(model, str(draft))
    draft.rename(folder / "model.onnx")
    return folder
