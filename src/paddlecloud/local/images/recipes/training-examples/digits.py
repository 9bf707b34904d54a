"""Hand-drawn-looking digits without a download: a 5x7 font, moved, scaled in brightness and made noisy.

The training programs of this folder share it. Every image follows from (seed, size) alone, so that ranks can make
their own shards and a test set is the same everywhere.
"""

from pathlib import Path

import numpy as np

FONT = (
    "01110 10001 10011 10101 11001 10001 01110",
    "00100 01100 00100 00100 00100 00100 01110",
    "01110 10001 00001 00110 01000 10000 11111",
    "11110 00001 00001 01110 00001 00001 11110",
    "00010 00110 01010 10010 11111 00010 00010",
    "11111 10000 11110 00001 00001 10001 01110",
    "00110 01000 10000 11110 10001 10001 01110",
    "11111 00001 00010 00100 01000 01000 01000",
    "01110 10001 10001 01110 10001 10001 01110",
    "01110 10001 10001 01111 00001 00010 01100",
)
SIDE = 16
GLYPHS = np.array([[[float(bit) for bit in row] for row in digit.split()] for digit in FONT], dtype="float32")


def generate(count, seed):
    """`count` images [count, 1, 16, 16] and their labels [count], balanced over the ten digits."""
    rng = np.random.RandomState(seed)
    labels = rng.permutation(np.arange(count) % 10).astype("int64")
    images = rng.normal(0.0, 0.25, (count, 1, SIDE, SIDE)).astype("float32")
    for image, label in zip(images, labels, strict=True):
        glyph = GLYPHS[label].repeat(2, axis=0)[: rng.randint(12, 15)]  # 12 to 14 pixels high: some lose their foot
        glyph = glyph.repeat(2, axis=1)[:, : rng.randint(9, 11)]
        top = rng.randint(0, SIDE - glyph.shape[0] + 1)
        left = rng.randint(0, SIDE - glyph.shape[1] + 1)
        image[0, top : top + glyph.shape[0], left : left + glyph.shape[1]] += glyph * rng.uniform(0.6, 1.2)
    return images, labels


def write(folder, count, seed):
    """The same as files, in a folder for each digit: `7/00012.f32` has the pixels of a seven."""
    for number, (image, label) in enumerate(zip(*generate(count, seed), strict=True)):
        place = Path(folder, str(label))
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{number:05}.f32").write_bytes(image.tobytes())


def read(files, rank, world):
    """A rank's part of what `write` wrote; `files` is a `paddlecloud.data.Files`, which looks into the cache first."""
    mine = range(rank, len(files), world)
    images = [np.frombuffer(files.read(index), "float32").reshape(1, SIDE, SIDE) for index in mine]
    return np.stack(images), np.array([int(files[index].split("/")[0]) for index in mine])


# mypy: ignore-errors
