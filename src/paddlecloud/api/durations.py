"""Durations as people write them: `90s`, `1h30m`, `500ms`. Pure.

Each reader names the units that it accepts, since Go's durations have no days, and decides what a number without a unit
means.
"""

from __future__ import annotations

import re

SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}
"""Of each unit."""
GO = ("ms", "s", "m", "h")
WITH_DAYS = (*GO, "d")

_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")


def seconds_of(text: str, units: tuple[str, ...] = GO) -> float | None:
    """The parts of a duration in seconds, added up; None where anything else is in the text, or nothing.

    Part by part: a search from every digit of a long number would be quadratic.
    """
    total, at = 0.0, 0
    while (part := _PART.match(text, at)) is not None and part[2] in units:
        total += float(part[1]) * SECONDS[part[2]]
        at = part.end()
    return total if 0 < at == len(text) else None
