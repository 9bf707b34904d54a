"""PaddleOCR: for detection `train.txt` and `val.txt` of `PATH<tab>[{"transcription", "points"}]`, as ICDAR's sets are
converted; for recognition the words alone, `rec_train.txt` and `rec_val.txt` of `PATH<tab>TEXT`, and `dict.txt`."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

from paddlecloud.suites.samples.canvas import GLYPH_HEIGHT, GLYPHS, Canvas, noise, text_width

SIDE = 160
SCALE = 3
LETTERS = 4
MARGIN = 4


def write(folder: Path, split: str, count: int, random: Random) -> None:
    name = {"train": "train", "eval": "val"}[split]
    for needed in ("img", "words"):
        (folder / needed).mkdir(parents=True, exist_ok=True)
    pages, words = [], []
    width, height = text_width("A" * LETTERS, SCALE), GLYPH_HEIGHT * SCALE
    for number in range(count):
        drawn = Canvas(SIDE, SIDE, noise(random, SIDE * SIDE * 3, 200, 255))
        found = []
        for line in range(2):
            text = "".join(random.choice(tuple(GLYPHS)) for _ in range(LETTERS))
            left, top = random.randrange(MARGIN, 60), 20 + line * 70 + random.randrange(20)
            drawn.text(text, left, top, (0, 0, 0), scale=SCALE)
            x, y = left - MARGIN, top - MARGIN
            right, bottom = left + width + MARGIN, top + height + MARGIN
            found.append({"transcription": text, "points": [[x, y], [right, y], [right, bottom], [x, bottom]]})
            word = f"words/{name}{number}_{line}.png"
            (folder / word).write_bytes(drawn.cut(x, y, right - x, bottom - y).png())
            words.append(f"{word}\t{text}\n")
        path = f"img/{name}{number}.png"
        (folder / path).write_bytes(drawn.png())
        pages.append(f"{path}\t{json.dumps(found)}\n")
    (folder / f"{name}.txt").write_text("".join(pages), encoding="utf-8")
    (folder / f"rec_{name}.txt").write_text("".join(words), encoding="utf-8")
    (folder / "dict.txt").write_text("".join(f"{letter}\n" for letter in GLYPHS), encoding="utf-8")
