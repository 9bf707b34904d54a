"""What a recipe comes to once its bases are followed: packages, files and settings, with the hashes they go by. Pure.

Packages and files are separate layers, each addressed by its own content: two images that differ in a script share
one virtual environment of a gigabyte.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from paddlecloud.local.images.errors import RecipeError
from paddlecloud.local.images.recipe import Recipe

FORMAT = 1
"""Raised when the same recipe would give something else."""


@dataclass(frozen=True, slots=True)
class ImagePlan:
    names: tuple[str, ...]
    python: str
    apt: tuple[str, ...] = ()
    pip: tuple[str, ...] = ()
    """Requirements; local ones as absolute paths."""
    pip_options: tuple[str, ...] = ()
    pip_no_deps: tuple[str, ...] = ()
    """Requirements that are installed after those of `pip`, without what they declare."""
    npm: tuple[str, ...] = ()
    """Packages of npm, installed after those of Python, which may bring npm itself."""
    files: Mapping[str, Path] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()
    user: str = ""
    workdir: str = ""
    preload: tuple[str, ...] = ()
    expose: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    """Of its own recipe: those of a base say what the base is."""
    library: str = ""
    """Digest of the parts of this project that it can import; empty when it asks for none."""
    stands_for: str = ""
    """Its own, or that of the nearest base that is a stand-in: what is built on one is no better."""
    packages_key: str = ""
    """Address of the packages; empty when the image has none of its own."""
    files_key: str = ""
    beneath: ImagePlan | None = None
    """The nearest base with fewer packages, which the builder shares; None when there is none."""

    @property
    def image_id(self) -> str:
        settings = [dict(self.env), self.entrypoint, self.cmd, self.user, self.workdir, self.python]
        own = [self.library] if self.library else []
        own += [f"stands for {self.stands_for}"] if self.stands_for else []
        return "sha256:" + _digest("image", self.packages_key, self.files_key, settings, *own)


def plan_image(recipe: Recipe, base: ImagePlan | None, *, interpreter: str, library: str = "") -> ImagePlan:
    """Lay a recipe over its base. `interpreter` is the Python it runs on and `library` what it can import of this
    project if it asks for it, both chosen by the caller."""
    if base is not None and base.pip and recipe.python and base.python != interpreter:
        raise RecipeError(f"{recipe.path}: its base is built for {base.python}; leave python out here")
    _check_interpreter(recipe, interpreter)
    pip = (*(base.pip if base else ()), *(_requirement(item, recipe) for item in recipe.pip))
    pip_options = (*(base.pip_options if base else ()), *recipe.pip_options)
    alone = (*(base.pip_no_deps if base else ()), *(_requirement(item, recipe) for item in recipe.pip_no_deps))
    npm = (*(base.npm if base else ()), *recipe.npm)
    files = {**(base.files if base else {}), **{t: recipe.folder / s for t, s in recipe.files.items()}}
    command = bool(recipe.entrypoint)
    packages_key = _packages_key(interpreter, pip, pip_options, alone, npm)
    return ImagePlan(
        names=recipe.names,
        python=interpreter,
        apt=(*(base.apt if base else ()), *recipe.apt),
        pip=pip,
        pip_options=pip_options,
        pip_no_deps=alone,
        npm=npm,
        packages_key=packages_key,
        beneath=_beneath(base, packages_key, interpreter),
        files=files,
        files_key=_digest("files", [(t, _content(s)) for t, s in sorted(files.items())]) if files else "",
        env={**(base.env if base else {}), **recipe.env},
        entrypoint=recipe.entrypoint or (base.entrypoint if base else ()),
        cmd=recipe.cmd or (base.cmd if base and not command else ()),
        user=recipe.user or (base.user if base else ""),
        workdir=recipe.workdir or (base.workdir if base else ""),
        preload=(*(base.preload if base else ()), *recipe.preload),
        expose=(*(base.expose if base else ()), *recipe.expose),
        labels=recipe.labels,
        library=library if recipe.project else (base.library if base else ""),
        stands_for=recipe.stands_for or (base.stands_for if base else ""),
    )


def _check_interpreter(recipe: Recipe, interpreter: str) -> None:
    version = re.search(r"python(\d+)\.(\d+)$", interpreter)
    if not recipe.python_requires or not version:
        return
    bounds = re.fullmatch(r">=(\d+)\.(\d+),<(\d+)\.(\d+)", recipe.python_requires)
    if not bounds:
        raise RecipeError(f'{recipe.path}: python-requires: {recipe.python_requires!r} must look like ">=3.10,<3.13"')
    least, beyond = (tuple(map(int, pair)) for pair in (bounds.groups()[:2], bounds.groups()[2:]))
    if not least <= tuple(map(int, version.groups())) < beyond:
        raise RecipeError(
            f"{recipe.path}: python-requires: its packages need Python {recipe.python_requires}, and its base has "
            f"{version[1]}.{version[2]}; "
            "run the platform with a Python that fits, or write a recipe upon a base that has one"
        )


def _beneath(base: ImagePlan | None, key: str, interpreter: str) -> ImagePlan | None:
    if base is None or base.packages_key == key:
        return base.beneath if base else None
    return base if base.packages_key and base.python == interpreter else None


def _packages_key(
    python: str, pip: tuple[str, ...], options: tuple[str, ...], alone: tuple[str, ...], npm: tuple[str, ...]
) -> str:
    """Images without a field of later releases keep the address that they had before."""
    if not pip and not alone and not npm:
        return ""
    contents, others = (
        [_content(Path(item)) if item.startswith("/") else item for item in some] for some in (pip, alone)
    )
    later = [*([others] if others else ()), *(["npm", npm] if npm else ())]
    return _digest("packages", python, platform.machine(), contents, options, *later)


def _requirement(text: str, recipe: Recipe) -> str:
    return str((recipe.folder / text).resolve()) if text.startswith(("./", "../")) else text


def _content(path: Path) -> str:
    """A hash over the names, modes and bytes of a file or tree."""
    digest = hashlib.sha256()
    pieces = [path] if path.is_file() else sorted(piece for piece in path.rglob("*") if piece.is_file())
    for piece in pieces:
        relative = piece.name if piece == path else str(piece.relative_to(path))
        executable = bool(piece.stat().st_mode & 0o100)
        digest.update(f"{relative}\0{executable}\0".encode())
        digest.update(hashlib.sha256(piece.read_bytes()).digest())
    return digest.hexdigest()


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps([FORMAT, *parts], sort_keys=True).encode()).hexdigest()
