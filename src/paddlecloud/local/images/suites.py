"""`suites.yaml`: Paddle's model suites, and the recipes that it comes to. It reads and checks; nothing is built.

The file of the package `paddlecloud-suites` describes its own fields. Each suite becomes the recipe of one image upon a
layer that all suites share, which lies upon Paddle's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from paddlecloud.kube.nearest import question
from paddlecloud.kube.wording import cause_of
from paddlecloud.local.images.errors import RecipeError
from paddlecloud.local.images.suite_tags import branch_part, suite_tag

PROJECT = "paddlecloud"
SHARED = "paddlecloud/model-suite:latest"
HOME = "home"
"""The folder beside a suite's recipe that lies over its root."""
_SOURCE = "org.opencontainers.image.source"
_LICENCE = "org.opencontainers.image.licenses"
_VERSION = "org.opencontainers.image.version"
_PIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[0-9][A-Za-z0-9.+!]*")


@dataclass(frozen=True, slots=True)
class Suite:
    name: str
    version: str
    branch: str
    licence: str
    repository: str
    packages: tuple[str, ...]
    """Pinned; they hold the suite's own code."""
    programs: Mapping[str, str]
    """train, eval and export, below the suite's root."""
    requires: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    differs: str = ""

    @property
    def repository_name(self) -> str:
        return self.name.lower()

    @property
    def root(self) -> str:
        return f"/home/{self.name}"


@dataclass(frozen=True, slots=True)
class Suites:
    path: Path
    paddle: str
    """The version in the environments here."""
    bases: tuple[str, ...]
    python: str
    suites: tuple[Suite, ...]


_LISTS = ("packages", "requires", "names")
_MAPS = ("programs", "files")
_TEXTS = ("version", "branch", "licence", "repository", "differs")
_FIELDS = (*_LISTS, *_MAPS, *_TEXTS)
_NEEDED = ("version", "branch", "licence", "repository", "packages", "programs")
_TOP = ("paddle", "bases", "python", "suites")


def read_suites(path: Path) -> Suites:
    """Raises `RecipeError` with the file and the key."""
    try:
        body = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise RecipeError(f"{path}: {cause_of(error)}") from error
    return parse_suites(body, path)


def parse_suites(body: Any, path: Path) -> Suites:
    _known(body, _TOP, _TOP, str(path))
    if not isinstance(body["suites"], dict):
        raise RecipeError(f"{path}: suites must map the name of each suite to its fields")
    return Suites(
        path=path,
        paddle=_text(body, "paddle", str(path)),
        bases=_list(body, "bases", str(path)),
        python=_text(body, "python", str(path)),
        suites=tuple(_suite(str(name), fields, path) for name, fields in body["suites"].items()),
    )


def _suite(name: str, body: Any, path: Path) -> Suite:
    where = f"{path}: suites: {name}"
    _known(body, _FIELDS, _NEEDED, where)
    texts = {key: _text(body, key, where) for key in _TEXTS}
    try:
        branch_part(texts["branch"])
    except ValueError as error:
        raise RecipeError(f"{where}: branch: {error}") from error
    return Suite(
        name=name,
        packages=_pinned(body, where),
        requires=_list(body, "requires", where),
        names=_list(body, "names", where),
        programs=_map(body, "programs", where),
        files=_map(body, "files", where),
        **texts,
    )


def recipes(found: Suites) -> dict[str, dict[str, Any]]:
    """The body of each suite's `image.yaml`, by the folder below `recipes` that it is for."""
    return {suite.repository_name: recipe_of(suite, found) for suite in found.suites}


def recipe_of(suite: Suite, found: Suites) -> dict[str, Any]:
    body: dict[str, Any] = {
        "names": names_of(suite, found),
        "base": SHARED,
        "python-requires": found.python,
        "stands-for": stands_for(suite, found),
        "pip": list(suite.requires),
        "pip-no-deps": list(suite.packages),
        "files": {suite.root: HOME, **suite.files},
        "labels": {_SOURCE: suite.repository, _LICENCE: suite.licence, _VERSION: suite.version},
        "workdir": suite.root,
        "cmd": ["bash"],
    }
    return {key: value for key, value in body.items() if value}


def names_of(suite: Suite, found: Suites) -> list[str]:
    """By version, by the grammar of tags for each base, and what the file adds."""
    image = f"{PROJECT}/{suite.repository_name}"
    tags = [suite.version, *(suite_tag(suite.branch, base) for base in found.bases)]
    return [*(f"{image}:{tag}" for tag in tags), *suite.names]


def stands_for(suite: Suite, found: Suites) -> str:
    text = (
        f"the training code of {suite.name} {suite.version} on CPU Paddle {found.paddle}, also under GPU tags and those"
    )
    return f"{text} of other releases; {suite.differs}" if suite.differs else f"{text} of other releases"


def _known(body: Any, known: tuple[str, ...], needed: tuple[str, ...], where: str) -> None:
    if not isinstance(body, dict):
        raise RecipeError(f"{where} must be a mapping of fields")
    if unknown := sorted(set(map(str, body)) - set(known)):
        hint = question(unknown[0], known) or f"known are {', '.join(known)}"
        raise RecipeError(f"{where}: unknown field {unknown[0]!r}; {hint}")
    if missing := [name for name in needed if not body.get(name)]:
        raise RecipeError(f"{where}: {missing[0]} is missing")


def _text(body: Mapping[str, Any], name: str, where: str) -> str:
    value = body.get(name, "")
    if isinstance(value, float):
        raise RecipeError(f'{where}: {name} is a number here; put it in quotes ("2.10" would lose its zero)')
    if not isinstance(value, (str, int)):
        raise RecipeError(f"{where}: {name} must be a text")
    return str(value)


def _list(body: Mapping[str, Any], name: str, where: str) -> tuple[str, ...]:
    value = body.get(name) or []
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise RecipeError(f"{where}: {name} must be a list of texts")
    return tuple(value)


def _map(body: Mapping[str, Any], name: str, where: str) -> dict[str, str]:
    value = body.get(name) or {}
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
        raise RecipeError(f"{where}: {name} must map texts to texts")
    return {str(key): item for key, item in value.items()}


def _pinned(body: Mapping[str, Any], where: str) -> tuple[str, ...]:
    packages = _list(body, "packages", where)
    for package in packages:
        if not _PIN.fullmatch(package):
            raise RecipeError(
                f"{where}: packages: {package!r} is no pin; write name==version: other versions hold other code"
            )
    return packages
