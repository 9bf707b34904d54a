"""Moments and durations as text: what objects hold (RFC 3339), and what people read. No clock, no event loop."""

from __future__ import annotations

import datetime
import functools
import itertools
import re

_RFC3339 = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?([Zz]|[+-]\d\d:\d\d)")
_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400
_STEPS = (
    # while shorter than, in units of, with a remainder in units of
    (2 * _MINUTE, (1, "s"), None),
    (10 * _MINUTE, (_MINUTE, "m"), (1, "s")),
    (3 * _HOUR, (_MINUTE, "m"), None),
    (8 * _HOUR, (_HOUR, "h"), (_MINUTE, "m")),
    (2 * _DAY, (_HOUR, "h"), None),
    (8 * _DAY, (_DAY, "d"), (_HOUR, "h")),
    (2 * _YEAR, (_DAY, "d"), None),
    (8 * _YEAR, (_YEAR, "y"), (_DAY, "d")),
)
_UNITS = ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "m"), (1, "s"))


def rfc3339(seconds: float) -> str:
    """`2026-11-15T09:46:56Z`: the form of metav1.Time."""
    return _rfc3339(int(seconds))


@functools.lru_cache(maxsize=256)  # the same second is written thousands of times under load
def _rfc3339(seconds: int) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def rfc3339_micro(seconds: float) -> str:
    """`2026-11-15T09:46:56.123456Z`: the form of metav1.MicroTime (Leases, Events)."""
    moment = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_rfc3339(text: str) -> float:
    """Seconds since the epoch, with a fraction of any length; raises ValueError, also for a time that is outside of the
    years 1 to 9999 in UTC and so could not be written again."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not an RFC 3339 time")
    moment, fraction, zone = match.groups()
    try:
        at = datetime.datetime.fromisoformat(moment + ("+00:00" if zone in "Zz" else zone))
        whole = (at if zone in "Zz" else at.astimezone(datetime.timezone.utc)).timestamp()
    except OverflowError:
        raise ValueError(f"{text!r} is no time of the years 1 to 9999") from None
    return whole + float(f"0.{fraction}") if fraction else whole


def moment_of(text: object) -> float | None:
    """As `parse_rfc3339`; None for what is no time. Objects that others write may hold anything."""
    try:
        return parse_rfc3339(text) if isinstance(text, str) else None
    except ValueError:
        return None


def human_duration(seconds: float) -> str:
    """`5s`, `2m3s`, `10m`, `4h5m`, `3d4h`, `12d`, `2y3d`: two units while short, one when long; nothing below zero.

    As kubectl shows ages: k8s.io/apimachinery/pkg/util/duration, HumanDuration.
    """
    whole = max(int(seconds), 0)
    for limit, (unit, letter), rest in _STEPS:
        if whole < limit:
            text = f"{whole // unit}{letter}"
            smaller = whole % unit // rest[0] if rest else 0
            return f"{text}{smaller}{rest[1]}" if rest and smaller else text
    return f"{whole // _YEAR}y"


def precise_duration(seconds: float) -> str:
    """`4.2s`, `45s`, `5m33s`: tenths below ten seconds, the two largest units above."""
    return f"{seconds:.1f}s" if seconds < 10 else two_units(round(seconds))


def two_units(seconds: int) -> str:
    """`45s`, `2m10s`, `1h20m`, `3d4h`: always the two largest units, for what is still to come."""
    for (size, big), (part, small) in itertools.pairwise(_UNITS):
        if seconds >= size:
            rest = seconds % size // part
            return f"{seconds // size}{big}" + (f"{rest}{small}" if rest else "")
    return f"{seconds}s"
