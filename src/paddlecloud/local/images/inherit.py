"""The packages of a base in the environment of an image that adds some: linked, not installed again.

An image with one more package than Paddle would otherwise download and unpack Paddle once more. The files of the base's
environment are linked into the new one (hard links: no space, about a second for Paddle), and the installer, which
finds them there, adds what is missing. A package of which the image wants another version is replaced: installers
remove a file and write a new one, so the base keeps its own. Scripts name their interpreter by path and are therefore
copied.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def link_packages(base: Path, venv: Path) -> None:
    """All that the base's environment has and the new one has not. Both exist; `venv` was just created."""
    own, other = os.fsencode(venv), os.fsencode(base)
    for folder, folders, files in os.walk(base):
        place = venv / os.path.relpath(folder, base)
        place.mkdir(exist_ok=True)
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        for name in [*files, *links]:
            source, target = Path(folder, name), place / name
            if os.path.lexists(target):
                continue  # the interpreter, activation scripts, pyvenv.cfg: the new environment's own
            if source.is_symlink():
                target.symlink_to(os.readlink(source))
            elif source.parent == base / "bin":
                target.write_bytes(source.read_bytes().replace(other, own))
                shutil.copymode(source, target)
            else:
                _link(source, target)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)  # a file system without links, or too many of them
