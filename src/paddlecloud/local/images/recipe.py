"""`image.yaml`: what an image consists of, said once for every form it takes.

    names: [registry.example.com/team/demo:v1]   # references it answers for (see `reference`)
    base: python                                 # another image; its packages, files and settings come first
    python: "3.11"                               # interpreter; default: the one this platform runs on
    python-requires: ">=3.10,<3.13"              # interpreters that the packages have wheels for
    apt: [git]                                   # system packages: the host's business locally, checked and reported
    pip: [paddlepaddle==3.3.1, ./own.whl]        # requirements; paths are relative to this file
    pip-options: [--pre]                         # passed to the installer
    pip-no-deps: [old==1.0]                      # requirements installed after these, without what they declare
    npm: [configurable-http-proxy@5.3.0]         # packages of npm, for programs that bring or need Node
    files: {/train/run.py: run.py, /train/conf: conf/}   # path in the container: path beside this file
    env: {LANG: C.UTF-8}
    entrypoint: [python]
    cmd: [/train/run.py]
    user: "1000:1000"
    workdir: /train
    preload: [paddle]                            # modules a warm parent keeps imported
    project: true                                # the parts of this project that run in pods can be imported
    expose: [8080]                               # ports, for the Dockerfile form
    stands-for: A for B                          # what is in it and what its names promise, where the two differ
    labels: {org.opencontainers.image.licenses: Apache-2.0}   # of the image in a registry

docs/images.md describes them for users. This module reads and checks; it builds nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from paddlecloud.kube.nearest import question
from paddlecloud.kube.wording import cause_of
from paddlecloud.local.images.errors import RecipeError
from paddlecloud.local.images.reference import Reference, parse_reference

FILE = "image.yaml"


@dataclass(frozen=True, slots=True)
class Recipe:
    path: Path
    """The image.yaml; relative paths in it start beside it."""
    names: tuple[str, ...]
    base: str = ""
    python: str = ""
    python_requires: str = ""
    apt: tuple[str, ...] = ()
    pip: tuple[str, ...] = ()
    pip_options: tuple[str, ...] = ()
    pip_no_deps: tuple[str, ...] = ()
    npm: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()
    user: str = ""
    workdir: str = ""
    preload: tuple[str, ...] = ()
    expose: tuple[str, ...] = ()
    project: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    stands_for: str = ""
    """`what is here for what the names promise`: shown wherever a user meets the image. One line."""

    @property
    def references(self) -> tuple[Reference, ...]:
        return tuple(parse_reference(name) for name in self.names)

    @property
    def folder(self) -> Path:
        return self.path.parent


_LISTS = ("names", "apt", "pip", "pip-options", "pip-no-deps", "npm", "entrypoint", "cmd", "preload", "expose")
_MAPS = ("files", "env", "labels")
_TEXTS = ("base", "python", "python-requires", "user", "workdir", "stands-for")
_SWITCHES = ("project",)
KNOWN_FIELDS = (*_LISTS, *_MAPS, *_TEXTS, *_SWITCHES)


def read_recipe(path: Path) -> Recipe:
    try:
        body = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise RecipeError(f"{path}: {cause_of(error)}") from error
    return parse_recipe(body, path)


def parse_recipe(body: Any, path: Path) -> Recipe:
    if not isinstance(body, dict):
        raise RecipeError(f"{path}: an image.yaml is a mapping of fields, beginning with names")
    unknown = sorted(set(map(str, body)) - set(KNOWN_FIELDS))
    if unknown:
        known = question(unknown[0], KNOWN_FIELDS) or f"known are {', '.join(sorted(KNOWN_FIELDS))}"
        raise RecipeError(f"{path}: unknown field {unknown[0]!r}; {known}")
    fields: dict[str, Any] = {}
    for name in _LISTS:
        fields[name.replace("-", "_")] = _list(body.get(name), f"{path}: {name}")
    for name in _MAPS:
        fields[name] = _map(body.get(name), f"{path}: {name}")
    for name in _TEXTS:
        fields[name.replace("-", "_")] = _text(body.get(name), f"{path}: {name}")
    for name in _SWITCHES:
        fields[name] = body.get(name, False)
        if not isinstance(fields[name], bool):
            raise RecipeError(f"{path}: {name} must be true or false")
    if not fields["names"]:
        raise RecipeError(f"{path}: names must list at least one image reference")
    fields["stands_for"] = fields["stands_for"].strip()
    if "\n" in fields["stands_for"]:
        raise RecipeError(f"{path}: stands-for must be one line")
    for target, source in fields["files"].items():
        _check_file(target, source, path)
    return Recipe(path=path, **fields)


def _list(value: Any, where: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, (str, int, float)) for item in value):
        raise RecipeError(f"{where} must be a list of texts")
    return tuple(str(item) for item in value)


def _map(value: Any, where: str) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(item, (str, int, float)) for item in value.values()):
        raise RecipeError(f"{where} must map texts to texts")
    return {str(key): str(item) for key, item in value.items()}


def _text(value: Any, where: str) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        raise RecipeError(f'{where} is a number here; put it in quotes ("3.10" would lose its zero)')
    if not isinstance(value, (str, int)):
        raise RecipeError(f"{where} must be a text")
    return str(value)


def _check_file(target: str, source: str, path: Path) -> None:
    if not target.startswith("/") or ".." in target.split("/"):
        raise RecipeError(f"{path}: files: {target!r} must be an absolute path without '..'")
    inside = (path.parent / source).resolve()
    if not inside.is_relative_to(path.parent.resolve()):
        raise RecipeError(f"{path}: files: {source!r} lies outside the recipe's folder")
    if not inside.exists():
        raise RecipeError(f"{path}: files: {source!r} does not exist beside the recipe")


def find_recipes(folders: list[Path]) -> tuple[list[Recipe], list[RecipeError]]:
    """Every recipe below the folders; a broken one is reported and hides no other."""
    recipes, errors = [], []
    for folder in folders:
        for path in sorted(folder.glob(f"**/{FILE}")):
            try:
                recipes.append(read_recipe(path))
            except RecipeError as error:
                errors.append(error)
    return recipes, errors
