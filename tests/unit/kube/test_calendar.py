"""When schedules are due: against a slow and obvious count of minutes, and in the cases that people get wrong."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddlecloud.api.cron import Schedule, parse
from paddlecloud.kube.calendar import latest_until, next_after

FIELDS = (
    st.sampled_from(["*", "0", "*/15", "5,35", "59"]),
    st.sampled_from(["*", "0", "2", "*/6", "23"]),
    st.sampled_from(["*", "1", "31", "*/10", "15"]),
    st.sampled_from(["*", "2", "jan-jun", "12"]),
    st.sampled_from(["*", "0", "mon", "sat,sun", "1-5"]),
)


def seconds(text: str) -> float:
    return datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.timezone.utc).timestamp()


def text(moment: float | None) -> str | None:
    if moment is None:
        return None
    return datetime.datetime.fromtimestamp(moment, datetime.timezone.utc).strftime("%Y-%m-%d %H:%M")


@pytest.mark.parametrize(
    ("schedule", "moment", "following"),
    [
        ("30 2 * * *", "2026-11-15 02:29:59", "2026-11-15 02:30"),
        ("30 2 * * *", "2026-11-15 02:30:00", "2026-11-16 02:30"),
        ("@monthly", "2026-12-31 23:59:59", "2027-01-01 00:00"),
        ("0 0 29 2 *", "2026-11-15 00:00:00", "2028-02-29 00:00"),
        ("0 0 29 2 *", "2096-03-01 00:00:00", "2104-02-29 00:00"),
        ("0 0 30 2 *", "2026-11-15 00:00:00", None),
        ("0 0 13 * fri", "2026-11-15 00:00:00", "2026-11-20 00:00"),
    ],
)
def test_the_next_time(schedule: str, moment: str, following: str | None) -> None:
    assert text(next_after(parse(schedule), seconds(moment))) == following


def is_due(schedule: Schedule, moment: float) -> bool:
    now = datetime.datetime.fromtimestamp(moment, datetime.timezone.utc)
    by_date, by_weekday = now.day in schedule.days, now.isoweekday() % 7 in schedule.weekdays
    both = schedule.any_day or schedule.any_weekday
    day = (by_date and by_weekday) if both else (by_date or by_weekday)
    return day and now.month in schedule.months and now.hour in schedule.hours and now.minute in schedule.minutes


@settings(max_examples=30, deadline=None)
@given(st.tuples(*FIELDS), st.integers(0, 3 * 24 * 60))
def test_no_due_minute_is_skipped_or_made_up(fields: tuple[str, ...], offset: int) -> None:
    schedule = parse(" ".join(fields))
    start = seconds("2026-02-26 00:00:00") + 60 * offset
    minutes = [start + 60 * n for n in range(1, 3 * 24 * 60)]
    due = [moment for moment in minutes if is_due(schedule, moment)]
    found = next_after(schedule, start)
    if due:
        assert found == due[0]
        assert latest_until(schedule, minutes[-1] + 59) == due[-1]
    else:
        assert found is None or found > minutes[-1]
