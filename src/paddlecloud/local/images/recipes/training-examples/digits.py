"""Hand-drawn-looking digits without a download: a 5x7 font, moved, scaled in brightness and made noisy.

The training programs of this folder share it. Every image follows from (seed, size) alone, so that ranks can make
their own shards and a test set is the same everywhere.
"""

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


# mypy: ignore-errors
