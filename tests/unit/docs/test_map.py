"""The map of folders in docs/design/architecture.md is complete."""

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
