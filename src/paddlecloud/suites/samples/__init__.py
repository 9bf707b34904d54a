"""Small data sets in the formats that Paddle's suites train on, generated: for a first run and for tests.

The same seed gives the same files. What they show can be learnt within seconds; they say nothing of accuracy.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import NamedTuple

from paddlecloud.suites.samples import coco, icdar, imagefolder, masks, text, wav

MOST = 100_000


class Format(NamedTuple):
    suite: str
    samples: str
    """What a sample is, in a few words."""
    usual: int
    """Samples to train on, unless another number is wanted."""
    write: Callable[[Path, str, int, Random], None]
    """Into a folder, for `train` or `eval`, so many samples."""


FORMATS = {
    "imagefolder": Format("PaddleClas", "pictures of four shapes", 96, imagefolder.write),
    "coco": Format("PaddleDetection", "pictures with boxes and balls", 24, coco.write),
    "icdar": Format("PaddleOCR", "pictures with words", 16, icdar.write),
    "masks": Format("PaddleSeg", "pictures with two coloured areas", 16, masks.write),
    "text": Format("PaddleNLP", "sentences, good or bad", 64, text.write),
    "wav": Format("PaddleSpeech", "tones, low or high", 16, wav.write),
}


def generate(name: str, folder: Path, *, count: int = 0, seed: int = 0) -> tuple[int, int]:
    """Numbers of the samples to train on and to evaluate with. `folder` is created; what lies in it is written over."""
    wanted = FORMATS[name]
    train = count or wanted.usual
    evaluation = max(4, train // 4)
    for split, number in (("train", train), ("eval", evaluation)):
        wanted.write(folder, split, number, Random(f"{seed}:{split}"))  # noqa: S311 - samples, no secrets
    return train, evaluation
