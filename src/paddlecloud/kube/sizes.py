"""Numbers of bytes in words for people."""

from __future__ import annotations

UNITS = ("B", "kB", "MB", "GB", "TB")
BINARY_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
QUANTITY_UNITS = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
"""Of Kubernetes' quantities."""


def size(count: float) -> str:
    """`1.3 GB`: three digits at most, powers of 1000."""
    for unit in UNITS:
        if count < 1000 or unit == UNITS[-1]:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError("the last unit takes everything")


def binary_size(count: float) -> str:
    """`4.2 GiB`: powers of 1024, one decimal below ten.

    >>> [binary_size(n) for n in (0, 200, 4096, 60817408)]
    ['0 B', '200 B', '4.0 KiB', '58 MiB']
    """
    power = 0
    while count >= 1024 ** (power + 1) and power < len(BINARY_UNITS) - 1:
        power += 1
    value = int(count / 1024**power * 10 + 0.5) / 10
    return f"{value:.{1 if value < 10 and power else 0}f} {BINARY_UNITS[power]}"


def binary_quantity(count: int) -> str:
    """`23.54Gi`: a quantity of Kubernetes, rounded down to two decimals."""
    power = min(max(count.bit_length() - 1, 0) // 10, len(QUANTITY_UNITS) - 1)
    return f"{count * 100 // 1024**power / 100:g}{QUANTITY_UNITS[power]}"
