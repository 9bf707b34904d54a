"""What a model from elsewhere may do: answer requests, and nothing else."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from paddlecloud.serving import command, onnx_files
from paddlecloud.serving.errors import ModelError
from paddlecloud.serving.metrics import Metrics
from paddlecloud.serving.model import Resources
from paddlecloud.serving.slot import Slot
from unit.serving import models
from unit.serving.test_serving_source import archive, url, web  # noqa: F401 - a fixture


def with_code(folder: Path, witness: Path) -> Path:
    models.linear(folder)
    (folder / "serving.yaml").write_text("processor: process.py:P\n")
    (folder / "process.py").write_text(f"open({str(witness)!r}, 'w')\nclass P:\n    pass\n")
    return folder


def test_code_in_a_fetched_archive_is_run_only_where_the_deployer_allows_it(tmp_path: Path, web: Any) -> None:  # noqa: F811
    folder, witness = with_code(tmp_path / "m", tmp_path / "ran"), tmp_path / "ran"
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    archive(tmp_path / "web/m.tar.gz", files)
    common = [
        "--model",
        url(web, "/m.tar.gz"),
        "--allow-plain-http",
        "--cache",
        str(tmp_path / "cache"),
        "--port",
        "-1",
    ]
    with pytest.raises(ModelError, match="asks to run its own code.*allowModelCode"):
        asyncio.run(command.serve(command.parse(common)))
    assert not witness.exists()
    with pytest.raises(OverflowError):  # the port; by then the model is loaded
        asyncio.run(command.serve(command.parse([*common, "--allow-model-code"])))
    assert witness.exists()


async def test_code_in_a_folder_that_the_deployer_names_is_run(tmp_path: Path) -> None:
    slot = Slot(with_code(tmp_path / "m", tmp_path / "ran"), name="", resources=Resources(), metrics=Metrics())
    await slot.load()
    assert (tmp_path / "ran").exists()
    await slot.close()


def _external(name: str, location: str) -> Any:
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[3], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=location)
    return tensor


def _model(place: str, location: str) -> Any:
    graph = helper.make_graph([], "g", [], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])])
    inner = helper.make_graph([], "inner", [], [])
    if place == "initializer":
        graph.initializer.append(_external("w", location))
    elif place == "constant":
        graph.node.append(helper.make_node("Constant", [], ["y"], value=_external("w", location)))
    elif place == "sparse":
        graph.sparse_initializer.add(dims=[3]).values.CopyFrom(_external("w", location))
    elif place == "sparse constant":
        node = graph.node.add(op_type="Constant", output=["y"])
        node.attribute.add(name="sparse_value", type=11).sparse_tensor.values.CopyFrom(_external("w", location))
    else:
        inner.initializer.append(_external("w", location))
        graph.node.append(helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=inner))
    return helper.make_model(graph)


@pytest.mark.parametrize("place", ["initializer", "constant", "sparse", "sparse constant", "branch"])
@pytest.mark.parametrize(
    "location", ["../secret", "/etc/passwd", "link/secret", "a/../../secret", "*/_ORT_MEM_ADDR_/*"]
)
def test_a_model_reads_no_file_outside_of_its_folder(tmp_path: Path, place: str, location: str) -> None:
    folder = tmp_path / "m"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(b"\0" * 12)
    (folder / "link").symlink_to(tmp_path)
    (folder / "weights.bin").write_bytes(b"\0" * 12)
    onnx.save(_model(place, location), str(folder / "model.onnx"))
    with pytest.raises(ModelError, match="not in the model's folder"):
        onnx_files.check(folder / "model.onnx")
    onnx.save(_model(place, "weights.bin"), str(folder / "model.onnx"))
    onnx_files.check(folder / "model.onnx")


@pytest.mark.parametrize(
    "tag",
    [
        pytest.param(b"\xea\x80\x80\x80\x10", id="bits beyond the 32nd, which parsers drop"),
        pytest.param(b"\xea\x80\x80\x80\x80\x80\x80\x80\x80\x01", id="the 64th bit"),
        pytest.param(b"\x02", id="field 0"),
    ],
)
def test_a_model_whose_fields_other_parsers_number_differently_is_refused(tmp_path: Path, tag: bytes) -> None:
    entry = b"\x0a\x08location\x12\x09../secret"
    tensor = tag + bytes([len(entry)]) + entry  # field 13 of a tensor is external_data: tag 6a
    graph = b"\x2a" + bytes([len(tensor)]) + tensor
    (tmp_path / "model.onnx").write_bytes(b"\x3a" + bytes([len(graph)]) + graph)
    with pytest.raises(ModelError, match="field [0-9]+ is not between 1 and 536870911"):
        onnx_files.check(tmp_path / "model.onnx")
