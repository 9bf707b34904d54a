"""Times, labels and long lists as kubectl's users are used to reading them in a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlecloud.kube.clock import parse_rfc3339

NONE, UNKNOWN, INVALID, UNSET = "<none>", "<unknown>", "<invalid>", "<unset>"

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400
_STEPS = (
    # while shorter than, in units of, with a remainder in units of (0: none)
    (2 * _MINUTE, (1, "s"), None),
    (10 * _MINUTE, (_MINUTE, "m"), (1, "s")),
    (3 * _HOUR, (_MINUTE, "m"), None),
    (8 * _HOUR, (_HOUR, "h"), (_MINUTE, "m")),
    (2 * _DAY, (_HOUR, "h"), None),
    (8 * _DAY, (_DAY, "d"), (_HOUR, "h")),
    (2 * _YEAR, (_DAY, "d"), None),
    (8 * _YEAR, (_YEAR, "y"), (_DAY, "d")),
)


def human_duration(seconds: float) -> str:
    """`5s`, `2m3s`, `10m`, `4h5m`, `3d4h`, `12d`, `2y3d`: two units while short, one when long.

    One second below zero is forgiven as clock skew; more than that is `<invalid>`.
    """
    whole = int(seconds)
    if whole < -1:
        return INVALID
    whole = max(whole, 0)
    for limit, (unit, letter), rest in _STEPS:
        if whole < limit:
            text = f"{whole // unit}{letter}"
            if rest is None:
                return text
            smaller = whole % unit // rest[0]
            return f"{text}{smaller}{rest[1]}" if smaller else text
    return f"{whole // _YEAR}y"


def timestamp(text: Any) -> float | None:
    """Seconds since the epoch, or None where no time can be read."""
    if not isinstance(text, str) or not text:
        return None
    try:
        return parse_rfc3339(text)
    except ValueError:
        return None


def since(text: Any, now: float) -> str:
    """The age of a moment: `<unknown>` when it was never set, `<invalid>` when it cannot be read."""
    if not text:
        return UNKNOWN
    moment = timestamp(text)
    return INVALID if moment is None else human_duration(now - moment)


def labels_text(labels: Mapping[str, str] | None) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) if labels else NONE


def first_of_many(items: Sequence[str], *, most: int = 3, empty: str = NONE, separator: str = ",") -> str:
    """The first few items and how many more there are."""
    if not items:
        return empty
    text = separator.join(items[:most])
    return f"{text} + {len(items) - most} more..." if len(items) > most else text
