"""Objects in pictures, as PaddleDetection exports its networks: with the selection of boxes (NMS) inside.

The network's first output has a row for each box, `[class, score, left, top, right, bottom]` in pixels of the picture
that was sent, the second one says how many belong to each picture.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from paddlecloud.serving.errors import ModelError
from paddlecloud.serving.tasks import pictures, scores
from paddlecloud.serving.tasks.options import Options
from paddlecloud.serving.tensors import Feeds, TensorSpec

BOXES = TensorSpec("boxes", "BYTES", (-1,))
IMAGE, SCALE, SHAPE = "image", "scale_factor", "im_shape"


class Detection:
    inputs = (pictures.IMAGE,)
    outputs = (BOXES,)

    def __init__(self, options: Options) -> None:
        self._prepare = pictures.preparation(options)
        self._threshold = options.number("score", 0.5, 0, 1)
        self._labels = scores.labels(options)

    def bind(self, inputs: tuple[TensorSpec, ...], outputs: tuple[TensorSpec, ...]) -> None:
        names = {spec.name for spec in inputs}
        if IMAGE not in names or not names <= {IMAGE, SCALE, SHAPE} or len(outputs) < 2:
            raise ModelError(
                "serving.yaml: processing.task: det is for exports of PaddleDetection, with the inputs image and "
                f"scale_factor and two outputs; this model takes {', '.join(sorted(names))} and gives {len(outputs)}"
            )
        self._boxes, self._counts = outputs[0].name, outputs[1].name

    def preprocess(self, inputs: dict[str, Any]) -> dict[str, Any]:
        planes = self._prepare.apply(inputs)
        height, width = inputs[pictures.SIZE]
        target = (self._prepare.height, self._prepare.width)
        scale = np.array([target[0] / height, target[1] / width], "float32")
        return {IMAGE: planes, SCALE: scale, SHAPE: np.array(target, "float32")}

    def postprocess(self, outputs: Feeds, inputs: list[dict[str, Any]]) -> dict[str, list[Any]]:
        edges = np.cumsum(outputs[self._counts].reshape(-1))[:-1]
        rows = outputs[self._boxes].reshape(-1, 6)
        return {BOXES.name: [[self._box(row) for row in part if self._holds(row)] for part in np.split(rows, edges)]}

    def _holds(self, row: Any) -> bool:
        """A class below 0 means that there is nothing."""
        return bool(row[0] >= 0 and row[1] >= self._threshold)

    def _box(self, row: Any) -> dict[str, Any]:
        corners = [round(float(value), 1) for value in row[2:6]]
        return {"label": scores.name_of(self._labels, int(row[0])), "score": float(row[1]), "box": corners}
