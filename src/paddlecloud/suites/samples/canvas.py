"""Pictures without a library: an array of bytes to draw on, and PNG, which every suite reads."""

from __future__ import annotations

import math
import struct
import zlib
from random import Random

Colour = tuple[int, ...]
"""Three values for RGB, one for a picture of numbers such as a mask."""

GLYPHS = {
    "A": "0e11111f111111",
    "B": "1e11111e11111e",
    "C": "0e11101010110e",
    "D": "1e11111111111e",
    "E": "1f10101e10101f",
    "F": "1f10101e101010",
    "G": "0e11101713110f",
    "H": "1111111f111111",
}
"""Seven rows of five dots each, two hexadecimal digits a row."""
GLYPH_WIDTH, GLYPH_HEIGHT = 5, 7


class Canvas:
    def __init__(self, width: int, height: int, background: bytes, channels: int = 3) -> None:
        """`background` is a value for every byte of the picture, in its order."""
        self.width, self.height, self.channels = width, height, channels
        self.rows = bytearray(background)

    def rectangle(self, left: int, top: int, right: int, bottom: int, colour: Colour) -> None:
        """Edges are inclusive; what lies outside of the picture is cut off."""
        left, right = max(0, left), min(self.width - 1, right)
        run = bytes(colour) * max(0, right - left + 1)
        for y in range(max(0, top), min(self.height - 1, bottom) + 1):
            start = (y * self.width + left) * self.channels
            self.rows[start : start + len(run)] = run

    def ellipse(self, x: int, y: int, across: int, down: int, colour: Colour) -> None:
        """With the half axes `across` and `down`."""
        for step in range(-down, down + 1):
            half = int(across * math.sqrt(1 - (step / down) ** 2))
            self.rectangle(x - half, y + step, x + half, y + step, colour)

    def text(self, letters: str, left: int, top: int, colour: Colour, *, scale: int) -> None:
        for place, letter in enumerate(letters):
            rows = bytes.fromhex(GLYPHS[letter])
            for y, dots in enumerate(rows):
                for x in range(GLYPH_WIDTH):
                    if dots >> (GLYPH_WIDTH - 1 - x) & 1:
                        at, down = left + (place * (GLYPH_WIDTH + 1) + x) * scale, top + y * scale
                        self.rectangle(at, down, at + scale - 1, down + scale - 1, colour)

    def cut(self, left: int, top: int, width: int, height: int) -> Canvas:
        size = self.width * self.channels
        lines = range(top, top + height)
        parts = [self.rows[y * size + left * self.channels : y * size + (left + width) * self.channels] for y in lines]
        return Canvas(width, height, b"".join(parts), self.channels)

    def png(self) -> bytes:
        size = self.width * self.channels
        raw = b"".join(b"\0" + self.rows[at : at + size] for at in range(0, len(self.rows), size))
        kind = {1: 0, 3: 2}[self.channels]  # PNG's numbers of greyscale and RGB
        header = struct.pack(">IIBBBBB", self.width, self.height, 8, kind, 0, 0, 0)
        chunks = _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(raw, 1)) + _chunk(b"IEND", b"")
        return b"\x89PNG\r\n\x1a\n" + chunks


def noise(random: Random, count: int, low: int, high: int) -> bytes:
    """`count` values from `low` to below `high`, for backgrounds that no model can learn by heart."""
    return random.randbytes(count).translate(bytes(low + value * (high - low) // 256 for value in range(256)))


def text_width(letters: str, scale: int) -> int:
    return (len(letters) * (GLYPH_WIDTH + 1) - 1) * scale


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
