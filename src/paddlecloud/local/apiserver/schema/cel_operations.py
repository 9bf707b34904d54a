"""What operators and functions of CEL do with values: fields, indexes, arithmetic, comparisons, logic. Pure.

Each function combines expressions into one; `cel` reads the text and calls them.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

Value = Any
Expression = Callable[[Value], Value]
"""From the values of `self` and `oldSelf`, a pair, to that of the expression."""

_INTEGERS = range(-(2**63), 2**63)


class EvaluationError(ValueError):
    """An expression has no value for this object: a field is missing, or the types do not go together."""


def constant(value: Value) -> Expression:
    return lambda _: value


def index(of: Expression, by: Expression) -> Expression:
    def value(self: Value) -> Value:
        found, key = of(self), by(self)
        fits = isinstance(key, str) if isinstance(found, dict) else isinstance(found, list) and _is_number(key)
        try:
            if fits and not (isinstance(found, list) and key < 0):
                return found[key]
        except (KeyError, IndexError, TypeError):
            pass  # said below, in the words of the language
        raise EvaluationError(f"no such key: {key}")

    return value


def has(of: Expression, name: str) -> Expression:
    """Whether a field is set. The object that should have it must be there: `has(self.a.b)` is an error without `a`."""

    def value(self: Value) -> Value:
        found = of(self)
        if not isinstance(found, dict):
            raise EvaluationError(f"no such key: {name}")
        return found.get(name) is not None

    return value


def size(of: Expression) -> Expression:
    def value(self: Value) -> Value:
        found = of(self)
        if not isinstance(found, (str, list, dict)):
            raise EvaluationError("no such overload: size")
        return len(found)

    return value


def string_test(of: Callable[[str, str], bool], text: Expression, part: Expression) -> Expression:
    def value(self: Value) -> Value:
        found, wanted = text(self), part(self)
        if not (isinstance(found, str) and isinstance(wanted, str)):
            raise EvaluationError("no such overload: a function of strings on what is none")
        return of(found, wanted)

    return value


def _boolean(of: Expression, self: Value) -> bool:
    found = of(self)
    if not isinstance(found, bool):
        raise EvaluationError("no such overload: not a boolean")
    return found


def negation(of: Expression) -> Expression:
    return lambda self: not _boolean(of, self)


def choice(test: Expression, then: Expression, otherwise: Expression) -> Expression:
    return lambda self: then(self) if _boolean(test, self) else otherwise(self)


def either(decisive: bool, left: Expression, right: Expression) -> Expression:
    """`||` where True is decisive, `&&` where False is: the decisive side makes an error on the other irrelevant."""

    def value(self: Value) -> Value:
        try:
            if _boolean(left, self) is decisive:
                return decisive
        except EvaluationError:
            if _boolean(right, self) is decisive:
                return decisive
            raise
        return _boolean(right, self)

    return value


def _is_number(value: Value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def whole(value: int) -> int:
    if value not in _INTEGERS:
        raise EvaluationError("integer overflow")
    return value


def arithmetic(of: Callable[[Any, Any], Any], left: Expression, right: Expression) -> Expression:
    def value(self: Value) -> Value:
        a, b = left(self), right(self)
        if of is operator.add and type(a) is type(b) and isinstance(a, (str, list)):
            return a + b  # one after the other
        if not (_is_number(a) and _is_number(b)):
            raise EvaluationError("no such overload: arithmetic on what is no number")
        try:
            found = of(a, b)
        except ZeroDivisionError:
            raise EvaluationError("division by zero") from None
        except OverflowError:  # a whole number of the object that no floating-point number is as large as
            raise EvaluationError("overflow") from None
        return whole(found) if isinstance(found, int) else found

    return value


def _quotient(a: Any, b: Any) -> Any:
    """Whole numbers are divided toward zero."""
    if not (isinstance(a, int) and isinstance(b, int)):
        return a / b
    found = abs(a) // abs(b)
    return found if (a < 0) == (b < 0) else -found


def _remainder(a: Any, b: Any) -> Any:
    return a - b * _quotient(a, b)


def _same(a: Value, b: Value) -> bool:
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)


def _compared(of: Callable[[Any, Any], bool]) -> Callable[[Expression, Expression], Expression]:
    def joint(left: Expression, right: Expression) -> Expression:
        def value(self: Value) -> Value:
            a, b = left(self), right(self)
            if not (_is_number(a) and _is_number(b)) and not (type(a) is type(b) and isinstance(a, (str, bool))):
                raise EvaluationError("no such overload: comparison of different types")
            return of(a, b)

        return value

    return joint


def _within(left: Expression, right: Expression) -> Expression:
    def value(self: Value) -> Value:
        wanted, among = left(self), right(self)
        if not isinstance(among, (list, dict)):
            raise EvaluationError("no such overload: in")
        return any(_same(wanted, part) for part in among)

    return value


ON_STRINGS: dict[str, Callable[[str, str], bool]] = {
    "contains": operator.contains,
    "startsWith": str.startswith,
    "endsWith": str.endswith,
}
RELATIONS: dict[str, Callable[[Expression, Expression], Expression]] = {
    "==": lambda left, right: lambda self: _same(left(self), right(self)),
    "!=": lambda left, right: lambda self: not _same(left(self), right(self)),
    "<": _compared(operator.lt),
    "<=": _compared(operator.le),
    ">": _compared(operator.gt),
    ">=": _compared(operator.ge),
    "in": _within,
}
SUMS = {"+": functools.partial(arithmetic, operator.add), "-": functools.partial(arithmetic, operator.sub)}
PRODUCTS = {
    "*": functools.partial(arithmetic, operator.mul),
    "/": functools.partial(arithmetic, _quotient),
    "%": functools.partial(arithmetic, _remainder),
}
