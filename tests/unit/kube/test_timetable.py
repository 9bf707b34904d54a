"""Schedules of CronJobs: what is read, and when it is due in zones whose clocks change."""

from __future__ import annotations

import datetime
import zoneinfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddlecloud.api.cron import BadSchedule, parse
from paddlecloud.kube.calendar import latest_until, next_after
from paddlecloud.kube.timetable import UnknownZone, timetable, zone_of

BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")


def seconds(text: str) -> float:
    return datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.timezone.utc).timestamp()


def text(moment: float | None) -> str | None:
    if moment is None:
        return None
    return datetime.datetime.fromtimestamp(moment, datetime.timezone.utc).strftime("%Y-%m-%d %H:%M:%S")


@pytest.mark.parametrize(
    ("schedule", "zone", "moment", "following"),
    [
        ("30 8 * * *", "Asia/Shanghai", "2026-11-15 00:00", "2026-11-15 00:30:00"),
        ("30 8 * * *", None, "2026-11-15 00:00", "2026-11-15 08:30:00"),
        ("0 0 1 * *", "America/New_York", "2026-11-15 00:00", "2026-12-01 05:00:00"),
        ("0 0 ? * 0", "UTC", "2026-11-16 00:00", "2026-11-22 00:00:00"),
        ("0 */6 * * *", "Asia/Kolkata", "2026-11-15 00:00", "2026-11-15 00:30:00"),
        # on the 29th of March 2026 clocks in Berlin go from 02:00 to 03:00
        ("30 2 * * *", "Europe/Berlin", "2026-03-28 12:00", "2026-03-30 00:30:00"),
        ("0 3 * * *", "Europe/Berlin", "2026-03-28 12:00", "2026-03-29 01:00:00"),
        # on the 25th of October 2026 they go from 03:00 back to 02:00
        ("30 2 * * *", "Europe/Berlin", "2026-10-25 00:00", "2026-10-25 00:30:00"),
        ("30 2 * * *", "Europe/Berlin", "2026-10-25 00:30", "2026-10-25 01:30:00"),
        ("30 2 * * *", "Europe/Berlin", "2026-10-25 01:30", "2026-10-26 01:30:00"),
    ],
)
def test_the_next_time_by_the_clocks_of_a_zone(schedule: str, zone: str | None, moment: str, following: str) -> None:
    assert text(timetable(schedule, zone).next_after(seconds(moment), 0.0)) == following


SHIFTS = [seconds("2026-03-28 20:00"), seconds("2026-10-24 20:00"), seconds("2026-06-01 00:00")]


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(["*/20", "0", "15,45"]), st.sampled_from(["*", "2", "1-3", "0"]), st.sampled_from(SHIFTS),
    st.integers(0, 600),
)  # fmt: skip
def test_it_is_due_at_each_minute_at_which_the_clocks_show_it(minute: str, hour: str, around: float, by: int) -> None:
    schedule = parse(f"{minute} {hour} * * *")

    def is_due(moment: float) -> bool:
        shown = datetime.datetime.fromtimestamp(moment, BERLIN)
        return shown.hour in schedule.hours and shown.minute in schedule.minutes

    begin = around + 60 * by
    minutes = [begin + 60 * step for step in range(1, 50 * 60)]
    first = next(moment for moment in minutes if is_due(moment))
    last = next(moment for moment in reversed(minutes) if is_due(moment))
    assert next_after(schedule, begin, BERLIN) == first
    assert latest_until(schedule, minutes[-1], BERLIN) == last


def test_an_interval_counts_from_the_last_run() -> None:
    every = timetable("@every 1h30m")
    since = seconds("2026-11-15 00:07")
    assert text(every.next_after(since, since)) == "2026-11-15 01:37:00"
    assert text(every.next_after(seconds("2026-11-15 04:00"), since)) == "2026-11-15 04:37:00"
    assert text(every.latest_until(seconds("2026-11-15 04:00"), since)) == "2026-11-15 03:07:00"
    assert every.latest_until(seconds("2026-11-15 01:36"), since) is None


@pytest.mark.parametrize(
    "schedule", ["@every", "@every 5", "@every -1h", "0 0 * * 7", "0 0 * * 1-7", "* * * *", "@moon"]
)
def test_what_kubernetes_does_not_read_is_refused(schedule: str) -> None:
    with pytest.raises(BadSchedule):
        timetable(schedule)


@pytest.mark.parametrize(
    "schedule", ["@every " + "1" * 5_000, "*," * 1_000 + "* * * * *", f"@every {'9' * 400}h", "@every 3000000h"]
)
def test_a_schedule_or_an_interval_that_is_too_long_is_refused_before_it_costs_anything(schedule: str) -> None:
    with pytest.raises(BadSchedule, match="is longer than"):
        timetable(schedule)


@pytest.mark.parametrize(
    "name", ["a/" * 1_000 + "a", "Moon/Tycho", "../../etc/passwd", "/etc/localtime", "Europe/", "-1", "Europe"]
)
def test_what_is_no_zone_is_refused(name: str) -> None:
    with pytest.raises(UnknownZone, match="unknown time zone"):
        zone_of(name)
