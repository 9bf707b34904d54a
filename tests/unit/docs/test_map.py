"""The map of folders in docs/design/architecture.md is complete, and tests are where the source is."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
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


def test_every_file_that_contributors_are_sent_to_exists() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text()
    named = re.findall(r"`([a-z/]+)`(?:,|:) its\s(?:\w+\sin\s)?`(\w+\.py)`", page)
    assert len(named) > 20
    assert [f"{folder}/{name}" for folder, name in named if not (SOURCE / folder / name).is_file()] == []


OF_EVERY_KIND = {"Observed", "Normalised"}
"""Classes that each kind has under the same name, because they are the same thing of each (docs/glossary.md)."""
MOST_CLASSES_OF_A_NAME = 3


def test_a_name_of_a_class_means_one_thing() -> None:
    """Two things may share a plain word where both are small; a word of four files says nothing any more."""
    files: dict[str, list[str]] = {}
    for file in SOURCE.rglob("*.py"):
        for name in re.findall(r"^class ([A-Za-z]\w*)", file.read_text(), re.MULTILINE):
            files.setdefault(name, []).append(str(file.relative_to(SOURCE)))
    many = {name: sorted(where) for name, where in files.items() if len(where) > MOST_CLASSES_OF_A_NAME}
    assert {name: where for name, where in many.items() if name not in OF_EVERY_KIND} == {}, "say which one each is"


DECIDES = re.compile(r"def decide\w*\([^)]*\bobserved: Observed\b")


def test_observed_is_always_what_a_decision_is_given() -> None:
    """`decide` stands beside the type, or in a folder below it."""
    places = [file for file in SOURCE.rglob("*.py") if re.search(r"^class Observed\b", file.read_text(), re.MULTILINE)]
    undecided = [
        str(file.relative_to(SOURCE))
        for file in places
        if not any(DECIDES.search(near.read_text()) for near in file.parent.rglob("*.py"))
    ]
    assert len(places) > 20
    assert undecided == []


ABOUT_MORE_THAN_A_FOLDER = {"budgets", "chart", "docs", "tools"}
"""Folders of unit tests: of what strangers send, of the chart, of pages, of the tests' own tools."""


TESTED_ABOVE = {"local/workflow/expressions", "pipelines/components"}
"""Folders whose one file of tests lies beside those of the folder around them."""
SEVERAL = 3
"""Modules of a folder that make a folder of tests worth having."""
TESTS = ROOT / "tests" / "unit"


def _with_tests(folder: str) -> bool:
    return any((TESTS / folder).rglob("test_*.py"))


def test_tests_of_a_folder_are_found_under_its_name() -> None:
    tested = {str(file.parent.relative_to(TESTS)) for file in TESTS.rglob("test_*.py")}
    strays = {folder for folder in tested if not (SOURCE / folder).is_dir()} - ABOUT_MORE_THAN_A_FOLDER
    assert strays == set()
    sizes = Counter(str(file.parent.relative_to(SOURCE)) for file in SOURCE.rglob("*.py"))
    parts = {folder for folder, modules in sizes.items() if modules >= SEVERAL and "recipes" not in folder}
    parts |= {str(init.parent.relative_to(SOURCE)) for init in SOURCE.glob("local/*/__init__.py")}
    assert {part for part in parts if not _with_tests(part)} - TESTED_ABOVE == set()


ABOUT_ITS_NEIGHBOURS_TOO = {
    "controllers/sampledata/test_docs.py",
    "local/workflow/pods/test_pod_fields.py",
    "pipelines/test_text_detection.py",
}
"""Files of tests that import one part and test more through it."""


def _imported_folders(file: Path) -> Iterator[str]:
    """Folders of the source that a file imports from."""
    for node in ast.walk(ast.parse(file.read_text())):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for package, *parts in (name.split(".") for name in names):
            if package == SOURCE.name:
                depth = next((n for n in range(len(parts), 0, -1) if SOURCE.joinpath(*parts[:n]).is_dir()), 0)
                yield "/".join(parts[:depth])


def test_tests_of_one_part_of_a_folder_lie_in_the_folder_of_that_part() -> None:
    misplaced = {}
    for file in TESTS.rglob("test_*.py"):
        folder = str(file.parent.relative_to(TESTS))
        used = {found for found in _imported_folders(file) if f"{found}/".startswith(f"{folder}/")}
        parts = {found.removeprefix(folder).split("/")[1] if found != folder else "" for found in used}
        if len(parts) == 1 and parts != {""}:
            misplaced[str(file.relative_to(TESTS))] = parts.pop()
    assert {name: part for name, part in misplaced.items() if name not in ABOUT_ITS_NEIGHBOURS_TOO} == {}
