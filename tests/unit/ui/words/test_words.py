"""Every text of a template exists in both languages, with the same values in it; none is left over."""

from __future__ import annotations

import re
from string import Formatter

import pytest

from paddlecloud.ui import words
from paddlecloud.ui.pages import PAGES
from paddlecloud.ui.templates import FOLDER

SOURCES = [*(FOLDER / "templates").glob("*.html"), *FOLDER.glob("*.py"), *(FOLDER / "pages").glob("*.py")]
USED = {key for file in SOURCES for key in re.findall(r"""["']([a-z][a-z.-]+)["']""", file.read_text())}
FAMILIES = {
    found for file in SOURCES for found in re.findall(r"""t\(["']([a-z]+\.[a-z-]*)["']\s*~""", file.read_text())
}
"""Keys of which a template writes the beginning."""


def _fields(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


@pytest.mark.parametrize("key", sorted(words.WORDS))
def test_both_languages_say_it_with_the_same_values(key: str) -> None:
    english, chinese = words.WORDS[key]
    assert english
    assert chinese
    assert _fields(english) == _fields(chinese)


@pytest.mark.parametrize("key", sorted(words.WORDS))
def test_no_text_is_left_over(key: str) -> None:
    assert key in USED or any(key.startswith(family) for family in FAMILIES)


def test_every_text_of_a_template_exists() -> None:
    asked = {key for file in SOURCES for key in re.findall(r"""\bt\(["']([a-z][a-z.-]+)["'][,)]""", file.read_text())}
    assert sorted(asked - set(words.WORDS)) == []


def test_tables_have_no_key_twice() -> None:
    assert sum(len(table) for table in words.TABLES) == len(words.WORDS)


def test_every_page_of_the_navigation_has_a_name_and_a_key_of_its_own() -> None:
    keys = [page.key for page in PAGES if page.in_navigation]
    assert len(keys) == len(set(keys))
    assert all(words.has(f"nav.{page.name}") for page in PAGES if page.in_navigation)


@pytest.mark.parametrize(
    ("header", "language"),
    [("zh-CN,zh;q=0.9,en;q=0.8", "zh"), ("de, en;q=0.5", "en"), ("", "en"), ("fr", "en"), ("ZH", "zh"), (",;,", "en")],
)
def test_the_language_is_the_first_of_ours_that_the_browser_names(header: str, language: str) -> None:
    assert words.preferred(header) == language
