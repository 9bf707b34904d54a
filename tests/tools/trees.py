"""Trees of folders that are made to be too much."""

from __future__ import annotations

import os
from pathlib import Path


def nested(place: Path, depth: int) -> None:
    """Folders `d` inside one another, more of them than functions can recurse or paths can name."""
    folder = os.open(place, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=folder)
        deeper = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = deeper
    os.close(folder)
