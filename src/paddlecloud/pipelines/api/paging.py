"""Sorting, and pages with opaque tokens. Pure.

A token holds the place after the last row of a page, not a number of rows: what is created or deleted between two
pages neither repeats a row nor hides one. It is bound to the sorting and the filter that it was made for.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from paddlecloud.pipelines.api import filters
from paddlecloud.pipelines.api.filters import Row
from paddlecloud.pipelines.api.replies import RequestRefused

DEFAULT_SIZE = 20
MAX_SIZE = 200
"""KFP's own limits (backend/src/apiserver/list)."""


class Query(NamedTuple):
    """What a list request asks for, as it came."""

    filter: str = ""
    sort_by: str = ""
    page_token: str = ""
    page_size: str = ""


class Page(NamedTuple):
    rows: list[Row]
    total: int
    next_token: str


def page(rows: Sequence[Row], query: Query, fields: Sequence[str]) -> Page:
    predicates = filters.parse(query.filter, fields)
    field, descending = _order(query.sort_by, fields)
    found = [row for row in rows if all(predicate.holds(row) for predicate in predicates)]
    found.sort(key=lambda row: (row[field], row["id"]), reverse=descending)
    size, bound = _size(query.page_size), _bound(query)
    if query.page_token:
        last = _place(query.page_token, bound)
        found_after = [row for row in found if _is_after((row[field], row["id"]), last, descending)]
    else:
        found_after = found
    shown = found_after[:size]
    more = len(found_after) > size
    return Page(shown, len(found), _token(shown[-1], field, bound) if more else "")


def _order(sort_by: str, fields: Sequence[str]) -> tuple[str, bool]:
    words = sort_by.split()
    if len(words) > 2 or (len(words) == 2 and words[1].lower() not in ("asc", "desc")):
        raise RequestRefused(400, f"sort_by is {sort_by[:60]!r}; write a field, or a field and asc or desc")
    field = filters.field_named(words[0], "sort_by", fields) if words else "created_at"
    return field, len(words) == 2 and words[1].lower() == "desc"


def _size(text: str) -> int:
    if not text or text == "0":
        return DEFAULT_SIZE
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise RequestRefused(400, f"page_size is {text[:20]!r}; it must be a whole number from 1 to {MAX_SIZE}")
    return min(int(text), MAX_SIZE)


def _bound(query: Query) -> str:
    return hashlib.sha256(f"{query.sort_by}\0{query.filter}".encode()).hexdigest()[:16]


def _token(row: Row, field: str, bound: str) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode([bound, row[field], row["id"]])).decode()


def _place(token: str, bound: str) -> tuple[Any, str]:
    try:
        made_for, value, last = msgspec.json.decode(base64.urlsafe_b64decode(token), type=tuple[str, str | float, str])
    except (binascii.Error, ValueError, msgspec.MsgspecError, RecursionError) as error:
        raise RequestRefused(400, "page_token is none of this server's; begin again without one") from error
    if made_for != bound:
        raise RequestRefused(
            400, "page_token belongs to a list with another filter or sorting; begin again without one"
        )
    return value, last


def _is_after(place: tuple[Any, str], last: tuple[Any, str], descending: bool) -> bool:
    try:
        return bool(place < last if descending else place > last)
    except TypeError as error:  # a token of our shape with a value of another type
        raise RequestRefused(400, "page_token is none of this server's; begin again without one") from error
