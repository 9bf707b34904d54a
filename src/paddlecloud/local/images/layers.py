"""Where what was built lies: `packages/<hash>` and `files/<hash>` in the cache, and which of it is whole; and
`logs/<hash>.log` of what could not be built.

It only looks; `builder` makes layers. Apart from it because `pdc image ls` should cost no more than a look.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from paddlecloud.local.images.plan import ImagePlan

KINDS = ("packages", "files")
COMPLETE = "complete"


class Layers:
    def __init__(self, cache: Path) -> None:
        self.cache = cache

    def path(self, kind: str, key: str) -> Path:
        return self.cache / kind / key

    def log(self, key: str) -> Path:
        """What the last build of a layer printed, if it failed."""
        return self.cache / "logs" / f"{key}.log"

    def logs(self) -> Iterator[Path]:
        return (self.cache / "logs").glob("*.log")

    def is_complete(self, kind: str, key: str) -> bool:
        return (self.path(kind, key) / COMPLETE).exists()

    def is_built(self, plan: ImagePlan) -> bool:
        return all(self.is_complete(kind, key) for kind, key in layers_of(plan))

    def size(self, plan: ImagePlan) -> int:
        """Bytes of what was built for it."""
        return sum(_noted_size(self.path(kind, key)) for kind, key in layers_of(plan))

    def all(self) -> Iterator[tuple[str, Path]]:
        for kind in KINDS:
            if (self.cache / kind).is_dir():
                for layer in (self.cache / kind).iterdir():
                    yield kind, layer


def layers_of(plan: ImagePlan) -> list[tuple[str, str]]:
    pairs = zip(KINDS, (plan.packages_key, plan.files_key), strict=True)
    return [(kind, key) for kind, key in pairs if key]


def mark_complete(layer: Path) -> int:
    """Put the marker there, with the size: to walk over an environment of a gigabyte is for once, not for `ls`."""
    size = _tree_size(layer)
    try:
        marker = layer / f".{COMPLETE}"
        marker.write_text(f"{size}\n")
        marker.replace(layer / COMPLETE)
    except OSError:
        if not (layer / COMPLETE).exists():
            raise
    return size


def _noted_size(layer: Path) -> int:
    try:
        text = (layer / COMPLETE).read_text().strip()
    except OSError:
        return 0  # removed a moment ago
    return int(text) if text.isdigit() else mark_complete(layer)  # older releases left the marker empty


def _tree_size(root: Path) -> int:
    total = 0
    for folder, _, names in os.walk(root):
        for name in names:
            try:
                total += os.lstat(os.path.join(folder, name)).st_size
            except OSError:
                continue  # it went while we looked
    return total
