"""The full tier is cut into parts: no test file is left out, none runs twice, and the page shows what was seen."""

from __future__ import annotations

from collections import Counter

import pytest

from . import tier


def test_every_test_file_for_a_cluster_belongs_to_exactly_one_part() -> None:
    there = {
        str(path.relative_to(tier.ROOT)) for folder in tier.FOLDERS for path in (tier.ROOT / folder).glob("test_*.py")
    }
    counted = Counter(file for part in tier.PARTS.values() for file in tier.files_of(part))
    assert sorted(there - set(counted)) == [], "in no part"
    assert [file for file, times in counted.items() if times > 1] == [], "in several parts"


@pytest.mark.parametrize("name", tier.PARTS)
def test_every_pattern_of_a_part_names_files_that_are_there(name: str) -> None:
    assert all(list(tier.ROOT.glob(glob)) for glob in tier.PARTS[name].files)


def test_the_page_shows_where_each_part_was_last_green() -> None:
    assert tier.PAGE.read_text(encoding="utf-8") == tier.render(tier.load_seen()), "run `make test-cluster PART=NAME`"
    seen = {"data": {"commit": "abc1234", "date": "2026-01-02", "passed": 7, "skipped": 1, "minutes": 9.5}}
    rows = tier.render(seen).splitlines()
    assert any("| data |" in row and "| `abc1234` | 2026-01-02 | 7 passed, 1 skipped | 9.5 |" in row for row in rows)
    assert any("| chart |" in row and "| never |" in row for row in rows)
