"""Which shared libraries programs need, and where this machine has them: `ldd`, asked for many files at once."""

from __future__ import annotations

import re
import subprocess
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from .oci import Entry

_FOUND = re.compile(r"^\s*(?:(?P<name>\S+) => )?(?P<path>/\S+) \(0x", re.MULTILINE)
_MISSING = re.compile(r"(\S+) => not found")
_AT_ONCE = 200


class Closure(NamedTuple):
    libraries: dict[str, Path]
    """By the name they are asked for; the loader by its path."""
    missing: set[str]
    """Names that this machine has nowhere the loader looks. Optional modules often have some."""


def closure(files: Iterable[Path]) -> Closure:
    """What the programs and libraries load, directly and indirectly."""
    found: dict[str, Path] = {}
    missing: set[str] = set()
    every = [str(file) for file in files]
    for start in range(0, len(every), _AT_ONCE):
        command = ["ldd", *every[start : start + _AT_ONCE]]
        shown = subprocess.run(command, capture_output=True, text=True, timeout=300).stdout
        missing.update(match[1] for match in _MISSING.finditer(shown))
        for match in _FOUND.finditer(shown):
            found.setdefault(match["name"] or match["path"], Path(match["path"]))
    return Closure(found, missing)


def entries(libraries: dict[str, Path]) -> Iterator[Entry]:
    """The libraries in a folder where the loader always looks; the loader at the path that programs name."""
    folder = f"usr/lib/{sysconfig.get_config_var('MULTIARCH')}"
    for name, path in sorted(libraries.items()):
        target = f"usr/{name.lstrip('/').removeprefix('usr/')}" if name.startswith("/") else f"{folder}/{name}"
        yield Entry(target, source=path.resolve())
