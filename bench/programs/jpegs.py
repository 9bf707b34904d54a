"""Make a learnable set of JPEGs: a colour per class under smooth structure and grain. `jpegs.py FOLDER COUNT EDGE`."""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

CLASSES = 4


def main(folder: Path, count: int, edge: int) -> None:
    chance = np.random.RandomState(7)
    lines = []
    for number in range(count):
        label = number % CLASSES
        smooth = Image.fromarray(chance.randint(0, 160, (12, 12, 3), dtype=np.uint8)).resize((edge, edge))
        pixels = np.asarray(smooth, dtype=np.int16) + chance.randint(-24, 24, (edge, edge, 1), dtype=np.int16)
        pixels[:, :, label % 3] += 70 if label < 3 else 0
        name = f"{label}/{number:05}.jpg"
        (folder / str(label)).mkdir(exist_ok=True)
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(folder / name, quality=88)
        lines.append(f"{name} {label}\n")
    (folder / "train.txt").write_text("".join(lines))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
