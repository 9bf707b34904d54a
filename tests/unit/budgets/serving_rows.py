"""What strangers send to the inference server."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from paddlecloud.serving import grpc_service, literals, onnx_files, paddle_serving, remote, tasks, v2
from paddlecloud.serving.grpc_messages import message
from paddlecloud.serving.tasks.geometry import components, smallest_rectangle
from paddlecloud.serving.tensors import TensorSpec, from_bytes, from_json
from unit.budgets.inputs import JSON, Row, field, nested, of, times, varint

FLOAT, TEXTS = TensorSpec("x", "FP32", (-1, 3)), TensorSpec("t", "BYTES")
ENOUGH = 1 << 30
"""A limit that is not what is being tested."""


class FakeModel:
    """What the readers of requests ask a model for."""

    inputs = (FLOAT, TEXTS)
    outputs = (FLOAT,)
    name = "m"

    def input(self, name: str, datatype: object = None) -> TensorSpec:
        return FLOAT if name != "t" else TEXTS


MODEL: Any = FakeModel()


WORDS = tasks.load(Path(), {"task": "text-clas", "vocabulary": ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a"]})


def read_words(text: str) -> None:
    WORDS.bind((FLOAT,), (FLOAT,))
    WORDS.preprocess({"text": text[:100_000]})


def find_shapes(mask: Any) -> None:
    for points in components(mask):
        smallest_rectangle(points)


def dots(size: int) -> Any:
    """As many shapes as a map of that size can have, nearly."""
    rows, columns = np.indices((max(1, size // 100), 100))
    return (rows % 2 == 0) & (columns % 2 == 0)


LITERALS: dict[str, Callable[[int], str]] = {
    "a list that never ends": times("1,", "["),
    "tuples": times("(1,),", "(", ")"),
    "lists in lists": times("["),
    "texts": times("'',", "[", "'a']"),
    "escapes": times(r"\x41", "['", "']"),
    "a text without an end": times(r"\\", "['"),
    "escaped quotes without an end": times(r"\'", "['"),
    "escaped double quotes without an end": times(r"\"", '["', "'"),
    "quotes": times("'"),
    "trailing commas": times(",  "),
    "points": times("1.", "["),
    "words": times("True ", "["),
    "dicts": times("{},", "[", "()]"),
    "digits": times("1"),
}
PREDICTIONS: dict[str, Callable[[int], bytes]] = {
    "rows": times(b'{"x":[1,2,3]},', b'{"feed":[', b'{"x":[1,2,3]}]}'),
    "keys": lambda size: json.dumps({"key": ["a"] * (size // 10), "value": ["1"] * (size // 10)}).encode(),
    "outputs": times(b'"y",', b'{"feed":[{}],"fetch":[', b'"x"]}'),
}


def serving() -> Iterator[Row]:
    read = {
        "serving: POST /{name}/prediction": paddle_serving.read_prediction,
        "serving: POST /GeneralModelService/inference": paddle_serving.read_general,
        "serving: POST /v2/models/{name}/infer": lambda model, raw, largest: v2.read(model, raw, None, largest),
    }
    for place, function in read.items():
        for name in ("lists in lists", "many objects", "many keys", "escapes", "a long number"):
            yield Row(place, name, JSON[name], partial(lambda f, raw: f(MODEL, raw, ENOUGH), function))
    for name, texts in LITERALS.items():
        yield Row("serving: POST /{name}/prediction", f"literal: {name}", texts, literals.read)
    for name, make in PREDICTIONS.items():
        yield Row("serving: POST /{name}/prediction", name, make, read_prediction)
    yield Row("serving: POST /v2/models/{name}/infer", "texts as bytes", times(b"\0\0\0\0"),
              lambda raw: from_bytes(TEXTS, raw, shape=[len(raw) // 4], datatype="BYTES"))  # fmt: skip
    yield Row(
        "serving: POST /v2/models/{name}/infer", "numbers", times([1.5, 2, 3]), lambda data: from_json(FLOAT, data)
    )
    yield Row("serving: POST /v2/models/{name}/infer", "rows of unequal length", times([[1.5], []]),
              lambda data: from_json(FLOAT, data))  # fmt: skip
    yield Row("serving: POST /v2/models/{name}/infer", "texts for numbers", times(["1.5"]),
              lambda data: from_json(FLOAT, data))  # fmt: skip
    infer = message("ModelInferRequest")
    for name, make in {
        "inputs": times(b"\x2a\x00"),
        "parameters": times(field(4, field(1, b"a"))),
        "values": lambda size: field(5, field(5, b"\x32" + varint(size) + b"\0" * size)),
        "texts": lambda size: field(5, field(5, b"\x42\x00" * (size // 2))),
        "a number that never ends": times(b"\xff"),
    }.items():
        yield Row("serving: gRPC", name, make, partial(grpc_service.parse, infer))
    yield Row("serving: data URLs", "base64", times("QUFB", "data:;base64,"), remote.fetch)
    yield Row("serving: data URLs", "not base64", times("!", "data:;base64,"), remote.fetch)
    tensor = field(5, field(13, field(1, b"location") + field(2, b"weights")))
    for name, letters in {"one word": "a", "words": "a ", "points": ".", "accents": "é"}.items():
        yield Row("serving: texts of a task", name, times(letters), read_words)
    yield Row("serving: maps of a task", "dots", dots, find_shapes)
    yield Row("serving: ONNX models", "tensors", of(times(tensor), partial(field, 7)), onnx_check)
    yield Row("serving: ONNX models", "graphs in graphs", lambda size: b"location" + nested(7, size), onnx_check)


def read_prediction(raw: bytes) -> None:
    paddle_serving.read_prediction(MODEL, raw, ENOUGH)


def onnx_check(data: bytes) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        onnx_files.check(Path(file.name))
