"""Classification of texts, as PaddleNLP trains it on ERNIE: pieces of words of a vocabulary, then a label."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Any

import numpy as np

from paddlecloud.serving.errors import BadInput, ModelError
from paddlecloud.serving.tasks import scores
from paddlecloud.serving.tasks.options import Options
from paddlecloud.serving.tensors import Feeds, TensorSpec

TEXT = TensorSpec("text", "BYTES", (-1,))
UNKNOWN, BEGIN, END, PADDING = "[UNK]", "[CLS]", "[SEP]", "[PAD]"
LONGEST_TEXT, LONGEST_WORD = 100_000, 100
"""In characters; what is longer is refused, and a word that is longer is unknown."""


class Texts:
    inputs = (TEXT,)
    outputs = (scores.LABEL, scores.PROBABILITY)

    def __init__(self, options: Options) -> None:
        self._numbers = {word: number for number, word in enumerate(options.lines("vocabulary"))}
        missing = [word for word in (UNKNOWN, BEGIN, END, PADDING) if word not in self._numbers]
        if missing:
            raise ModelError(f"serving.yaml: processing.vocabulary: it has no {missing[0]}")
        self._length = options.whole("length", 128, 3, 8192)
        self._labels = scores.labels(options)

    def bind(self, inputs: tuple[TensorSpec, ...], outputs: tuple[TensorSpec, ...]) -> None:
        first, *others = inputs
        self._words = first.name
        self._others = [spec.name for spec in others]
        self._output = outputs[0].name

    def preprocess(self, inputs: dict[str, Any]) -> dict[str, Any]:
        text = inputs.get(TEXT.name)
        if isinstance(text, bytes):
            text = text.decode(errors="replace")
        if not isinstance(text, str) or len(text) > LONGEST_TEXT:
            raise BadInput(f"feed needs {TEXT.name!r}: a text of at most {LONGEST_TEXT} characters")
        pieces = [*[BEGIN, *self._pieces(text)][: self._length - 1], END]
        pieces += [PADDING] * (self._length - len(pieces))
        numbers = np.array([self._numbers[piece] for piece in pieces], "int64")
        return {self._words: numbers, **{name: np.zeros(self._length, "int64") for name in self._others}}

    def postprocess(self, outputs: Feeds, inputs: list[dict[str, Any]]) -> dict[str, list[Any]]:
        return scores.best(outputs, self._output, self._labels)

    def _pieces(self, text: str) -> Iterator[str]:
        for word in _words(text):
            yield from self._parts(word)

    def _parts(self, word: str) -> list[str]:
        """The longest pieces that the vocabulary has, from the left; all but the first begin with `##`."""
        found, at = [], 0
        if len(word) > LONGEST_WORD:
            return [UNKNOWN]
        while at < len(word):
            marks = "##" if at else ""
            end = next((end for end in range(len(word), at, -1) if marks + word[at:end] in self._numbers), at)
            if end == at:
                return [UNKNOWN]
            found.append(marks + word[at:end])
            at = end
        return found


def _words(text: str) -> Iterator[str]:
    """In small letters and without accents; punctuation and Chinese characters are words by themselves."""
    letters = []
    for letter in unicodedata.normalize("NFD", text.lower()):
        kind = unicodedata.category(letter)
        if kind == "Mn":
            continue
        alone = kind[0] in "PS" or "一" <= letter <= "鿿" or "㐀" <= letter <= "䶿"
        letters.append(f" {letter} " if alone else letter)
    yield from "".join(letters).split()
