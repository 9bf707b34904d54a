"""When a cron schedule is due. Pure; all times are UTC, in seconds since the epoch."""

from __future__ import annotations

import datetime

from paddlecloud.api.cron import Schedule

_DAY = datetime.timedelta(days=1)
_HORIZON = 366 * 8 + 2
"""Days to look ahead or back: the longest gap of all is between two 29ths of February around 2100."""


def next_after(schedule: Schedule, moment: float) -> float | None:
    """The first due minute after `moment`; None for one that never comes, such as the 30th of February."""
    day = _midnight(moment)
    for _ in range(_HORIZON):
        for due in _times_on(schedule, day):
            if due > moment:
                return due
        day += _DAY
    return None


def latest_until(schedule: Schedule, moment: float) -> float | None:
    """The last due minute up to `moment`."""
    day = _midnight(moment)
    for _ in range(_HORIZON):
        for due in reversed(_times_on(schedule, day)):
            if due <= moment:
                return due
        day -= _DAY
    return None


def _midnight(moment: float) -> datetime.datetime:
    now = datetime.datetime.fromtimestamp(moment, datetime.timezone.utc)
    return now.replace(hour=0, minute=0, second=0, microsecond=0)


def _times_on(schedule: Schedule, day: datetime.datetime) -> list[float]:
    """The due minutes of a day, in order."""
    if not _is_due_on(schedule, day):
        return []
    begin = day.timestamp()
    return [begin + 3600 * hour + 60 * minute for hour in sorted(schedule.hours) for minute in sorted(schedule.minutes)]


def _is_due_on(schedule: Schedule, day: datetime.datetime) -> bool:
    """Day of month and weekday: where both are restricted, one of them is enough."""
    if day.month not in schedule.months:
        return False
    by_date, by_weekday = day.day in schedule.days, (day.weekday() + 1) % 7 in schedule.weekdays
    if schedule.any_day or schedule.any_weekday:
        return by_date and by_weekday
    return by_date or by_weekday
