"""Whether an ONNX export answers as the Paddle model it was made of. Some operators are converted wrongly, in silence:
adaptive pooling to a size that does not divide its input is off by a tenth.

Where both lie in one folder they are given the same random inputs before either is served.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from paddlecloud.serving.runners import Runner
from paddlecloud.serving.tensors import Feeds, TensorSpec

ROUNDS = 3
ROWS = 2
FREE_SIZES = (8, 32, 128, 224)
"""Tried for free dimensions other than the batch, until the original takes them."""
TOLERANCE = {"float16": 1e-2}
USUAL_TOLERANCE = 1e-3
"""Of the largest value in a tensor: kernels of two engines round differently, by some 1e-6."""


def difference(original: Runner, export: Runner) -> str:
    """A sentence about what differs, or about why that is unknown; empty when they agree."""
    ours, theirs = ({spec.name: spec.datatype for spec in runner.inputs} for runner in (original, export))
    if ours != theirs:
        return f"the export takes {_listed(theirs)}, the original {_listed(ours)}"
    if any(spec.shape is None or spec.datatype == "BYTES" for spec in original.inputs):
        return "its inputs declare no shapes of numbers, so it cannot be compared with the original"
    for seed in range(ROUNDS):
        for feeds in _inputs(original.inputs, np.random.default_rng(seed)):
            try:
                expected = original.run(feeds)
            except Exception:  # noqa: S112 - of a size that the original itself does not take
                continue
            try:
                found = export.run(feeds)
            except Exception as error:
                return f"the export fails where the original answers: {str(error).strip()[:200]}"
            if difference := _compared(expected, found):
                return difference
            break
        else:
            return "the original takes none of the inputs that were tried, so it cannot be compared"
    return ""


def _inputs(specs: tuple[TensorSpec, ...], random: np.random.Generator) -> Iterator[Feeds]:
    """Small numbers: whole ones are often places in a table, whose size is unknown."""
    for free in FREE_SIZES:
        yield {
            spec.name: _tensor(spec, [_size(n, at, free) for at, n in enumerate(spec.shape or ())], random)
            for spec in specs
        }
        if all(size >= 0 for spec in specs for size in (spec.shape or ())[1:]):
            return  # nothing but the batch is free: one size is all there is to try


def _size(declared: int, at: int, free: int) -> int:
    return declared if declared >= 0 else ROWS if at == 0 else free


def _tensor(spec: TensorSpec, shape: list[int], random: np.random.Generator) -> Any:
    if spec.datatype.startswith("FP"):
        return random.standard_normal(shape).astype(spec.dtype)
    return random.integers(0, 2, shape).astype(spec.dtype)


def _compared(expected: Feeds, found: Feeds) -> str:
    """By order: exporters give outputs other names."""
    if len(expected) != len(found):
        return f"the export has {len(found)} outputs, the original {len(expected)}"
    for (name, ours), theirs in zip(expected.items(), found.values(), strict=True):
        if ours.shape != theirs.shape:
            return f"output {name!r} has shape {list(theirs.shape)}, the original's {list(ours.shape)}"
        off = float(np.max(np.abs(ours.astype("float64") - theirs.astype("float64")), initial=0.0))
        most = TOLERANCE.get(str(ours.dtype), USUAL_TOLERANCE) * max(1.0, float(np.max(np.abs(ours), initial=0.0)))
        if not off <= most:  # also where a number is none
            return f"output {name!r} of the export is off by {off:.2g}, more than {most:.1g}"
    return ""


def _listed(inputs: dict[str, str]) -> str:
    return ", ".join(f"{name} ({datatype})" for name, datatype in inputs.items())
