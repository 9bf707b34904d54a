"""The conditions that kinds declare, by which `pdc wait` refuses others, are those that the pages explain."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from paddlecloud.api import paddlejob, paddleservice, profile, sampleset
from paddlecloud.api.kind import KindDeclaration

DOCS = Path(__file__).parents[3] / "docs"
PAGES = {
    "paddlejob.md": (paddlejob.DECLARATION, "| Condition |"),
    "sampleset.md": (sampleset.DECLARATION, "| Type | True when |"),
    "paddleservice.md": (paddleservice.DECLARATION, "| Condition |"),
    "tenants.md": (profile.DECLARATION, "| Condition |"),
}


@pytest.mark.parametrize("page", PAGES)
def test_a_kind_declares_the_conditions_that_its_page_explains(page: str) -> None:
    kind: KindDeclaration
    kind, heading = PAGES[page]
    table = (DOCS / page).read_text(encoding="utf-8").partition(heading)[2].partition("\n\n")[0]
    cells = [row.split("|")[1] for row in table.splitlines()[2:]]
    explained = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    assert explained == set(kind.conditions)
