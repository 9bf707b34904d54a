"""Lists of many rows: what an address asks for (text, filters, order, page), and which rows that leaves. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from paddlecloud.ui import templates

ROWS = 50

T = TypeVar("T")
Order = Callable[[T], Any]


@dataclass(frozen=True, slots=True)
class Listed(Generic[T]):
    rows: Sequence[T]
    total: int
    """Rows that match, on all pages."""
    number: int
    pages: int
    sort: str
    descending: bool
    address: Callable[..., str]
    """The address of this list with other values: `address(page=2)`."""

    @property
    def first(self) -> int:
        return (self.number - 1) * ROWS + 1 if self.total else 0

    @property
    def last(self) -> int:
        return min(self.total, self.number * ROWS)

    def sorted_by(self, name: str) -> str:
        """The address that sorts by a column; by the one that it is sorted by, the other way round."""
        turned = name == self.sort and not self.descending
        return self.address(sort=f"-{name}" if turned else name, page="")


def listed(
    rows: Iterable[T],
    query: Mapping[str, str],
    orders: Mapping[str, Order[T]],
    *,
    default: str,
    section: str | tuple[str, ...],
) -> Listed[T]:
    """`section` is the path of the page. `default` is the order where none is asked for: a name of `orders`, with `-`
    before it the other way round."""
    asked = query.get("sort", "")
    chosen = asked if asked.lstrip("-") in orders else default
    name, descending = chosen.lstrip("-"), chosen.startswith("-")
    ordered = sorted(rows, key=orders[name], reverse=descending)
    pages = max(1, math.ceil(len(ordered) / ROWS))
    page = query.get("page", "")
    number = max(1, min(pages, int(page) if page.isdecimal() and len(page) < 9 else 1))

    def address(**others: object) -> str:
        segments = (section,) if isinstance(section, str) else section
        return templates.path(*segments, **{**query, **others})

    shown = ordered[(number - 1) * ROWS : number * ROWS]
    return Listed(shown, len(ordered), number, pages, name, descending, address)


def words_of(query: Mapping[str, str]) -> list[str]:
    """The search: every word must be found."""
    return query.get("q", "").lower().split()[:10]
