"""A few transfers at a time; the first failure ends those that have not begun. And reading while writing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
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


def in_another_thread(items: Iterable[T]) -> Iterator[T]:
    """The same items, each made in a thread beside. The client of buckets cannot read while it writes in one thread."""
    end = object()
    with ThreadPoolExecutor(1) as pool:
        source = iter(items)
        while (item := pool.submit(next, source, end).result()) is not end:
            yield item  # type: ignore[misc]
