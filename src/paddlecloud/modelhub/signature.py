"""The signature of a model, read from its files: without Paddle, without ONNX, and without its weights.

Three forms are known: Paddle's `.json` (since 3.0) and `.pdmodel` (before), and `.onnx`. A model of another form, or
one whose program cannot be read, has no signature but the one that its author declares. What is read is a record for
people and clients; the inference server reads the files itself.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from paddlecloud.api.model.signature import LONGEST_NAME, MOST_DIMENSIONS, MOST_TENSORS, ModelTensor, Signature
from paddlecloud.api.problems import declared_problems, encode
from paddlecloud.modelhub.errors import Refused
from paddlecloud.serving.wire import Malformed, walk

LARGEST_PROGRAM = 64 << 20
"""Of Paddle's forms, which have no weights. ONNX files have, and are not read into memory."""
MOST_FIELDS = 1 << 22
UNREADABLE = (Malformed, ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError)
"""What damaged files lead to, and those that a later release writes in another way."""

FORM = '{"inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 3]}], "outputs": […]}'

_PIR = {"bool": "BOOL", "f16": "FP16", "bf16": "BF16", "f32": "FP32", "f64": "FP64", "i8": "INT8", "ui8": "UINT8"}
_PIR |= {"i16": "INT16", "i32": "INT32", "i64": "INT64"}
_PROGRAM_DESC = {0: "BOOL", 1: "INT16", 2: "INT32", 3: "INT64", 4: "FP16", 5: "FP32", 6: "FP64", 20: "UINT8"}
_PROGRAM_DESC |= {21: "INT8", 22: "BF16"}
"""VarType.Type of Paddle's framework.proto."""
_ONNX = {1: "FP32", 2: "UINT8", 3: "INT8", 4: "UINT16", 5: "INT16", 6: "INT32", 7: "INT64", 8: "BYTES", 9: "BOOL"}
_ONNX |= {10: "FP16", 11: "FP64", 12: "UINT32", 13: "UINT64", 16: "BF16"}
"""TensorProto.DataType of onnx.proto."""


def read(root: Path, paths: Iterable[str]) -> Signature | None:
    """Of the files of a version; None where they do not say."""
    program = _program(paths)
    if not program:
        return None
    try:
        found = _of_file(root / program)
    except (*UNREADABLE, OSError):
        return None
    return _bounded(found)


def declared(text: bytes | str) -> Signature:
    """What an author wrote, in `FORM`. Raises `Refused`."""
    try:
        raw = msgspec.json.decode(text)
        found = msgspec.convert(raw, Signature)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise Refused(f"the signature cannot be read: {error}; it has the form {FORM}") from error
    for problem in declared_problems(found, "signature"):
        raise Refused(str(problem))
    if encode(found) != raw:
        raise Refused(f"the signature has fields that none has; it has the form {FORM}")
    return found


def agreed(found: Signature | None, wanted: Signature | None) -> Signature | None:
    """The one that is recorded: what the files say, or what the author declares where they say nothing.

    Raises `Refused` where they contradict each other."""
    if found is None or wanted is None:
        return found or wanted
    if changes := differences(wanted, found, was="declared is"):
        raise Refused(f"the signature does not match the files: {'; '.join(changes)}")
    return found


def differences(before: Signature | None, after: Signature | None, *, was: str = "was") -> list[str]:
    """What changed between two signatures, in sentences; nothing where one of them is not known."""
    if before is None or after is None:
        return []
    found = []
    for what in ("input", "output"):
        old, new = ({one.name: one for one in getattr(each, f"{what}s") or ()} for each in (before, after))
        for name in dict.fromkeys([*old, *new]):
            if name not in new:
                found.append(f"{what} {old[name]} is missing")
            elif name not in old:
                found.append(f"{what} {new[name]} is new")
            elif old[name].datatype != new[name].datatype or not _fits(old[name].shape, new[name].shape):
                found.append(f"{what} {new[name]} {was} {old[name]}")
    return found


def of_version(version: Mapping[str, Any]) -> Signature | None:
    """As a ModelVersion has it; None for what no release has written."""
    try:
        return msgspec.convert(version["spec"].get("signature"), Signature | None)
    except msgspec.ValidationError:
        return None


def shown(tensors: Iterable[ModelTensor] | None) -> str:
    return ", ".join(str(one) for one in tensors or ())


def _fits(one: list[int] | None, other: list[int] | None) -> bool:
    """Whether no size contradicts: -1 is any size."""
    if one is None or other is None:
        return True
    return len(one) == len(other) and all(a == b or -1 in (a, b) for a, b in zip(one, other, strict=True))


def _program(paths: Iterable[str]) -> str:
    """The file that says it, the uppermost; of several forms the one that the inference server would serve."""
    known = set(paths)
    ranked = []
    for path in known:
        folder, _, name = path.rpartition("/")
        stem, _, ending = path.rpartition(".")
        if ending == "onnx":
            ranked.append((path.count("/"), 0 if name == "model.onnx" else 2, folder, path))
        elif ending in ("json", "pdmodel") and f"{stem}.pdiparams" in known:
            ranked.append((path.count("/"), 1, folder, path))
    return min(ranked)[-1] if ranked else ""


def _of_file(path: Path) -> Signature:
    if path.suffix == ".onnx":
        with path.open("rb") as file:
            return _onnx(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    if path.stat().st_size > LARGEST_PROGRAM:
        raise ValueError("it is too large for a program")
    content = path.read_bytes()
    return of_program(content) if path.suffix == ".json" else _program_desc(content)


def _bounded(found: Signature) -> Signature | None:
    """None for what a ModelVersion cannot hold."""
    tensors = [*(found.inputs or ()), *(found.outputs or ())]
    fits = all(0 < len(one.name) <= LONGEST_NAME and len(one.shape or ()) <= MOST_DIMENSIONS for one in tensors)
    few = all(len(part or ()) <= MOST_TENSORS for part in (found.inputs, found.outputs))
    return found if tensors and fits and few else None


# Paddle 3: operations `data` and `fetch` have an attribute `name` and one output of the tensor's type


def of_program(content: bytes) -> Signature:
    """Raises one of `UNREADABLE`."""
    parts: dict[str, list[ModelTensor]] = {"1.data": [], "1.fetch": []}
    for region in json.loads(content)["program"]["regions"]:
        for block in region["blocks"]:
            for operation in block["ops"]:
                if operation["#"] in parts:
                    parts[operation["#"]].append(_pir_tensor(operation))
    return Signature(inputs=parts["1.data"], outputs=parts["1.fetch"])


def _pir_tensor(operation: Any) -> ModelTensor:
    attributes = {item["N"]: item["AT"].get("D") for item in operation["A"]}
    element, shape = operation["O"][0]["TT"]["D"][:2]
    datatype = _PIR[element["#"].partition("_")[2]]
    return ModelTensor(name=str(attributes["name"]), datatype=datatype, shape=[max(int(size), -1) for size in shape])


# Paddle 2: ProgramDesc of framework.proto. Its first block has operations `feed` and `fetch`, and all variables


def _program_desc(content: bytes) -> Signature:
    block = _first(content, 1)
    names: dict[str, list[str]] = {"feed": [], "fetch": []}
    for operation in _all(block, 4):
        kind = bytes(_first(operation, 3)).decode()
        if kind in names:  # a feed gives the input, a fetch takes the output
            for variable in _all(operation, 2 if kind == "feed" else 1):
                names[kind] += [bytes(one).decode() for one in _all(variable, 2)]
    wanted = {*names["feed"], *names["fetch"]}
    known = {}
    for variable in _all(block, 3):
        name = bytes(_first(variable, 1)).decode()
        if name in wanted and (described := next(_all(_first(variable, 2), 3), None)) is not None:
            tensor = _first(described, 1)
            shape = [_signed(size) for size in _numbers(tensor, 2)]
            known[name] = ModelTensor(name=name, datatype=_PROGRAM_DESC[_number(tensor, 1)], shape=shape)
    return Signature(inputs=[known[n] for n in names["feed"]], outputs=[known[n] for n in names["fetch"]])


# ONNX: ModelProto.graph of onnx.proto


def _onnx(content: Any) -> Signature:
    graph = _first(content, 7)
    weights = {bytes(_first(tensor, 8)).decode() for tensor in _all(graph, 5)}
    inputs = [one for one in map(_value_info, _all(graph, 11)) if one.name not in weights]
    return Signature(inputs=inputs, outputs=[_value_info(one) for one in _all(graph, 12)])


def _value_info(content: Any) -> ModelTensor:
    tensor = _first(_first(content, 2), 1)
    name, datatype = bytes(_first(content, 1)).decode(), _ONNX[_number(tensor, 1)]
    described = next(_all(tensor, 2), None)
    if described is None:
        return ModelTensor(name=name, datatype=datatype)
    shape = [next((_signed(size) for size in _numbers(dimension, 1)), -1) for dimension in _all(described, 1)]
    return ModelTensor(name=name, datatype=datatype, shape=shape)


# Messages of protocol buffers


def _all(message: Any, number: int) -> Iterator[Any]:
    for field in walk(message, {}, most=MOST_FIELDS):
        if field.number == number:
            yield memoryview(message)[field.start : field.end]


def _first(message: Any, number: int) -> Any:
    for found in _all(message, number):
        return found
    raise Malformed(f"there is no field {number}")


def _numbers(message: Any, number: int) -> Iterator[int]:
    """Of a field whose numbers are written one by one, as proto2 does, or packed, as proto3 does."""
    for content in _all(message, number):
        value = shift = 0
        for byte in content:
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                yield value
                value = shift = 0


def _number(message: Any, number: int) -> int:
    for found in _numbers(message, number):
        return found
    raise Malformed(f"there is no field {number}")


def _signed(value: int) -> int:
    """A size: negative ones, of two's complement, are any size."""
    return value if value < 1 << 63 else -1
