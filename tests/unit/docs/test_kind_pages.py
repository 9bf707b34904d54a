"""The reference pages say what the declarations say."""

from __future__ import annotations

import kind_pages
import pytest

from paddlecloud.api import KINDS
from paddlecloud.api.kind import KindDeclaration
from paddlecloud.api.schema import root_schema

DOCS = kind_pages.FOLDER
PAGES = kind_pages.pages()


@pytest.mark.parametrize("name", PAGES)
def test_page_is_fresh(name: str) -> None:
    written = DOCS / name
    assert written.exists(), "run: make rendered"
    assert written.read_text(encoding="utf-8") == PAGES[name], "run: make rendered"


def test_there_is_no_page_of_a_kind_that_is_gone() -> None:
    assert {path.name for path in DOCS.glob("*.md")} == set(PAGES)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_field_of_spec_and_status_is_on_the_page(kind: KindDeclaration) -> None:
    text = PAGES[f"{kind.singular}.md"]
    for part in ("spec", "status") if kind.status else ("spec",):
        for name in root_schema(kind)["properties"][part]["properties"]:
            assert f"| `{name}` |" in text
