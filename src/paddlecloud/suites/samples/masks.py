"""PaddleSeg: pictures, masks of class numbers, and lists `train.txt` and `val.txt` of `PICTURE MASK`."""

from __future__ import annotations

from pathlib import Path
from random import Random

from paddlecloud.suites.samples.canvas import Canvas, noise

LABELS = ("background", "green", "red")
SIDE = 128
RADIUS = 22


def write(folder: Path, split: str, count: int, random: Random) -> None:
    name = {"train": "train", "eval": "val"}[split]
    for needed in ("images", "labels"):
        (folder / needed).mkdir(parents=True, exist_ok=True)
    lines = []
    for number in range(count):
        drawn = Canvas(SIDE, SIDE, noise(random, SIDE * SIDE * 3, 0, 60))
        mask = Canvas(SIDE, SIDE, bytes(SIDE * SIDE), channels=1)
        for label, colour in ((1, (0, 255, 0)), (2, (255, 0, 0))):
            x, y = random.randrange(30, 98), random.randrange(30, 98)
            drawn.ellipse(x, y, RADIUS, RADIUS, colour)
            mask.ellipse(x, y, RADIUS, RADIUS, (label,))
        (folder / f"images/{name}{number}.png").write_bytes(drawn.png())
        (folder / f"labels/{name}{number}.png").write_bytes(mask.png())
        lines.append(f"images/{name}{number}.png labels/{name}{number}.png\n")
    (folder / f"{name}.txt").write_text("".join(lines), encoding="utf-8")
    (folder / "labels.txt").write_text("".join(f"{label}\n" for label in LABELS), encoding="utf-8")
