"""The compatibility page is complete, honest and fresh."""

from __future__ import annotations

from . import compatibility

INVENTORY = compatibility.load()


def test_every_block_of_the_manual_has_a_row_and_every_pass_a_test() -> None:
    assert list(compatibility.check(INVENTORY)) == []


def test_every_yaml_of_the_manual_is_kept_and_has_a_row() -> None:
    named = {row.file for row in INVENTORY.rows if row.file}
    kept = {path.relative_to(compatibility.EXAMPLES).as_posix() for path in compatibility.EXAMPLES.rglob("*.yaml")}
    afters = {name.replace("before", "after") for name in named if "before" in name}
    assert kept == named | afters


def test_the_page_is_what_the_inventory_says() -> None:
    written = compatibility.PAGE.read_text(encoding="utf-8")
    assert written == compatibility.render(INVENTORY), "run: python tests/manual/compatibility.py"


def test_a_pass_without_a_test_is_found() -> None:
    row = INVENTORY.rows[0]._replace(embedded=compatibility.Outcome("passes", "", ""))
    assert any("without a test" in fault for fault in compatibility.check(INVENTORY._replace(rows=[row])))


def test_a_test_that_does_not_exist_is_found() -> None:
    claim = compatibility.Outcome("passes", "x", "tests/manual/test_compatibility.py::test_nothing")
    row = INVENTORY.rows[0]._replace(embedded=claim)
    assert any("there is no test" in fault for fault in compatibility.check(INVENTORY._replace(rows=[row])))


def test_a_block_without_a_row_is_found() -> None:
    assert "block yoloe 2 has no row" in compatibility.check(INVENTORY._replace(rows=INVENTORY.rows[:1]))
