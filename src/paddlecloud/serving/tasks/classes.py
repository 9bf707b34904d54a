"""Classification of pictures, as PaddleClas trains it: the likeliest label and its probability."""

from __future__ import annotations

from typing import Any

from paddlecloud.serving.tasks import pictures, scores
from paddlecloud.serving.tasks.options import Options
from paddlecloud.serving.tensors import Feeds, TensorSpec


class Pictures:
    inputs = (pictures.IMAGE,)
    outputs = (scores.LABEL, scores.PROBABILITY)

    def __init__(self, options: Options) -> None:
        self._prepare = pictures.preparation(options)
        self._labels = scores.labels(options)

    def bind(self, inputs: tuple[TensorSpec, ...], outputs: tuple[TensorSpec, ...]) -> None:
        self._input, self._output = scores.only(inputs, "input", "clas").name, outputs[0].name

    def preprocess(self, inputs: dict[str, Any]) -> dict[str, Any]:
        return {self._input: self._prepare.apply(inputs)}

    def postprocess(self, outputs: Feeds, inputs: list[dict[str, Any]]) -> dict[str, list[Any]]:
        return scores.best(outputs, self._output, self._labels)
