"""Numbers in sentences for people."""

from __future__ import annotations


def number_of(number: int, noun: str, *, grouped: bool = False) -> str:
    """`1 pod`, `2 pods`; `12,000 files` if `grouped`."""
    return f"{number:{',' if grouped else ''}} {noun}{'' if number == 1 else 's'}"
