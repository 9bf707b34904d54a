"""Numbers of bytes in words for people."""

from __future__ import annotations

UNITS = ("B", "kB", "MB", "GB", "TB")


def size(count: float) -> str:
    """`1.3 GB`: three digits at most, powers of 1000."""
    for unit in UNITS:
        if count < 1000 or unit == UNITS[-1]:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError("the last unit takes everything")
