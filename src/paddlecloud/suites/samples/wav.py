"""PaddleSpeech: sounds of a second in `train` and `dev`, named `CLASS_NUMBER.wav`: a low tone or a high one."""

from __future__ import annotations

import array
import math
import sys
import wave
from pathlib import Path
from random import Random

LABELS = ("low", "high")
HERTZ = (300, 2000)
RATE = 16_000


def write(folder: Path, split: str, count: int, random: Random) -> None:
    name = {"train": "train", "eval": "dev"}[split]
    (folder / name).mkdir(parents=True, exist_ok=True)
    for number in range(count):
        label = number % len(LABELS)
        with wave.open(str(folder / name / f"{label}_{number}.wav"), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(RATE)
            file.writeframes(_tone(HERTZ[label], random))
    (folder / "labels.txt").write_text("".join(f"{label}\n" for label in LABELS), encoding="utf-8")


def _tone(hertz: int, random: Random) -> bytes:
    turn = 2 * math.pi * hertz / RATE
    begin = random.random() * 2 * math.pi
    values = (0.4 * math.sin(begin + turn * at) + random.uniform(-0.1, 0.1) for at in range(RATE))
    samples = array.array("h", (int(32767 * value) for value in values))
    if sys.byteorder == "big":
        samples.byteswap()
    return samples.tobytes()
