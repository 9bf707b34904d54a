"""The files that an ONNX model reads its weights from: none of them may lie outside of the model's folder.

onnxruntime checks these paths itself: most of them since 1.24, those of sparse tensors since 1.27. An image may have an
older one, and a model that was fetched must not be able to name a file of the pod. Only the structure of the model is
walked, its weights are passed over.
"""

from __future__ import annotations

import mmap
from pathlib import Path

from paddlecloud.serving import wire
from paddlecloud.serving.errors import ModelError

MOST_FIELDS = 1 << 24
IN_MEMORY = b"*/"
"""How onnxruntime marks a location that is an address in its own memory; before 1.27 it believed models that did."""

# Field numbers of onnx.proto, down to TensorProto.external_data.
_ENTRY: wire.Schema = {}
_TENSOR: wire.Schema = {13: _ENTRY}
_SPARSE: wire.Schema = {1: _TENSOR, 2: _TENSOR}
_GRAPH: dict[int, wire.Schema] = {}
_ATTRIBUTE: wire.Schema = {5: _TENSOR, 6: _GRAPH, 10: _TENSOR, 11: _GRAPH, 22: _SPARSE, 23: _SPARSE}
_NODE: wire.Schema = {5: _ATTRIBUTE}
_GRAPH.update({1: _NODE, 5: _TENSOR, 15: _SPARSE})
_MODEL: wire.Schema = {7: _GRAPH, 20: {1: _GRAPH, 2: _GRAPH}, 25: {7: _NODE, 11: _ATTRIBUTE}}
_VALUE = 2


def check(program: Path) -> None:
    """`ModelError` if the model names a file elsewhere."""
    with program.open("rb") as file:
        if not program.stat().st_size:
            return  # onnxruntime says what is wrong with it
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            if data.find(b"location") < 0:
                return  # all weights are in the file itself
            try:
                # Offsets and checksums are values too, and lie inside like any plain name: the order of key and value
                # in a message is the sender's choice, so that the keys are not looked at.
                names = {
                    bytes(data[field.start : field.end])
                    for field in wire.walk(data, _MODEL, most=MOST_FIELDS)
                    if field.message is _ENTRY and field.number == _VALUE
                }
            except wire.Malformed as error:
                raise ModelError(f"{program} is no ONNX model: {error}") from error
    for name in names:
        _check_name(program, name)


def _check_name(program: Path, name: bytes) -> None:
    try:
        path = (program.parent / name.decode()).resolve()
        inside = any(path.is_relative_to(folder) for folder in (program.parent.resolve(), program.resolve().parent))
    except (ValueError, OSError):  # not text, a NUL, a loop of links
        inside = False
    if not inside or name.startswith(IN_MEMORY):
        text = name.decode(errors="replace")[:200]
        raise ModelError(
            f"{program.name} reads {text!r}, which is not in the model's folder; put the weights beside it"
        )
