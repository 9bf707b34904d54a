"""Kubernetes quantities: `100m`, `1Gi`, `0.5`, `1e3`, `12E`.

An amount is an int of billionths (nano units), the finest step Kubernetes keeps: everything it can say is exact, and
sums and comparisons are those of Python's ints. What is finer is rounded away from zero, as Kubernetes does
(apimachinery/pkg/api/resource/quantity.go, RoundUp): who asks for some should get some.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Literal

Amount = int
Amounts = dict[str, Amount]
Family = Literal["decimal", "binary", "exponent"]
Written = str | int | float

ONE: Amount = 10**9
MILLI: Amount = 10**6
LARGEST_BINARY: Amount = (2**63 - 1) * ONE  # Kubernetes caps binary quantities here

DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL_NAMES = {exponent: suffix for suffix, exponent in DECIMAL.items()}
_BINARY_NAMES = {power: suffix for suffix, power in BINARY.items()}
_FORM = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]|[eE][+-]?[0-9]+)?")
_BYTES = ("memory", "storage", "ephemeral-storage")
LONGEST = 64  # characters; nobody means more, and huge exponents are how parsers are attacked
LARGEST_EXPONENT = 30


class QuantityError(ValueError):
    """Not a quantity."""


def parse(text: Written) -> Amount:
    """`parse("100m") == 100 * MILLI`. Numbers are taken as YAML gives them."""
    if isinstance(text, bool):
        raise _refuse(text)
    return _parse(str(text))[0]


def canonical(text: Written) -> str:
    """The one way to write it, in its own family: `0.5Gi` → `512Mi`, `1.5` → `1500m`, `1000` → `1k`."""
    return format(*_parse(str(text)))


@lru_cache(maxsize=4096)
def _parse(text: str) -> tuple[Amount, Family]:
    match = _FORM.fullmatch(text) if len(text) <= LONGEST else None
    if match is None or not (match[2] or match[3]):
        raise _refuse(text)
    whole, fraction, suffix = match[2] or "0", match[3] or "", match[4] or ""
    digits, places = int(whole + fraction), len(fraction)
    family: Family = "decimal"
    if suffix in BINARY:
        family = "binary"
        amount = _divide_up(digits * 1024 ** BINARY[suffix] * ONE, 10**places)
        amount = min(amount, LARGEST_BINARY)
    else:
        if suffix in DECIMAL:
            exponent = DECIMAL[suffix]
        else:
            family, exponent = "exponent", int(suffix[1:])
            if abs(exponent) > LARGEST_EXPONENT:
                raise _refuse(text)
        shift = 9 + exponent - places
        amount = digits * 10**shift if shift >= 0 else _divide_up(digits, 10**-shift)
    return (-amount if match[1] == "-" else amount), family


def format(amount: Amount, family: Family = "decimal") -> str:
    """The canonical form: no fraction, the largest suffix that needs none."""
    if family == "binary" and abs(amount) >= 1024 * ONE:
        return _format_binary(amount)
    if amount == 0:
        return "0"
    exponent = -9
    while exponent < 18 and amount % 10 ** (exponent + 12) == 0:
        exponent += 3
    mantissa = amount // 10 ** (exponent + 9)
    if family == "exponent":
        return f"{mantissa}e{exponent}" if exponent else str(mantissa)
    return f"{mantissa}{_DECIMAL_NAMES[exponent]}"


def _format_binary(amount: Amount) -> str:
    sign = "-" if amount < 0 else ""
    mantissa, power = _divide_up(abs(amount), ONE), 0
    while power < 6 and mantissa % 1024 == 0:
        mantissa //= 1024
        power += 1
    return f"{sign}{mantissa}{_BINARY_NAMES.get(power, '')}"


def whole(text: Written) -> int:
    """In units, rounded up: what `value()` of a quantity means for bytes and counts."""
    return _round_up(parse(text), ONE)


def millis(text: Written) -> int:
    """In thousandths, rounded up: the usual unit of CPU."""
    return _round_up(parse(text), MILLI)


def compare(a: Written, b: Written) -> int:
    """-1, 0 or 1. `0.5Gi` and `512Mi` are the same amount."""
    left, right = parse(a), parse(b)
    return (left > right) - (left < right)


def add(*texts: Written) -> str:
    """The sum, written in the family of the first that is not zero, as Quantity.Add of apimachinery does."""
    parsed = [_parse(str(text)) for text in texts]
    family: Family = next((family for amount, family in parsed if amount), "decimal")
    return format(sum(amount for amount, _ in parsed), family)


# Resource lists: {"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": 1}


def amounts(resources: Mapping[str, Written] | None) -> Amounts:
    return {name: parse(value) for name, value in (resources or {}).items()}


def total(lists: Iterable[Mapping[str, Amount]]) -> Amounts:
    result: Amounts = {}
    for one in lists:
        for name, amount in one.items():
            result[name] = result.get(name, 0) + amount
    return result


def largest(lists: Iterable[Mapping[str, Amount]]) -> Amounts:
    """The greatest of each name: what init containers, which run one after another, need together."""
    result: Amounts = {}
    for one in lists:
        for name, amount in one.items():
            result[name] = max(amount, result.get(name, amount))
    return result


def minus(have: Mapping[str, Amount], used: Mapping[str, Amount]) -> Amounts:
    return {name: have.get(name, 0) - used.get(name, 0) for name in {**have, **used}}


def shortages(want: Mapping[str, Amount], have: Mapping[str, Amount]) -> Amounts:
    """How much of what is missing; empty when it fits. Asking for nothing of a thing that is not there is no lack."""
    return {
        name: amount - have.get(name, 0) for name, amount in want.items() if amount > 0 and amount > have.get(name, 0)
    }


def fits(want: Mapping[str, Amount], have: Mapping[str, Amount]) -> bool:
    return not shortages(want, have)


def written(resources: Mapping[str, Amount]) -> dict[str, str]:
    """A resource list as Kubernetes writes it: bytes in binary, everything else in decimal."""
    return {name: format(amount, family_of(name)) for name, amount in resources.items()}


def family_of(resource: str) -> Family:
    return "binary" if resource.rpartition(".")[2] in _BYTES or resource.startswith("hugepages-") else "decimal"


def _divide_up(number: int, by: int) -> int:
    return -(-number // by)


def _round_up(amount: Amount, unit: int) -> int:
    return _divide_up(amount, unit) if amount >= 0 else -_divide_up(-amount, unit)


def _refuse(text: object) -> QuantityError:
    return QuantityError(
        f"{str(text)[:LONGEST]!r} is not a quantity; write a number with an optional suffix: 500m, 2, 1.5, 1Gi, 10M"
    )
