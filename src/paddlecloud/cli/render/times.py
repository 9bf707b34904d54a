"""Ages and moments for people, in kubectl's short form. No clock of its own: `now` is passed in."""

from __future__ import annotations

import re

_RFC3339 = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?([Zz]|[+-]\d\d:\d\d)")

_STEPS = (
    # (below this many seconds, seconds of the unit, its letter, seconds of the second unit, its letter)
    (120, 1, "s", 0, ""),
    (600, 60, "m", 1, "s"),
    (3 * 3600, 60, "m", 0, ""),
    (8 * 3600, 3600, "h", 60, "m"),
    (48 * 3600, 3600, "h", 0, ""),
    (8 * 86400, 86400, "d", 3600, "h"),
    (2 * 365 * 86400, 86400, "d", 0, ""),
    (8 * 365 * 86400, 365 * 86400, "y", 86400, "d"),
)


def short(seconds: float) -> str:
    """`45s`, `5m10s`, `90m`, `3h20m`, `2d4h`, `400d`: at most two units, finer when younger."""
    total = max(0, int(seconds))
    for limit, unit, name, sub, sub_name in _STEPS:
        if total < limit:
            whole, rest = divmod(total, unit)
            extra = rest // sub if sub else 0
            return f"{whole}{name}{extra}{sub_name}" if extra else f"{whole}{name}"
    return f"{total // (365 * 86400)}y"


def parse(text: str) -> float:
    """Seconds since the epoch of an RFC 3339 time; raises ValueError.

    `kube.clock` has one for whole programs; importing it costs asyncio, which a read command cannot afford.
    """
    import datetime

    match = _RFC3339.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not an RFC 3339 time")
    moment, fraction, zone = match.groups()
    whole = datetime.datetime.fromisoformat(moment + ("+00:00" if zone in "Zz" else zone)).timestamp()
    return whole + float(f"0.{fraction or 0}")


def age(text: str | None, now: float) -> str:
    """The age of a moment written in an object."""
    if not text:
        return "<unknown>"
    try:
        return short(now - parse(text))
    except ValueError:
        return "<invalid>"
