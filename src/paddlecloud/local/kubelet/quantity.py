"""Kubernetes quantities (`100m`, `1.5Gi`, `2e3`) as numbers."""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation

_SUFFIXES = {
    "": Decimal(1),
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "k": Decimal(10) ** 3,
    "M": Decimal(10) ** 6,
    "G": Decimal(10) ** 9,
    "T": Decimal(10) ** 12,
    "P": Decimal(10) ** 15,
    "E": Decimal(10) ** 18,
    "Ki": Decimal(2) ** 10,
    "Mi": Decimal(2) ** 20,
    "Gi": Decimal(2) ** 30,
    "Ti": Decimal(2) ** 40,
    "Pi": Decimal(2) ** 50,
    "Ei": Decimal(2) ** 60,
}


def parse_quantity(text: str | int | float) -> Decimal:
    """Raises ValueError for what is not a quantity."""
    value = str(text).strip()
    number = value.rstrip("numkMGTPEi")
    try:
        return Decimal(number) * _SUFFIXES[value[len(number) :]]
    except (InvalidOperation, KeyError) as error:
        raise ValueError(f"{text!r} is not a quantity such as 500m, 2 or 1.5Gi") from error


def whole(text: str | int | float) -> int:
    """Rounded up, as Kubernetes does where a whole number is asked for."""
    return math.ceil(parse_quantity(text))


def divide(text: str | int | float, divisor: str | int | float) -> int:
    """How many divisors it is, rounded up: what resourceFieldRef shows."""
    by = parse_quantity(divisor)
    return math.ceil(parse_quantity(text) / (by or 1))
