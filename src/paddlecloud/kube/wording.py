"""Numbers and errors of the system in sentences for people."""

from __future__ import annotations


def number_of(number: int, noun: str, *, grouped: bool = False) -> str:
    """`1 pod`, `2 pods`; `12,000 files` if `grouped`."""
    return f"{number:{',' if grouped else ''}} {noun}{'' if number == 1 else 's'}"


def cause_of(error: Exception) -> str:
    """`no such file or directory`: without Python's `[Errno 2]` and without the path, which the sentence names."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    return error.strerror[:1].lower() + error.strerror[1:]
