"""Areas of pictures, as PaddleSeg exports its networks: for each pixel the number of its class, or scores of classes.

The mask is a PNG in base64, as large as the picture that was sent; `areas` has the share of each class in it.
"""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np

from paddlecloud.serving.tasks import pictures, scores
from paddlecloud.serving.tasks.options import Options
from paddlecloud.serving.tensors import Feeds, TensorSpec

MASK, AREAS = TensorSpec("mask", "BYTES", (-1,)), TensorSpec("areas", "BYTES", (-1,))
HALVES = (0.5, 0.5, 0.5)


class Segments:
    inputs = (pictures.IMAGE,)
    outputs = (MASK, AREAS)

    def __init__(self, options: Options) -> None:
        self._prepare = pictures.preparation(options, mean=HALVES, std=HALVES)
        self._labels = scores.labels(options)

    def bind(self, inputs: tuple[TensorSpec, ...], outputs: tuple[TensorSpec, ...]) -> None:
        self._input, self._output = scores.only(inputs, "input", "seg").name, outputs[0].name

    def preprocess(self, inputs: dict[str, Any]) -> dict[str, Any]:
        return {self._input: self._prepare.apply(inputs)}

    def postprocess(self, outputs: Feeds, inputs: list[dict[str, Any]]) -> dict[str, list[Any]]:
        found = outputs[self._output]
        classes = found.argmax(1) if found.ndim == 4 else found
        masks = [row.astype("uint8") for row in classes]
        return {
            MASK.name: [_png(mask, entry[pictures.SIZE]) for mask, entry in zip(masks, inputs, strict=True)],
            AREAS.name: [self._areas(mask) for mask in masks],
        }

    def _areas(self, mask: Any) -> dict[str, float]:
        numbers, counts = np.unique(mask, return_counts=True)
        shares = zip(numbers, counts / mask.size, strict=True)
        return {scores.name_of(self._labels, int(number)): round(float(share), 4) for number, share in shares}


def _png(mask: Any, size: tuple[int, int]) -> str:
    image = pictures.import_library()
    written = io.BytesIO()
    image.fromarray(mask).resize((size[1], size[0]), image.Resampling.NEAREST).save(written, "PNG")
    return base64.b64encode(written.getvalue()).decode()
