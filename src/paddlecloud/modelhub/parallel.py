"""A few transfers at a time; the first failure ends those that have not begun."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")
WORKERS = 4


def each(function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """The results in the order of the items."""
    pool = ThreadPoolExecutor(WORKERS)
    try:
        return list(pool.map(function, items))
    finally:
        pool.shutdown(cancel_futures=True)
