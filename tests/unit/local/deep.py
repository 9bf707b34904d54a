"""A tree that is too deep for whatever recurses."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DEPTH = 1200


@contextmanager
def deep_tree(place: Path) -> Iterator[None]:
    """Made at `place`. `rm` removes what is left of it: pytest, which removes its own folders, recurses."""
    place.mkdir(parents=True, exist_ok=True)
    try:
        folder = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
        for _ in range(DEPTH):
            os.mkdir("d", dir_fd=folder)
            deeper = os.open("d", os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder)
            os.close(folder)
            folder = deeper
        os.close(folder)
        yield
    finally:
        subprocess.run(["rm", "-rf", str(place)], check=True)
