"""Every dependency of the package is explained, and bounded above."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]
PROJECT = (ROOT / "pyproject.toml").read_text()
PAGE = (ROOT / "docs/design/dependencies.md").read_text()
UNBOUNDED = ("certifi", "cryptography")
"""Their repairs come as new major versions."""


def _declared() -> list[str]:
    begin, end = PROJECT.index("\ndependencies = ["), PROJECT.index("[project.scripts]")
    return re.findall(r"\"([a-z][^\"]*)\"", PROJECT[begin:end])


@pytest.mark.parametrize("requirement", _declared())
def test_a_dependency_is_explained_and_bounded(requirement: str) -> None:
    name = re.split(r"[<>=; ]", requirement)[0]
    assert name in PAGE.lower()
    version = requirement.partition(";")[0]
    assert ("<" in version or "==" in version) != (name in UNBOUNDED)


def _name(requirement: str) -> str:
    return re.split(r"[<>=;\[ ]", requirement)[0]


FOLDERS = (ROOT / "src/paddlecloud/local/images/recipes", ROOT / "suites/src/paddlecloud_suites/recipes")
RECIPES = {
    path.parent.name: yaml.safe_load(path.read_text()) for folder in FOLDERS for path in folder.glob("*/image.yaml")
}
NARROWER = {"numpy<2.4"}
"""What the Paddle beside it needs; within the bounds of the project."""
OURS = sorted(name for name, recipe in RECIPES.items() if recipe.get("project") and recipe.get("pip"))


@pytest.mark.parametrize("name", OURS)
def test_an_image_that_runs_this_project_has_the_bounds_of_the_project(name: str) -> None:
    declared = _declared()
    names = {_name(requirement) for requirement in declared}
    wanted = [requirement for requirement in RECIPES[name]["pip"] if _name(requirement) in names]
    assert [requirement for requirement in wanted if requirement not in {*declared, *NARROWER}] == []


def test_images_that_run_this_project_are_found() -> None:
    assert {"runtime", "paddle-3.3"} <= set(OURS)
