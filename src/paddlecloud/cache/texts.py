"""Amounts in words."""

from __future__ import annotations

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def amount(size: int) -> str:
    """`4.2 GiB`, one decimal below ten."""
    if size < 10:
        return f"{size} B"
    exponent = 0
    while size >= 1024 ** (exponent + 1) and exponent < len(_UNITS) - 1:
        exponent += 1
    value = int(size / 1024**exponent * 10 + 0.5) / 10
    return f"{value:.1f} {_UNITS[exponent]}" if value < 10 and exponent else f"{value:.0f} {_UNITS[exponent]}"
