"""What a version takes and gives: names, types and shapes of its inputs and outputs. Part of a ModelVersion's spec."""

from __future__ import annotations

from typing import Annotated

import msgspec

from paddlecloud.api.fields import Int64, Wire, doc

MOST_TENSORS = 64
MOST_DIMENSIONS = 16
LONGEST_NAME = 256
DATATYPES = (
    "BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16", "BF16", "FP32", "FP64",
    "BYTES",
)  # fmt: skip
"""As the Open Inference Protocol calls them."""


class ModelTensor(Wire):
    """An input or an output."""

    name: Annotated[str, doc("As the model calls it.", required=True, minLength=1, maxLength=LONGEST_NAME)]
    datatype: Annotated[
        str, doc("Such as `FP32`, as in the Open Inference Protocol.", required=True, enum=list(DATATYPES))
    ]
    shape: Annotated[
        list[Annotated[Int64, msgspec.Meta(extra_json_schema={"minimum": -1})]] | None,
        doc("Its sizes, -1 for any; nothing if the model does not say.", maxItems=MOST_DIMENSIONS),
    ] = None

    def __str__(self) -> str:
        sizes = "" if self.shape is None else f"[{', '.join('N' if size < 0 else str(size) for size in self.shape)}]"
        return f"{self.name} {self.datatype}{sizes}"


class Signature(Wire):
    """What a version takes and gives."""

    inputs: Annotated[list[ModelTensor] | None, doc("What it takes.", maxItems=MOST_TENSORS)] = None
    outputs: Annotated[list[ModelTensor] | None, doc("What it gives.", maxItems=MOST_TENSORS)] = None
