"""PaddleDetection: COCO's format, pictures in `train` and `val`, boxes and classes in `annotations/train.json`."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

from paddlecloud.suites.samples.canvas import Canvas, noise

LABELS = ("box", "ball")
SIDE = 128
OBJECTS = 2
"""In each picture."""


def write(folder: Path, split: str, count: int, random: Random) -> None:
    name = {"train": "train", "eval": "val"}[split]
    for needed in (name, "annotations"):
        (folder / needed).mkdir(parents=True, exist_ok=True)
    pictures: list[dict[str, Any]] = []
    found: list[dict[str, Any]] = []
    for number in range(count):
        drawn = Canvas(SIDE, SIDE, noise(random, SIDE * SIDE * 3, 0, 60))
        for _ in range(OBJECTS):
            found.append({"id": len(found) + 1, "image_id": number + 1, **_object(drawn, random)})
        (folder / name / f"{number}.png").write_bytes(drawn.png())
        pictures.append({"id": number + 1, "file_name": f"{number}.png", "width": SIDE, "height": SIDE})
    kinds = [{"id": number, "name": label} for number, label in enumerate(LABELS, 1)]
    body = {"images": pictures, "annotations": found, "categories": kinds}
    (folder / "annotations" / f"{name}.json").write_text(json.dumps(body), encoding="utf-8")


def _object(drawn: Canvas, random: Random) -> dict[str, Any]:
    label = random.randrange(len(LABELS))
    width, height = random.randrange(24, 48), random.randrange(24, 48)
    x, y = random.randrange(2, 78), random.randrange(2, 78)
    if label == 0:
        drawn.rectangle(x, y, x + width, y + height, (0, 255, 0))
    else:
        drawn.ellipse(x + width // 2, y + height // 2, width // 2, height // 2, (255, 0, 0))
    edge = [x, y, x + width, y, x + width, y + height, x, y + height]
    box = {"bbox": [x, y, width, height], "area": width * height, "segmentation": [edge]}
    return {"category_id": label + 1, "iscrowd": 0, **box}
