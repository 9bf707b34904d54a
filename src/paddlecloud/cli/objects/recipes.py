"""Recipes that a user brings in with `pdc image build -f`: copied into the platform's data directory under a name.

A registered recipe is a folder with the `image.yaml`, every file it names, and a mark that folders
written there by hand do not have. It appears whole or not at all, and only after its image was built.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from paddlecloud.cli.failures import CONFLICT, CliError, InputError
from paddlecloud.kube.wording import cause_of
from paddlecloud.local.images.errors import RecipeError
from paddlecloud.local.images.recipe import FILE, Recipe, parse_recipe
from paddlecloud.local.images.reference import parse_reference

MARK = ".registered"
STAGING = ".new-image-"


def folder_of(data: Path) -> Path:
    """Where the platform on `data` looks for recipes."""
    return data / "images"


def read(path: Path, tags: Sequence[str]) -> tuple[Recipe, dict[str, Any]]:
    """The recipe in a file of the user's, answering for `tags` besides the names it has itself."""
    file = path / FILE if path.is_dir() else path
    try:
        body = yaml.safe_load(file.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(
            f"cannot read the recipe {file}", why=cause_of(error), next="pdc image build --help"
        ) from error
    if isinstance(body, dict):
        named = body.get("names")
        own = [str(name) for name in named] if isinstance(named, list) else []
        body["names"] = [*tags, *(name for name in own if name not in tags)]
        if not body["names"]:
            raise InputError(f"{file} has no names", next=f"pdc image build -f {path} -t NAME")
    try:
        recipe = parse_recipe(body, file.resolve())
    except RecipeError as error:
        raise InputError("the recipe is not valid", why=str(error)) from error
    outside = [item for item in recipe.pip if item.startswith("../")]
    if outside:
        raise InputError(f"{file}: pip: {outside[0]} lies outside the recipe's folder", next="put it beside the recipe")
    return recipe, body


@contextmanager
def staging(data: Path) -> Iterator[Path]:
    """A folder in the data directory for what is not complete yet, removed at the end. It is locked until then: one
    without a lock was left by a process that was killed, and is removed too."""
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _locked(data):  # nobody finds a new folder before it is locked
        for left in data.glob(f"{STAGING}*"):
            with contextlib.suppress(OSError), _locked(left, wait=False):  # it is in use, or was removed a moment ago
                shutil.rmtree(left, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(prefix=STAGING, dir=data))
        used = contextlib.ExitStack()
        used.enter_context(_locked(folder))
    with used:
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _locked(folder: Path, *, wait: bool = True) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield
    finally:
        os.close(descriptor)


def stage(recipe: Recipe, body: dict[str, Any], into: Path) -> Path:
    """A complete copy below `into`, ready to be built and then moved to its place."""
    target = into / slug(recipe.names[0])
    local = [item for item in recipe.pip if item.startswith("./")]
    for source in {*recipe.files.values(), *local}:
        origin, copy = recipe.folder / source, target / source
        copy.parent.mkdir(parents=True, exist_ok=True)
        if origin.is_dir():
            shutil.copytree(origin, copy, dirs_exist_ok=True)
        elif origin.exists():
            shutil.copy2(origin, copy)
        else:
            raise InputError(f"{recipe.path}: {source} does not exist beside the recipe")
    target.mkdir(parents=True, exist_ok=True)
    (target / FILE).write_text(yaml.safe_dump(body, sort_keys=False, allow_unicode=True))
    (target / MARK).touch()
    return target


def check_free(data: Path, name: str) -> None:
    """A folder that somebody filled by hand is not ours to replace."""
    place = folder_of(data) / slug(name)
    if place.exists() and not (place / MARK).exists():
        raise CliError(
            f"{place} holds a recipe written by hand",
            next=f"pdc image build {name}    (builds that one), or remove the folder",
            exit_code=CONFLICT,
        )


def register(staged: Path, data: Path) -> Path:
    """Move a staged recipe to its place, instead of an older one of that name."""
    place = folder_of(data) / staged.name
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.exists():
        older = staged.with_name(f"{staged.name}.older")
        place.rename(older)
    staged.rename(place)
    return place


def unregister(recipe: Recipe) -> bool:
    """Remove a registered recipe; one written by hand or shipped stays."""
    if not (recipe.folder / MARK).exists():
        return False
    shutil.rmtree(recipe.folder)
    return True


def slug(name: str) -> str:
    """`team/demo:v1` → `team-demo-v1`; a host other than Docker's is part of it."""
    reference = parse_reference(name)
    host = "" if reference.host == "docker.io" else f"{reference.host}-"
    full = f"{host}{reference.repository.removeprefix('library/')}-{reference.digest or reference.tag or 'latest'}"
    return re.sub(r"[^A-Za-z0-9._-]+", "-", full)
