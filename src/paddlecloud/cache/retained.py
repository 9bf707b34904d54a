"""The data that sets of the local engine leave behind, and the source that it was imported from.

A set is the folder `NAMESPACE/NAME` below the platform's: `data` is what pods see, `own` what its cache servers keep.
Deleting a SampleSet keeps both (a PersistentVolume with the policy Retain). The first sync into an empty set notes its
source in `own`, so that a later set of that name takes the data over only if it has the same source.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SOURCE = "source"
"""The file in `own`. Releases up to 0.1 did not write it: the source of their data is unknown."""


@dataclass(frozen=True)
class Retained:
    """Data without a set."""

    namespace: str
    name: str
    source: str
    """Empty when it is not known."""
    files: int
    size: int


def note_source(own: Path, data: str, source: str) -> None:
    """Before the first file of a sync is written: data that is there already keeps the source that was noted."""
    if _is_empty(Path(data)):
        draft = own / f".{SOURCE}"
        draft.write_text(source)
        draft.rename(own / SOURCE)


class SetFolders:
    """`root` is the folder of all sets of a platform."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def source_of(self, namespace: str, name: str) -> str | None:
        """The source of the data under a name, empty when it is not known; None where there is no data."""
        folder = self._root / namespace / name
        if _is_empty(folder / "data"):
            return None
        try:
            return (folder / "own" / SOURCE).read_text()
        except FileNotFoundError:
            return ""

    def retained(self, namespace: str, name: str) -> Retained | None:
        """What is there under a name, counted."""
        source = self.source_of(namespace, name)
        if source is None:
            return None
        sizes = [file.lstat().st_size for file in _files(self._root / namespace / name / "data")]
        return Retained(namespace, name, source, len(sizes), sum(sizes))

    def names(self) -> list[tuple[str, str]]:
        """Namespace and name of every folder, of sets that exist too."""
        return sorted((path.parent.name, path.name) for path in self._root.glob("*/*") if (path / "data").is_dir())

    def remove(self, namespace: str, name: str) -> None:
        """Raises OSError. The data goes first: what is left of a removal that failed is still found."""
        folder = self._root / namespace / name
        for part in (folder / "data", folder):
            if part.exists():
                shutil.rmtree(part)


def _files(folder: Path) -> Iterator[Path]:
    for place, _, names in os.walk(folder):
        yield from (Path(place) / name for name in names)


def _is_empty(folder: Path) -> bool:
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        return next(iter(entries), None) is None
    return True
