"""How much evaluations may do and build: expressions come from tenants, and one process evaluates all of them.

One expression has a `Budget`. All that one pass over a workflow evaluates and substitutes shares a `Work`: thousands of
expressions that are each within their budget hold nobody up either.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from paddlecloud.local.workflow.expressions.tokens import ExpressionError

STEPS = 200_000
SIZE = 4_000_000
"""Characters of all values that are built on the way; an element of an array or a map counts as some of them."""
STEPS_OF_A_PASS = 1_000_000
SIZE_OF_A_PASS = 16_000_000
ELEMENT = 4
"""What an element of an array or a map counts, in characters."""

V = TypeVar("V")


class TooMuchWork(Exception):
    """One pass over a workflow evaluates more than is allowed: the whole workflow is at fault, not one expression."""


class Work:
    """What is left to one pass."""

    def __init__(self, share: int = 1) -> None:
        self._steps = STEPS_OF_A_PASS // share
        self._size = SIZE_OF_A_PASS // share
        self._half = self._steps // 2, self._size // 2

    def take(self, steps: int, size: int = 0) -> None:
        self._steps -= steps
        self._size -= size
        if self._steps < 0 or self._size < 0:
            raise TooMuchWork("the expressions and tags of the workflow take more work than one pass may do")

    @property
    def is_half_done(self) -> bool:
        steps, size = self._half
        return self._steps < steps or self._size < size


_work: ContextVar[Work | None] = ContextVar("work", default=None)


@contextmanager
def one_pass(share: int = 1) -> Iterator[Work]:
    """With one of so many shares of the usual work."""
    work = Work(share)
    token = _work.set(work)
    try:
        yield work
    finally:
        _work.reset(token)


def take_work(steps: int, size: int = 0) -> None:
    """Outside of a pass there is no limit but that of each expression."""
    if (work := _work.get()) is not None:
        work.take(steps, size)


class Budget:
    def __init__(self) -> None:
        self._steps = STEPS
        self._size = SIZE
        self._work = _work.get() or Work()

    def step(self) -> None:
        self._steps -= 1
        if self._steps < 0:
            raise ExpressionError(f"the expression takes more than {STEPS:,} steps")
        self._work.take(1)

    def spend(self, size: int) -> None:
        """To be called before something of this size is made, or gone through."""
        self._size -= size
        if self._size < 0:
            raise ExpressionError("memory budget exceeded")
        self._work.take(0, size)

    def elements(self, count: int) -> None:
        self.spend(count * ELEMENT)

    def whole(self, *values: Any) -> None:
        """Spend the size of everything inside. An array that is in another one ten times counts ten times: it is
        written, compared and copied as often."""
        todo = list(values)
        while todo:
            value = todo.pop()
            if isinstance(value, str):
                self.spend(len(value))
            elif isinstance(value, (list, dict)):
                self.elements(len(value))
                todo += value.values() if isinstance(value, dict) else value

    def counted(self, value: V) -> V:
        """A value that was built."""
        if isinstance(value, (str, list, dict)):
            self.whole(value)
        return value
