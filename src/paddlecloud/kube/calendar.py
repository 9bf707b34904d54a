"""When a cron schedule is due. Pure; moments are seconds since the epoch, the fields of a schedule are times of a zone.

As in Kubernetes, a schedule is due at every minute at which the clocks of the zone match it: a time that is skipped
when they are put forward does not come, one that is repeated when they are put back comes twice.
"""

from __future__ import annotations

import datetime

from paddlecloud.api.cron import Schedule

_DAY = datetime.timedelta(days=1)
_HORIZON = 366 * 8 + 2
"""Days to look ahead or back: the longest gap of all is between two 29ths of February around 2100."""


def next_after(schedule: Schedule, moment: float, zone: datetime.tzinfo = datetime.timezone.utc) -> float | None:
    """The first due minute after `moment`; None for one that never comes, such as the 30th of February."""
    day = _date(moment, zone)
    for _ in range(_HORIZON):
        for due in _times_on(schedule, day, zone):
            if due > moment:
                return due
        day += _DAY
    return None


def latest_until(schedule: Schedule, moment: float, zone: datetime.tzinfo = datetime.timezone.utc) -> float | None:
    """The last due minute up to `moment`."""
    day = _date(moment, zone)
    for _ in range(_HORIZON):
        for due in reversed(_times_on(schedule, day, zone)):
            if due <= moment:
                return due
        day -= _DAY
    return None


def _date(moment: float, zone: datetime.tzinfo) -> datetime.date:
    return datetime.datetime.fromtimestamp(moment, zone).date()


def _times_on(schedule: Schedule, day: datetime.date, zone: datetime.tzinfo) -> list[float]:
    """The due minutes of a day, in order."""
    if not _is_due_on(schedule, day):
        return []
    times = [(hour, minute) for hour in sorted(schedule.hours) for minute in sorted(schedule.minutes)]
    begin = datetime.datetime.combine(day, datetime.time(), zone)
    if begin.utcoffset() == (begin + _DAY).utcoffset():
        return [begin.timestamp() + 3600 * hour + 60 * minute for hour, minute in times]
    return sorted({moment for time in times for moment in _moments_at(begin, *time)})


def _moments_at(midnight: datetime.datetime, hour: int, minute: int) -> list[float]:
    """When the clocks show this time on a day on which they are changed: once, twice or never."""
    walls = [midnight.replace(hour=hour, minute=minute, fold=fold) for fold in (0, 1)]
    shown = [(wall, datetime.datetime.fromtimestamp(wall.timestamp(), midnight.tzinfo)) for wall in walls]
    return [wall.timestamp() for wall, seen in shown if (seen.hour, seen.minute) == (hour, minute)]


def _is_due_on(schedule: Schedule, day: datetime.date) -> bool:
    """Day of month and weekday: where both are restricted, one of them is enough."""
    if day.month not in schedule.months:
        return False
    by_date, by_weekday = day.day in schedule.days, (day.weekday() + 1) % 7 in schedule.weekdays
    if schedule.any_day or schedule.any_weekday:
        return by_date and by_weekday
    return by_date or by_weekday
