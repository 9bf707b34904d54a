"""Pages that point at files and tests point at ones that exist."""

from __future__ import annotations

import importlib.util
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text())
    local = [target for target in targets if "://" not in target and not target.startswith("mailto:")]
    missing = [target for target in local if not (page.parent / target).exists()]
    assert not missing, f"{page.name} links to what is not there: {missing}"


@cache
def _anchors(page: Path) -> frozenset[str]:
    """Of its headings, as they are made of them on GitHub, and those that are written out."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    found: dict[str, int] = {}
    for heading in re.findall(r"^#+ +(.*?) *$", text, re.MULTILINE):
        shown = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        found[anchor] = found.get(anchor, 0) + 1
    repeated = {f"{anchor}-{number}" for anchor, times in found.items() for number in range(1, times)}
    return frozenset({*found, *repeated, *re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text)})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_a_heading_of_their_page(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", page.read_text())
    local = [(page.parent / target if target else page, anchor) for target, anchor in links if "://" not in target]
    pages = [(target, anchor) for target, anchor in local if target.suffix == ".md" and target.exists()]
    missing = [f"{target.name}#{anchor}" for target, anchor in pages if anchor not in _anchors(target)]
    assert not missing, f"{page.name} links to headings that are not there: {missing}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_named_tests_exist(page: Path) -> None:
    missing = [
        f"{path}::{name}"
        for path, name in re.findall(r"(tests/[\w/]+\.py)::(\w+)", page.read_text())
        if not (ROOT / path).exists() or f"def {name}(" not in (ROOT / path).read_text()
    ]
    assert not missing, f"{page.name} names tests that are not there: {missing}"


NAMED_FILE = re.compile(r"`((?:[\w-]+/)*[a-z_-]+\.py|tests/[\w/.-]+)`")
FILES_OF_USERS = {"process.py", "sweep.py", "train.py"}
"""Of the examples that pages explain."""
CURRENT = [page for page in PAGES if page.name != "CHANGELOG.md"]
"""Pages about the tree as it is; the other one names files as they were then."""


@cache
def _places() -> set[str]:
    """Every file and folder, by the end of its path: `server.py`, `http/server.py` and so on."""
    folders = ("src", "suites", "tests", "charts", "bench", "docs", "examples")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*") if "__pycache__" not in path.parts]
    parts = [path.relative_to(ROOT).parts for path in paths]
    return {"/".join(one[begin:]) for one in parts for begin in range(len(one))}


@pytest.mark.parametrize("page", CURRENT, ids=lambda page: str(page.relative_to(ROOT)))
def test_named_files_exist(page: Path) -> None:
    named = {name.rstrip("/") for name in NAMED_FILE.findall(page.read_text())}
    assert sorted(named - _places() - FILES_OF_USERS) == [], f"{page.name} names files that are not there"


CHINESE = [page for page in PAGES if page.name.endswith(".zh.md")]


CHINESE_INSTEAD = {"数据集": "样本集", "成组调度": "组调度", "说的是同一套": "使用同一套"}
"""Words of the glossary instead of others for the same thing, and plain verbs."""


@pytest.mark.parametrize("page", CHINESE, ids=lambda page: str(page.relative_to(ROOT)))
def test_one_thing_has_one_chinese_name(page: Path) -> None:
    text = page.read_text()
    assert {word: better for word, better in CHINESE_INSTEAD.items() if word in text} == {}


def test_tests_named_without_their_file_exist() -> None:
    text = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    defined = {*re.findall(r"def (test_\w+)\(", text), "test_label"}  # which is an input of a component
    named = {(page.name, name) for page in PAGES for name in re.findall(r"`(test_\w+)`", page.read_text())}
    assert named
    assert not [(page, name) for page, name in sorted(named) if name not in defined]


def test_the_page_of_differences_is_current() -> None:
    spec = importlib.util.spec_from_file_location("differences_page", ROOT / "tests/cluster/differences_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (ROOT / "docs/differences.md").read_text() == module.page(), "run python tests/cluster/differences_page.py"
