"""Cron schedules."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.api.cron import PATTERN, BadSchedule, parse


@pytest.mark.parametrize(
    ("text", "minutes", "hours"),
    [
        ("30 2 * * *", {30}, {2}),
        ("*/15 * * * *", {0, 15, 30, 45}, set(range(24))),
        ("5/20 1-3 * * *", {5, 25, 45}, {1, 2, 3}),
        ("0,1,2 8-18/5 * * *", {0, 1, 2}, {8, 13, 18}),
        ("@hourly", {0}, set(range(24))),
    ],
)
def test_fields_are_values_ranges_and_steps(text: str, minutes: set[int], hours: set[int]) -> None:
    schedule = parse(text)
    assert (schedule.minutes, schedule.hours) == (minutes, hours)


def test_names_of_months_and_days_and_both_numbers_of_sunday() -> None:
    schedule = parse("0 0 * jan-MAR sun,7,fri")
    assert schedule.months == {1, 2, 3}
    assert schedule.weekdays == {0, 5}


def test_it_is_remembered_which_day_field_was_left_open() -> None:
    assert (parse("0 0 1 * *").any_day, parse("0 0 1 * *").any_weekday) == (False, True)
    assert (parse("0 0 * * mon").any_day, parse("0 0 * * mon").any_weekday) == (True, False)


@pytest.mark.parametrize(
    "text", ["", "* * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "5-1 * * * *", "*/0 * * * *", "x * * * *", "@noon"]
)
def test_what_is_no_schedule_is_refused(text: str) -> None:
    with pytest.raises(BadSchedule):
        parse(text)


@given(st.text(alphabet="0123456789*/,- @abcdfhijlmnoprstuvwy", max_size=40))
def test_any_text_is_a_schedule_or_refused_and_a_schedule_is_never_empty(text: str) -> None:
    try:
        schedule = parse(text)
    except BadSchedule:
        return
    assert re.search(PATTERN, text), "the API server takes every schedule"
    assert schedule.minutes <= set(range(60))
    assert schedule.weekdays <= set(range(7))
    assert all((schedule.minutes, schedule.hours, schedule.days, schedule.months, schedule.weekdays))
