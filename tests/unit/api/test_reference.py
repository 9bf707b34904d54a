"""The reference pages say what the declarations say."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlecloud.api import KINDS, reference
from paddlecloud.api.schema import root_schema

DOCS = Path(__file__).parents[3] / "docs" / "kinds"
PAGES = reference.pages()


@pytest.mark.parametrize("name", PAGES)
def test_page_is_fresh(name: str) -> None:
    written = DOCS / name
    assert written.exists(), "run: python -m paddlecloud.api.reference docs/kinds"
    assert written.read_text(encoding="utf-8") == PAGES[name], "run: python -m paddlecloud.api.reference docs/kinds"


def test_there_is_no_page_of_a_kind_that_is_gone() -> None:
    assert {path.name for path in DOCS.glob("*.md")} == set(PAGES)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_field_of_spec_and_status_is_on_the_page(kind: reference.KindDeclaration) -> None:
    text = PAGES[f"{kind.singular}.md"]
    for part in ("spec", "status"):
        for name in root_schema(kind)["properties"][part]["properties"]:
            assert f"| `{name}` |" in text
