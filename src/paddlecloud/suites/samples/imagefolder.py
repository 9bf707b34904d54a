"""PaddleClas: pictures, `train_list.txt` and `val_list.txt` of `PATH NUMBER`, and `label.txt` of `NUMBER NAME`."""

from __future__ import annotations

from pathlib import Path
from random import Random

from paddlecloud.suites.samples.canvas import Canvas, noise

LABELS = ("circle", "square", "hline", "vline")
SIDE = 64


def write(folder: Path, split: str, count: int, random: Random) -> None:
    name = {"train": "train", "eval": "val"}[split]
    lines = []
    for number in range(count):
        label = number % len(LABELS)
        path = f"{name}/{LABELS[label]}/{number}.png"
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(picture(label, random).png())
        lines.append(f"{path} {label}\n")
    (folder / f"{name}_list.txt").write_text("".join(lines), encoding="utf-8")
    names = "".join(f"{number} {label}\n" for number, label in enumerate(LABELS))
    (folder / "label.txt").write_text(names, encoding="utf-8")


def picture(label: int, random: Random) -> Canvas:
    drawn = Canvas(SIDE, SIDE, noise(random, SIDE * SIDE * 3, 0, 60))
    x, y = random.randrange(10, 54), random.randrange(10, 54)
    if label == 0:
        drawn.ellipse(x, y, 10, 10, (255, 0, 0))
    elif label == 1:
        drawn.rectangle(x - 9, y - 9, x + 9, y + 9, (0, 255, 0))
    elif label == 2:
        drawn.rectangle(0, y - 2, SIDE, y + 2, (0, 0, 255))
    else:
        drawn.rectangle(x - 2, 0, x + 2, SIDE, (255, 255, 255))
    return drawn
