"""What a version takes and gives, read from real forms of models; and what an author declares."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from paddlecloud.api.model.signature import ModelTensor, Signature
from paddlecloud.modelhub import signature
from paddlecloud.modelhub.errors import Refused

X = {"name": "x", "datatype": "FP32", "shape": [-1, 3, -1, 28]}
WANTED = "x FP32[N, 3, N, 28]", "scores FP32[N, 5]"


def an_onnx(folder: Path) -> list[str]:
    """With its weights among the graph's inputs, as exporters of IR version 3 wrote them."""
    weights = helper.make_tensor("w", TensorProto.FLOAT, [28, 5], [0.5] * 140)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["scores"])],
        "net",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3, None, 28]),
            helper.make_tensor_value_info("w", TensorProto.FLOAT, [28, 5]),
        ],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", 5])],
        [weights],
    )
    onnx.save(helper.make_model(graph), str(folder / "net.onnx"))
    return ["net.onnx"]


def of_paddle_3(folder: Path) -> list[str]:
    """Operations as Paddle 3.3 writes them, the others left out."""

    def operation(kind: str, name: str, shape: list[int]) -> dict[str, Any]:
        tensor = {"#": "0.t_dtensor", "D": [{"#": "0.t_f32"}, shape, "NCHW", [], 0]}
        attribute = {"N": "name", "AT": {"#": "0.a_str", "D": name}}
        return {"#": kind, "A": [attribute], "I": [], "O": [{"%": 1, "TT": tensor}]}

    ops = [operation("1.data", "x", [-1, 3, -1, 28]), {"#": "p", "A": []}, operation("1.fetch", "scores", [-1, 5])]
    body = {"base_code": {"magic": "pir"}, "program": {"regions": [{"blocks": [{"ops": ops}]}]}}
    (folder / "inference.json").write_text(json.dumps(body))
    return ["inference.json", "inference.pdiparams"]


def of_paddle_2(folder: Path) -> list[str]:
    """A ProgramDesc, field by field (framework.proto): a real one is some 100 kB."""

    def varint(value: int) -> bytes:
        value &= (1 << 64) - 1
        found = bytearray()
        while value > 127:
            found.append(value & 127 | 128)
            value >>= 7
        return bytes([*found, value])

    def message(number: int, content: bytes | str) -> bytes:
        raw = content.encode() if isinstance(content, str) else content
        return varint(number << 3 | 2) + varint(len(raw)) + raw

    def number(field: int, value: int) -> bytes:
        return varint(field << 3) + varint(value)

    def variable(name: str, shape: list[int]) -> bytes:
        tensor = number(1, 5) + b"".join(number(2, size) for size in shape)
        return message(1, name) + message(2, number(1, 7) + message(3, message(1, tensor)))

    def operation(kind: str, field: int, name: str) -> bytes:
        return message(field, message(1, "X") + message(2, name)) + message(3, kind)

    variables = [variable("x", [-1, 3, -1, 28]), variable("w", [28, 5]), variable("scores", [-1, 5])]
    operations = [operation("feed", 2, "x"), operation("matmul", 1, "w"), operation("fetch", 1, "scores")]
    block = number(1, 0) + number(2, 0) + b"".join(message(3, one) for one in variables)
    block += b"".join(message(4, one) for one in operations)
    (folder / "net.pdmodel").write_bytes(message(1, block))
    return ["net.pdmodel", "net.pdiparams"]


@pytest.mark.parametrize("form", [an_onnx, of_paddle_3, of_paddle_2])
def test_inputs_and_outputs_are_read_from_the_files(form: Any, tmp_path: Path) -> None:
    found = signature.read(tmp_path, [*form(tmp_path), "labels.txt"])
    assert found is not None
    assert (signature.shown(found.inputs), signature.shown(found.outputs)) == WANTED


@pytest.mark.parametrize("form", [an_onnx, of_paddle_3, of_paddle_2])
def test_a_damaged_program_has_no_signature(form: Any, tmp_path: Path) -> None:
    paths = form(tmp_path)
    whole = (tmp_path / paths[0]).read_bytes()
    for content in (b"", whole[: len(whole) // 2], whole[3:], b"\xff" * 200, b"{}", b"[" * 100_000):
        (tmp_path / paths[0]).write_bytes(content)
        found = signature.read(tmp_path, paths)
        assert found is None or found.inputs is not None, content[:10]


def test_the_uppermost_program_counts_and_weights_alone_say_nothing(tmp_path: Path) -> None:
    (tmp_path / "server").mkdir()
    below = [f"server/{path}" for path in of_paddle_3(tmp_path / "server")]
    assert signature.read(tmp_path, [*below, "client/serving_client_conf.prototxt"]) is not None
    assert signature.read(tmp_path, ["model.pdparams", "config.json"]) is None, "no program is beside its weights"
    other = an_onnx(tmp_path)
    assert (tmp_path / "net.onnx").is_file()
    (tmp_path / "server" / "inference.json").write_text("{}")
    assert signature.read(tmp_path, [*below, *other]) is not None


def test_what_an_author_declares_must_be_what_the_files_say() -> None:
    found = Signature(inputs=[ModelTensor(**X)], outputs=[])
    fits = signature.declared(json.dumps({"inputs": [{**X, "shape": [1, 3, 28, 28]}], "outputs": []}))
    assert signature.agreed(found, fits) is found, "-1 is any size"
    assert signature.agreed(None, fits) is fits, "files of another form say nothing"
    for change, says in (
        ({"datatype": "INT64"}, r"input x FP32.* declared is x INT64"),
        ({"shape": [-1, 1, 28, 28]}, r"declared is x FP32\[N, 1, 28, 28\]"),
        ({"name": "image"}, "input image FP32.* is missing; input x FP32.* is new"),
    ):
        wanted = signature.declared(json.dumps({"inputs": [{**X, **change}], "outputs": []}))
        with pytest.raises(Refused, match=says):
            signature.agreed(found, wanted)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "cannot be read"),
        ("[]", "cannot be read"),
        ('{"inputs": [{"name": "x"}]}', "cannot be read.*datatype"),
        ('{"inputs": [{"name": "x", "datatype": "float"}]}', "FP32"),
        ('{"inputs": [{"name": "x", "datatype": "FP32", "shape": [-2]}]}', "shape"),
        ('{"input": []}', "fields that none has"),
        ("[" * 100_000, "cannot be read"),
    ],
)
def test_what_is_no_signature_is_refused_with_its_form(text: str, says: str) -> None:
    with pytest.raises(Refused, match=says):
        signature.declared(text)
