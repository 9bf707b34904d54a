"""Rows of scores, as a network of classes gives them, and the names of the likeliest ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from paddlecloud.serving.errors import ModelError
from paddlecloud.serving.tasks.options import Options
from paddlecloud.serving.tensors import Feeds, TensorSpec

LABEL, PROBABILITY = TensorSpec("label", "BYTES", (-1,)), TensorSpec("prob", "FP32", (-1,))


def labels(options: Options) -> list[str]:
    """Lines of PaddleClas's `label.txt` have a number before the name."""
    found = options.lines("labels", [])
    numbered = [line.partition(" ") for line in found]
    if found and all(number == str(at) and name for at, (number, _, name) in enumerate(numbered)):
        return [name for _, _, name in numbered]
    return found


def only(specs: tuple[TensorSpec, ...], what: str, task: str) -> TensorSpec:
    """The tensor of a model that has one."""
    if len(specs) != 1:
        names = ", ".join(spec.name for spec in specs)
        raise ModelError(f"serving.yaml: processing.task: {task} is for models with one {what}; this one has {names}")
    return specs[0]


def probabilities(scores: Any) -> Any:
    """Rows that add up to 1, whether the network ends with a softmax or not."""
    rows = scores.reshape(len(scores), -1).astype("float64")
    if (rows >= 0).all() and np.allclose(rows.sum(1), 1, atol=1e-3):
        return rows
    powers = np.exp(rows - rows.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def best(outputs: Feeds, output: str, names: list[str]) -> dict[str, list[Any]]:
    rows = probabilities(outputs[output])
    found = rows.argmax(1)
    return {
        LABEL.name: [name_of(names, int(number)) for number in found],
        PROBABILITY.name: [float(row[number]) for row, number in zip(rows, found, strict=True)],
    }


def name_of(names: list[str], number: int) -> str:
    return names[number] if 0 <= number < len(names) else str(number)
