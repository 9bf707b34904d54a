"""Pages: every row once, whatever is created or deleted between two of them."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.pipelines.api.paging import MAX_SIZE, Query, page
from paddlecloud.pipelines.api.replies import RequestRefused

FIELDS = ("created_at", "name", "id")


def rows(*names: str) -> list[dict[str, object]]:
    return [{"id": str(at), "name": name, "created_at": float(at)} for at, name in enumerate(names)]


def ids(found: object) -> list[str]:
    return [row["id"] for row in found]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("sort_by", "expected"),
    [
        ("", ["0", "1", "2"]),
        ("created_at desc", ["2", "1", "0"]),
        ("name", ["1", "2", "0"]),
        ("name asc", ["1", "2", "0"]),
        ("display_name desc", ["0", "2", "1"]),
    ],
)
def test_rows_are_sorted_by_a_field_in_either_direction(sort_by: str, expected: list[str]) -> None:
    assert ids(page(rows("c", "a", "b"), Query(sort_by=sort_by), FIELDS).rows) == expected


@given(
    st.lists(st.sampled_from("abc"), max_size=30),
    st.integers(1, 7),
    st.sampled_from(["", "name", "name desc", "created_at desc"]),
)
def test_following_the_tokens_gives_every_row_once_and_in_order(names: list[str], size: int, sort_by: str) -> None:
    everything = rows(*names)
    found: list[str] = []
    token = ""
    for _ in range(len(names) + 1):
        got = page(everything, Query("", sort_by, token, str(size)), FIELDS)
        found += ids(got.rows)
        assert got.total == len(names)
        token = got.next_token
        if not token:
            break
    assert not token
    assert found == ids(page(everything, Query("", sort_by, "", str(MAX_SIZE)), FIELDS).rows)
    assert sorted(found) == sorted(ids(everything))


def test_what_is_deleted_or_created_between_pages_repeats_and_hides_nothing() -> None:
    everything = rows("a", "b", "c", "d")
    first = page(everything, Query(page_size="2"), FIELDS)
    later = [{"id": "new", "name": "x", "created_at": -1.0}, *everything[1:]]
    assert ids(page(later, Query(page_size="2", page_token=first.next_token), FIELDS).rows) == ["2", "3"]


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        (Query(page_size="-1"), "page_size"),
        (Query(page_size="x"), "page_size"),
        (Query(page_size="9" * 30), "page_size"),
        (Query(sort_by="name up"), "write a field"),
        (Query(sort_by="nmae"), "known are created_at, name, id"),
        (Query(page_token="x"), "none of this server's"),
        (Query(page_token=base64.urlsafe_b64encode(b"[1]").decode()), "none of this server's"),
        (Query(page_token="é"), "none of this server's"),
    ],
)
def test_what_is_wrong_is_named(query: Query, sentence: str) -> None:
    with pytest.raises(RequestRefused, match=sentence):
        page(rows("a"), query, FIELDS)


def test_a_token_serves_only_the_list_it_was_made_for() -> None:
    token = page(rows("a", "b"), Query(page_size="1"), FIELDS).next_token
    with pytest.raises(RequestRefused, match="another filter or sorting"):
        page(rows("a", "b"), Query(page_size="1", page_token=token, sort_by="name"), FIELDS)
    forged = json.loads(base64.urlsafe_b64decode(token))
    forged[1] = "a text"
    with pytest.raises(RequestRefused, match="none of this server's"):
        page(
            rows("a", "b"),
            Query(page_size="1", page_token=base64.urlsafe_b64encode(json.dumps(forged).encode()).decode()),
            FIELDS,
        )


def test_a_page_has_at_most_two_hundred_rows() -> None:
    assert len(page(rows(*["a"] * 300), Query(page_size="300"), FIELDS).rows) == MAX_SIZE
