"""Durations as Argo's users write them. Pure."""

from __future__ import annotations

from typing import Any

from paddlecloud.api.durations import WITH_DAYS, seconds_of

LONGEST = 10 * 365 * 86400.0
"""Seconds: longer ones count as this."""


class BadDuration(ValueError):
    """The text is no duration."""


def seconds(text: Any) -> float:
    """`30`, `30s`, `1h30m`."""
    whole = str(text).strip()
    if whole.isdecimal():
        return min(float(whole), LONGEST)
    if (found := seconds_of(whole, WITH_DAYS)) is None:
        raise BadDuration(f"unable to parse {whole!r} as a duration")
    return min(found, LONGEST)
