"""Cron schedules: five fields, or a name such as `@daily`.

Only the reading of them; when a schedule is due is the controller's business, for it has the clock.
"""

from __future__ import annotations

from dataclasses import dataclass

_NAMED = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, 1)}
_DAYS = {name: number for number, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))}
_FIELDS: tuple[tuple[str, int, int, dict[str, int]], ...] = (
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day of month", 1, 31, {}),
    ("month", 1, 12, _MONTHS),
    ("day of week", 0, 7, _DAYS),
)

FORM = "five fields (minute, hour, day, month, weekday), as in 30 2 * * *, or a name like @daily"
PATTERN = "^ *(@[A-Za-z]+|([-0-9*/,]+ +){3}[-0-9A-Za-z*/,]+ +[-0-9A-Za-z*/,]+) *$"
"""What an API server judges: the number of fields and their characters. The values are left to `parse`."""


LONGEST = 1000
"""Characters of a schedule. One with every minute by itself has 170; a longer one would take its time at every look."""


class BadSchedule(ValueError):
    """The text is not a schedule; the message names the field."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """The values at which it is due. `any_day` and `any_weekday` says whether that field began with `*`: when neither
    did, a day that matches one of the two is enough (the rule of every cron)."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]  # Sunday is 0
    any_day: bool
    any_weekday: bool


def check_length(text: str) -> None:
    if len(text) > LONGEST:
        raise BadSchedule(f'"{text[:40]}…" is longer than {LONGEST} characters')


def parse(text: str) -> Schedule:
    check_length(text)
    fields = _NAMED.get(text.strip().lower(), text).split()
    if len(fields) != len(_FIELDS):
        raise BadSchedule(f'"{text}" must be {FORM}')
    minutes, hours, days, months, weekdays = (
        _values(field, *rule) for field, rule in zip(fields, _FIELDS, strict=True)
    )
    return Schedule(
        minutes=minutes,
        hours=hours,
        days=days,
        months=months,
        weekdays=frozenset(day % 7 for day in weekdays),
        any_day=fields[2].startswith("*"),
        any_weekday=fields[4].startswith("*"),
    )


def _values(field: str, name: str, low: int, high: int, words: dict[str, int]) -> frozenset[int]:
    values: set[int] = set()
    for part in field.lower().split(","):
        span, slash, step_text = part.partition("/")
        try:
            step = int(step_text) if slash else 1
            if span == "*":
                first, last = low, high
            else:
                begin, dash, end = span.partition("-")
                first = words[begin] if begin in words else int(begin)
                # `5/15` means from 5 on, as in Vixie's cron; a lone `5` means 5
                last = (words[end] if end in words else int(end)) if dash else (high if slash else first)
        except ValueError:
            raise BadSchedule(f'{name} "{part}" is not a number, range or step') from None
        if step < 1 or not low <= first <= last <= high:
            raise BadSchedule(f'{name} "{part}" must lie between {low} and {high}')
        values.update(range(first, last + 1, step))
    return frozenset(values)
