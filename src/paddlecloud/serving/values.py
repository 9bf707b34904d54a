"""Numbers and texts out of JSON as arrays, exactly: what a type cannot hold is refused, never rounded, cut or guessed.

numpy alone would make 1 of 1.5, of "1" and of true, and infinity of 1e39. Triton's server refuses these too. Accepted
beyond the very type: whole numbers written with a point (1.0) for integers, 0 and 1 for BOOL, and for floating point
any number within the type's range, which is rounded as every decimal fraction is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np

LONGEST = 40
"""Characters of a value that a refusal quotes."""
UNEVEN = "its rows differ in length"
_JSON = frozenset({int, float, bool, str, type(None), dict})
_KINDS = {bool: "a truth value", str: "a text", dict: "an object"}
_NUMPY_ON_UNEVEN_ROWS = ("inhomogeneous", "must have the same shape", "must match exactly", "setting an array element")


class Unfit(ValueError):
    """A value that the type cannot hold, or lists that make no tensor; the text is for the sender."""


def from_lists(data: Any, dtype: str) -> Any:
    """An array of that type from nested lists. What a model's own code made (numpy's arrays) keeps its type."""
    values = _flat(data)
    types = set(map(type, values))
    try:
        if not types <= _JSON:
            return np.asarray(data)
        if dtype != "object":
            _check_numbers(values, types, np.dtype(dtype))
        with np.errstate(all="ignore"):  # what overflows is found by comparing
            array = np.array(data, dtype=dtype)
    except Unfit:
        raise
    except OverflowError:
        raise Unfit("a number is larger than any of that type") from None
    except (TypeError, ValueError) as error:
        raise Unfit(reason_of(error)) from error
    if dtype == "object":
        check_texts(array)
    elif array.dtype.kind == "f" and not np.isfinite(array).all():
        _check_range(values, array)
    return array


def check_texts(array: Any) -> None:
    """BYTES are texts, or the bytes of some; anything else would fail inside the model."""
    for item in array.reshape(-1):
        if isinstance(item, (list, tuple)):
            raise Unfit(UNEVEN)
        if not isinstance(item, (str, bytes)):
            raise Unfit(f"{_described(item)}, not a text")
        if isinstance(item, str) and not _encodable(item):
            raise Unfit(f"{quoted(item)} is no text of Unicode")


def holds(array: Any, dtype: str) -> bool:
    """Whether every number of a floating-point array is one of that integer or truth type."""
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return bool(((array == 0) | (array == 1)).all())
    least, most = np.iinfo(kind).min, np.iinfo(kind).max
    with np.errstate(all="ignore"):
        # One beyond the largest is a power of two, which floating point holds exactly; the largest itself it may not.
        return bool(((array == np.trunc(array)) & (array >= float(least)) & (array < float(most) + 1)).all())


def reason_of(error: Exception) -> str:
    """What numpy says of lists that make no array, for the sender."""
    return UNEVEN if any(words in str(error) for words in _NUMPY_ON_UNEVEN_ROWS) else str(error)


def quoted(value: Any) -> str:
    """As a client wrote it, or the beginning of that."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int) and value.bit_length() > 8 * LONGEST:
        return "the number"  # Python does not write numbers of thousands of digits
    text = ascii(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _described(value: Any) -> str:
    return "null is no value" if value is None else f"{quoted(value)} is {_KINDS.get(type(value), 'a number')}"


def _flat(data: Any) -> list[Any]:
    values = [data]
    while values:
        lists = sum(map(_is_list, values))
        if not lists:
            break
        if lists < len(values):
            raise Unfit(UNEVEN)
        values = list(chain.from_iterable(values))
    return values


def _is_list(value: Any) -> bool:
    return type(value) is list or type(value) is tuple


def _check_numbers(values: list[Any], types: set[type], dtype: Any) -> None:
    allowed = {int, float, bool} if dtype.kind == "b" else {int, float}
    if types - allowed:
        wrong = next(value for value in values if type(value) not in allowed)
        raise Unfit(f"{_described(wrong)}, not a number")
    if dtype.kind == "b":
        _refuse_first(value for value in values if value not in (0, 1))
    elif dtype.kind in "iu" and values:
        if float in types:
            _refuse_first(value for value in values if type(value) is float and not value.is_integer())
        info = np.iinfo(dtype)
        if min(values) < info.min or max(values) > info.max:
            _refuse_first(value for value in values if not info.min <= value <= info.max)


def _check_range(values: list[Any], array: Any) -> None:
    """Infinities and NaN are values of floating-point types; what became one is not."""
    kept = np.isfinite(array).reshape(-1)
    _refuse_first(value for value, same in zip(values, kept, strict=True) if not same and math.isfinite(value))


def _refuse_first(wrong: Iterable[Any]) -> None:
    for value in wrong:
        raise Unfit(f"{quoted(value)} does not fit")


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
