"""Every dependency of the package is explained, and bounded above."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

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
