"""Lists: what an address asks for, with anything at all in it; and sums that follow every change."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.kube.resource import Object
from paddlecloud.ui import formatting
from paddlecloud.ui.feed import Rows, Totals
from paddlecloud.ui.listing import ROWS, Listed, listed

ORDERS: dict[str, Any] = {"name": lambda row: row, "size": lambda row: -row}


def ask(**query: str) -> Listed[int]:
    return listed(range(120), query, ORDERS, default="name", section="things")


@pytest.mark.parametrize(
    ("query", "first", "number"),
    [
        ({}, 0, 1),
        ({"page": "2"}, ROWS, 2),
        ({"page": "99"}, 2 * ROWS, 3),
        ({"page": "-1"}, 0, 1),
        ({"page": "9" * 5000}, 0, 1),
        ({"page": "²"}, 0, 1),
        ({"sort": "-name"}, 119, 1),
        ({"sort": "size"}, 119, 1),
        ({"sort": "--name"}, 119, 1),
        ({"sort": "other"}, 0, 1),
    ],
)
def test_any_address_gives_a_page(query: dict[str, str], first: int, number: int) -> None:
    found = ask(**query)
    assert (found.rows[0], found.number, found.total) == (first, number, 120)


def test_addresses_keep_what_was_asked_and_turn_the_order() -> None:
    found = ask(q="a b&c", sort="name", page="2")
    assert found.address(page=3) == "/things?q=a+b%26c&sort=name&page=3"
    assert found.sorted_by("name") == "/things?q=a+b%26c&sort=-name"
    assert found.sorted_by("size") == "/things?q=a+b%26c&sort=size"
    assert (found.first, found.last) == (ROWS + 1, 2 * ROWS)


def _pod(name: str, node: str, cpu: int) -> Object:
    return {"metadata": {"name": name, "namespace": "n"}, "node": node, "cpu": cpu}


def _held(obj: Object) -> tuple[str, dict[str, int]] | None:
    return (obj["node"], {"cpu": obj["cpu"]}) if obj["node"] else None


def test_sums_follow_what_comes_changes_moves_and_goes() -> None:
    totals = Totals(_held)
    one, other = _pod("a", "", 1), _pod("b", "x", 2)
    totals.change(None, one)
    totals.change(None, other)
    totals.change(one, moved := _pod("a", "x", 3))
    assert totals.of("x") == {"cpu": 5}
    totals.change(other, None)
    totals.change(moved, _pod("a", "y", 3))
    assert (totals.of("x"), totals.of("y"), totals.of("z")) == ({"cpu": 0}, {"cpu": 3}, {})


def test_rows_follow_what_comes_changes_and_goes() -> None:
    rows = Rows(lambda obj: obj["cpu"])
    rows.change(None, first := _pod("a", "", 1))
    rows.change(first, _pod("a", "", 2))
    rows.change(None, other := _pod("b", "", 5))
    rows.change(other, None)
    assert [(key.name, row) for key, row in rows.all()] == [("a", 2)]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1234567, "1,234,567"),
        (12345.678, "12,345.7"),
        (0.123456, "0.1235"),
        (3.0, "3"),
        (float("nan"), "nan"),
        (None, ""),
        (True, "True"),
        ("x", "x"),
    ],
)
def test_numbers_are_short(value: object, text: str) -> None:
    assert formatting.number(value) == text


@pytest.mark.parametrize("value", ["", "yesterday", None, 7, "2026-13-40T00:00:00Z", {}])
def test_what_is_no_time_has_no_age(value: object) -> None:
    assert formatting.age(value, 0.0) == ""
