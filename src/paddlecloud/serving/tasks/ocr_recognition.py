"""What a line of text says, as PaddleOCR trains it with CTC: for each step the likeliest character or a blank.

`characters` are those of the dictionary that the network was trained with, in its order; the blank comes before them.
"""

from __future__ import annotations

from typing import Any

from paddlecloud.serving.errors import ModelError
from paddlecloud.serving.tasks import pictures, scores
from paddlecloud.serving.tasks.options import Options
from paddlecloud.serving.tensors import Feeds, TensorSpec

TEXT, SCORE = TensorSpec("text", "BYTES", (-1,)), TensorSpec("score", "FP32", (-1,))
HALVES = (0.5, 0.5, 0.5)


class TextLines:
    inputs = (pictures.IMAGE,)
    outputs = (TEXT, SCORE)

    def __init__(self, options: Options) -> None:
        self._prepare = pictures.preparation(options, channels="BGR", mean=HALVES, std=HALVES)._replace(padded=True)
        self._characters = options.lines("characters")
        if not self._characters:
            raise ModelError("serving.yaml: processing.characters: ocr-rec takes a dictionary with a line or more")

    def bind(self, inputs: tuple[TensorSpec, ...], outputs: tuple[TensorSpec, ...]) -> None:
        self._input, self._output = scores.only(inputs, "input", "ocr-rec").name, outputs[0].name

    def preprocess(self, inputs: dict[str, Any]) -> dict[str, Any]:
        return {self._input: self._prepare.apply(inputs)}

    def postprocess(self, outputs: Feeds, inputs: list[dict[str, Any]]) -> dict[str, list[Any]]:
        read = [self._read(row) for row in outputs[self._output]]
        return {TEXT.name: [text for text, _ in read], SCORE.name: [score for _, score in read]}

    def _read(self, steps: Any) -> tuple[str, float]:
        """A character that is repeated counts once, unless a blank stands between."""
        found, before = [], 0
        for number, likelihood in zip(steps.argmax(1).tolist(), steps.max(1).tolist(), strict=True):
            if number and number != before:
                character = self._characters[number - 1] if number <= len(self._characters) else " "
                found.append((character, float(likelihood)))
            before = number
        score = sum(likelihood for _, likelihood in found) / len(found) if found else 0.0
        return "".join(character for character, _ in found), score
