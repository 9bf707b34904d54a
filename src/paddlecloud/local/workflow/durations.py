"""Durations as Argo's users write them. Pure."""

from __future__ import annotations

import re
from typing import Any

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
LONGEST = 10 * 365 * 86400.0
"""Seconds: longer ones count as this."""


class BadDuration(ValueError):
    """The text is no duration."""


def seconds(text: Any) -> float:
    """`30`, `30s`, `1h30m`."""
    whole = str(text).strip()
    if whole.isdecimal():
        return min(float(whole), LONGEST)
    if not whole or _SPAN.sub("", whole):
        raise BadDuration(f"unable to parse {whole!r} as a duration")
    return min(sum(float(number) * _UNITS[unit] for number, unit in _SPAN.findall(whole)), LONGEST)
