"""A real browser without a window: what a page holds once its scripts have run, and how it looks."""

from __future__ import annotations

import shutil
import struct
import subprocess
import zlib
from pathlib import Path

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
HINT = "apt-get install chromium-headless-shell"
WIDTH, HEIGHT = 1200, 800
SCRIPT_MILLISECONDS = 20_000
"""For which the scripts of a page run, in the page's own time: it passes as fast as nothing is waited for."""

Colour = tuple[int, int, int]


def find() -> str | None:
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def page(url: str, folder: Path) -> str:
    """The document as it is when its scripts have run."""
    return _run(folder, "--dump-dom", url)


def screenshot(url: str, folder: Path) -> Path:
    file = folder / "screenshot.png"
    _run(folder, f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={file}", url)
    return file


def _run(folder: Path, *arguments: str) -> str:
    browser = find()
    assert browser is not None, HINT
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'browser'}"]
    command = [browser, *flags, f"--virtual-time-budget={SCRIPT_MILLISECONDS}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def columns_of(colour: Colour, file: Path, *, within: tuple[float, float, float, float], near: int = 40) -> set[int]:
    """The columns of a picture in which a colour is found; `within` is left, top, right, bottom as parts of it."""
    left, top, right, bottom = within
    width, depth, rows = _rows(file, last=bottom)
    found = set()
    for row in rows[int(top / bottom * len(rows)) :]:
        for x in range(int(left * width), int(right * width)):
            red, green, blue = row[x * depth : x * depth + 3]
            if abs(red - colour[0]) + abs(green - colour[1]) + abs(blue - colour[2]) < near:
                found.add(x)
    return found


def _rows(file: Path, *, last: float) -> tuple[int, int, list[bytearray]]:
    """Of a PNG of the browser, which has eight bits for each colour: its width, bytes per pixel and rows, to `last` as
    part of its height."""
    data = file.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n"), "no PNG"
    position, packed, width, height, depth = 8, b"", 0, 0, 3
    while position < len(data):
        length, kind = struct.unpack_from(">I4s", data, position)
        body = data[position + 8 : position + 8 + length]
        if kind == b"IHDR":
            width, height, bits, colours, _, _, interlaced = struct.unpack(">IIBBBBB", body)
            assert (bits, interlaced) == (8, 0), "another kind of PNG"
            depth = {2: 3, 6: 4}[colours]
        elif kind == b"IDAT":
            packed += body
        position += 12 + length
    raw, rows = zlib.decompress(packed), []
    stride, above = width * depth, bytearray(width * depth)
    for begin in range(0, int(last * height) * (stride + 1), stride + 1):
        above = UNFILTERED[raw[begin]](bytearray(raw[begin + 1 : begin + 1 + stride]), above, depth)
        rows.append(above)
    return width, depth, rows


# PNG stores the bytes of a row as differences to what is left of and above them, in one of five ways.


def _sub(row: bytearray, _: bytearray, depth: int) -> bytearray:
    for at in range(depth, len(row)):
        row[at] = (row[at] + row[at - depth]) & 0xFF
    return row


def _up(row: bytearray, above: bytearray, _: int) -> bytearray:
    return bytearray((value + up) & 0xFF for value, up in zip(row, above, strict=True))


def _average(row: bytearray, above: bytearray, depth: int) -> bytearray:
    for at, up in enumerate(above):
        row[at] = (row[at] + (up + (row[at - depth] if at >= depth else 0)) // 2) & 0xFF
    return row


def _nearest(row: bytearray, above: bytearray, depth: int) -> bytearray:
    for at, up in enumerate(above):
        left, corner = (row[at - depth], above[at - depth]) if at >= depth else (0, 0)
        by_left, by_up, by_corner = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
        guess = left if by_left <= by_up and by_left <= by_corner else up if by_up <= by_corner else corner
        row[at] = (row[at] + guess) & 0xFF
    return row


UNFILTERED = (lambda row, *_: row, _sub, _up, _average, _nearest)
