"""The map of folders in docs/design/architecture.md is complete, and tests are where the source is."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "src" / "paddlecloud"
WITHOUT_MODULES_OF_ITS_OWN = {"", "controllers", "local/images/recipes"}


def test_every_folder_with_code_has_a_row_and_every_row_a_folder() -> None:
    page = (ROOT / "docs" / "design" / "architecture.md").read_text()
    rows = re.findall(r"^\| `([\w/]+)` \| ", page, re.MULTILINE)
    folders = {str(file.parent.relative_to(SOURCE)).removeprefix(".") for file in SOURCE.rglob("*.py")}
    ours = {folder for folder in folders if not folder.startswith("local/images/recipes")} - WITHOUT_MODULES_OF_ITS_OWN
    assert sorted(rows) == sorted(ours)


def test_every_package_says_in_its_first_line_what_it_is_for() -> None:
    silent = [
        str(init.parent.relative_to(SOURCE))
        for init in SOURCE.rglob("__init__.py")
        if "recipes" not in init.parts and not init.read_text().startswith('"""')
    ]
    assert silent == []


ABOUT_MORE_THAN_A_FOLDER = {"budgets", "chart", "docs", "tools"}
"""Folders of unit tests: of what strangers send, of the chart, of pages, of the tests' own tools."""


def test_tests_of_a_folder_are_found_under_its_name() -> None:
    tests = ROOT / "tests" / "unit"
    tested = {str(file.parent.relative_to(tests)) for file in tests.rglob("test_*.py")}
    strays = {folder for folder in tested if not (SOURCE / folder).is_dir()} - ABOUT_MORE_THAN_A_FOLDER
    assert strays == set()
    parts = {str(init.parent.relative_to(SOURCE)) for init in SOURCE.glob("local/*/__init__.py")}
    assert {part for part in parts if not any((tests / part).rglob("test_*.py"))} == set()
