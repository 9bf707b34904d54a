"""Where text is in pictures, as PaddleOCR trains it with differentiable binarization (DB).

The network gives each pixel the probability that it lies in a shrunk line of text. Connected pixels above `threshold`
get their smallest rectangle; where the mean of its pixels is above `boxThreshold`, it grows by `unclip` times its area
through its perimeter, as DBPostProcess does. A rectangle that grows stays one, so no library for polygons is needed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from paddlecloud.serving.tasks import pictures, scores
from paddlecloud.serving.tasks.geometry import Rectangle, components, smallest_rectangle
from paddlecloud.serving.tasks.options import Options
from paddlecloud.serving.tensors import Feeds, TensorSpec

BOXES = TensorSpec("boxes", "BYTES", (-1,))
SMALLEST, SMALLEST_GROWN = 3, 5
"""Pixels of the network's picture that the shorter side has at least, before it grows and after."""
MOST_BOXES = 1000


class TextBoxes:
    inputs = (pictures.IMAGE,)
    outputs = (BOXES,)

    def __init__(self, options: Options) -> None:
        self._prepare = pictures.preparation(options, channels="BGR")
        self._threshold = options.number("threshold", 0.3, 0, 1)
        self._box_threshold = options.number("boxThreshold", 0.6, 0, 1)
        self._unclip = options.number("unclip", 1.5, 0, 10)

    def bind(self, inputs: tuple[TensorSpec, ...], outputs: tuple[TensorSpec, ...]) -> None:
        self._input, self._output = scores.only(inputs, "input", "ocr-det").name, outputs[0].name

    def preprocess(self, inputs: dict[str, Any]) -> dict[str, Any]:
        return {self._input: self._prepare.apply(inputs)}

    def postprocess(self, outputs: Feeds, inputs: list[dict[str, Any]]) -> dict[str, list[Any]]:
        maps = outputs[self._output]
        planes = maps.reshape(maps.shape[0], *maps.shape[-2:])
        found = [self._boxes(plane, entry[pictures.SIZE]) for plane, entry in zip(planes, inputs, strict=True)]
        return {BOXES.name: found}

    def _boxes(self, plane: Any, size: tuple[int, int]) -> list[dict[str, Any]]:
        largest = np.array([size[1], size[0]])
        scale = largest / np.array([plane.shape[1], plane.shape[0]])
        found = []
        for number, points in enumerate(components(plane > self._threshold)):
            if number == MOST_BOXES:
                break
            rectangle = smallest_rectangle(points)
            if min(rectangle.sides) < SMALLEST or (score := _mean(plane, rectangle)) < self._box_threshold:
                continue
            length, width = rectangle.sides
            grown = rectangle.grown(length * width * self._unclip / (2 * (length + width)))
            if min(grown.sides) < SMALLEST_GROWN:
                continue
            corners = np.clip(np.round(grown.corners() * scale), 0, largest).astype(int)
            found.append({"points": corners.tolist(), "score": round(score, 4)})
        return sorted(found, key=lambda box: (box["points"][0][1], box["points"][0][0]))


def _mean(plane: Any, rectangle: Rectangle) -> float:
    """Of the pixels in the rectangle."""
    corners = rectangle.corners()
    left, top = np.maximum(np.floor(corners.min(0)), 0).astype(int)
    right, bottom = np.ceil(corners.max(0)).astype(int) + 1
    part = plane[top:bottom, left:right]
    ys, xs = np.mgrid[top : top + part.shape[0], left : left + part.shape[1]]
    inside = rectangle.holds(np.stack([xs, ys], axis=-1).astype("float64"))
    return float(part[inside].mean()) if inside.any() else 0.0
