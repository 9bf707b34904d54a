"""Tensors as the protocols name them, and their way from JSON to numpy and back.

A dimension of -1 is free; the first free one of every input is the batch.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from paddlecloud.serving import values
from paddlecloud.serving.errors import BadInput, TooLarge
from paddlecloud.serving.limits import MOST_PARTS

DATATYPES: dict[str, str] = {
    "BOOL": "bool",
    "UINT8": "uint8",
    "UINT16": "uint16",
    "UINT32": "uint32",
    "UINT64": "uint64",
    "INT8": "int8",
    "INT16": "int16",
    "INT32": "int32",
    "INT64": "int64",
    "FP16": "float16",
    "FP32": "float32",
    "FP64": "float64",
    "BYTES": "object",
}
"""Names of the Open Inference Protocol → names of numpy."""
NAMES = {numpy: name for name, numpy in DATATYPES.items()}

Feeds = dict[str, Any]
"""Name of a tensor → numpy array."""


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """What a model declares of one input or output. A shape of None means it declares none."""

    name: str
    datatype: str
    shape: tuple[int, ...] | None = None

    @property
    def dtype(self) -> str:
        return DATATYPES[self.datatype]

    @property
    def expected(self) -> str:
        """What to send, in words: `FP32 values of shape [N, 64], N any number`."""
        if self.shape is None:
            return f"{self.datatype} values"
        sizes = ", ".join("N" if size == -1 else str(size) for size in self.shape)
        return f"{self.datatype} values of shape [{sizes}]{', N any number' if -1 in self.shape else ''}"

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "datatype": self.datatype, "shape": list(self.shape or ())}


def datatype_of(array: Any) -> str:
    """`BYTES` for texts and everything else that is no number."""
    return NAMES.get(str(array.dtype), "BYTES")


def from_json(spec: TensorSpec, data: Any, *, shape: Any = None, datatype: str | None = None) -> Any:
    """An array of the input's type from nested or flat lists; `BadInput` says what does not fit."""
    given = datatype or spec.datatype
    if not isinstance(given, str) or given not in DATATYPES:
        raise BadInput(f"input {spec.name!r}: unknown datatype {given!r}; known are {', '.join(DATATYPES)}")
    array = array_of(spec, data, datatype=given)
    if shape is not None:
        array = reshaped(spec.name, array, shape)
    return fitting(spec, array)


def array_of(spec: TensorSpec, data: Any, *, datatype: str) -> Any:
    """Nested lists as an array of that type; `BadInput` names the value that is none."""
    try:
        return values.from_lists(data, DATATYPES[datatype])
    except values.Unfit as error:
        raise unfit(spec, error, datatype=datatype) from error


def unfit(spec: TensorSpec, error: Exception, *, datatype: str = "") -> BadInput:
    sent = f" (sent as {datatype})" if datatype and datatype != spec.datatype else ""
    return BadInput(f"input {spec.name!r}{sent}: {values.reason_of(error)}; expected are {spec.expected}")


def from_bytes(spec: TensorSpec, raw: bytes, *, shape: Any, datatype: str) -> Any:
    """An array from its little-endian bytes, as the protocol's binary form and gRPC send it."""
    if datatype not in DATATYPES:
        raise BadInput(f"input {spec.name!r}: unknown datatype {datatype!r}")
    if datatype == "BYTES":
        return fitting(spec, reshaped(spec.name, np.array(_split_texts(spec.name, raw), dtype="object"), shape))
    kind = np.dtype(DATATYPES[datatype]).newbyteorder("<")
    if len(raw) % kind.itemsize:
        raise BadInput(f"input {spec.name!r}: {len(raw)} bytes are no whole number of {datatype} values")
    return fitting(spec, reshaped(spec.name, np.frombuffer(raw, dtype=kind), shape))


def to_bytes(array: Any) -> bytes:
    """The counterpart of `from_bytes`; texts are preceded by their length."""
    if datatype_of(array) == "BYTES":
        texts = [item if isinstance(item, bytes) else str(item).encode() for item in array.reshape(-1)]
        return b"".join(len(text).to_bytes(4, "little") + text for text in texts)
    return bytes(np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes())


def fitting(spec: TensorSpec, array: Any) -> Any:
    """The array as the model wants it, or `BadInput`. Numbers change their type only where nothing is lost."""
    if str(array.dtype) != spec.dtype:
        array = _converted(spec, array)
    if spec.datatype == "BYTES":
        try:
            values.check_texts(array)
        except values.Unfit as error:
            raise unfit(spec, error) from error
    if spec.shape is not None and not _fits(array.shape, spec.shape):
        raise BadInput(
            f"input {spec.name!r} has shape {list(array.shape)}; expected are {spec.expected}: "
            f"{_difference(array.shape, spec.shape)}"
        )
    if array.size == 0:
        raise BadInput(f"input {spec.name!r} is empty")
    return np.ascontiguousarray(array)


def as_lists(array: Any) -> Any:
    """Nested lists that JSON can carry; what JSON has no word for (NaN, infinities) becomes null."""
    if array.dtype.kind == "f":
        finite = np.isfinite(array)
        if not finite.all():
            return np.where(finite, array, None).tolist()
    if array.dtype.kind == "O":
        return [item.decode(errors="replace") if isinstance(item, bytes) else item for item in array.tolist()]
    return array.tolist()


def as_json(content: Any) -> bytes:
    try:
        return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # half a character, as a client may send it in escapes; it goes back in escapes
        return json.dumps(content, separators=(",", ":")).encode()


def parse_json(body: bytes, *, largest: int) -> dict[str, Any]:
    """The JSON object of a request, of at most `largest` bytes and `MOST_PARTS` lists and objects."""
    if len(body) > largest:
        raise TooLarge(
            f"the JSON has {len(body)} bytes, allowed are {largest}, a quarter of --largest-body: "
            "send tensors in binary form, or start the server with more"
        )
    if body.count(b"[") + body.count(b"{") > MOST_PARTS:
        raise TooLarge(f"the JSON has more than {MOST_PARTS} lists and objects; send tensors flat or in binary form")
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"the body is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise BadInput("the body must be a JSON object")
    return value


def reshaped(name: str, array: Any, shape: Any) -> Any:
    if not isinstance(shape, (list, tuple)) or not all(type(size) is int and size >= 0 for size in shape):
        raise BadInput(f"input {name!r}: shape must be a list of sizes, not {shape!r}")
    try:
        return array.reshape(tuple(shape))
    except (ValueError, OverflowError):
        raise _not_filling(name, array.size, list(shape)) from None


def _not_filling(name: str, size: int, shape: list[int]) -> BadInput:
    modest = len(shape) <= 8 and all(size < 1 << 32 for size in shape)  # others may be as large as digits can write
    has = f", which has {math.prod(shape)}" if modest else ""
    return BadInput(f"input {name!r}: {size} values do not fill shape {shape}{has}")


def _converted(spec: TensorSpec, array: Any) -> Any:
    """Floating point for BOOL or integers must hold their values already: what a cast makes of others differs from one
    processor to the next."""
    with np.errstate(all="ignore"):  # what overflows is found by comparing
        numbers = (array.dtype.kind in "fiub") == (spec.datatype != "BYTES")
        if numbers and array.dtype.kind == "f" and np.dtype(spec.dtype).kind in "iub":
            numbers = values.holds(array, spec.dtype)
        converted = array.astype(spec.dtype) if numbers else None
    if converted is None or not _same(array, converted):
        raise BadInput(f"input {spec.name!r}: {datatype_of(array)} values do not fit {spec.datatype}")
    return converted


def _fits(shape: tuple[int, ...], declared: tuple[int, ...]) -> bool:
    return len(shape) == len(declared) and all(want in (-1, have) for have, want in zip(shape, declared, strict=True))


def _difference(shape: tuple[int, ...], declared: tuple[int, ...]) -> str:
    """Where a shape that does not fit departs from the declared one."""
    if len(shape) == len(declared):
        at = next(at for at, (have, want) in enumerate(zip(shape, declared, strict=True)) if want not in (-1, have))
        return f"dimension {at + 1} is {shape[at]}, not {declared[at]}"
    rows = f"; one row is sent as shape {[1, *shape]}" if _fits((1, *shape), declared) else ""
    return f"{len(shape)} dimension{'' if len(shape) == 1 else 's'}, not {len(declared)}{rows}"


def _same(array: Any, converted: Any) -> bool:
    if array.dtype.kind == "f" and converted.dtype.kind == "f":
        return bool((np.isfinite(converted) == np.isfinite(array)).all())
    return bool((array == converted).all())


def _split_texts(name: str, raw: bytes) -> list[bytes]:
    texts, at = [], 0
    while at < len(raw):
        size = int.from_bytes(raw[at : at + 4], "little")
        text = raw[at + 4 : at + 4 + size]
        if at + 4 > len(raw) or len(text) != size:
            raise BadInput(f"input {name!r}: the texts are cut off")
        texts.append(text)
        at += 4 + size
        if len(texts) > MOST_PARTS:
            raise BadInput(f"input {name!r} has more than {MOST_PARTS} texts")
    return texts
