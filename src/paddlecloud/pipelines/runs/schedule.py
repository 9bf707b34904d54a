"""When a recurring run begins: KFP's triggers as the schedules of Argo's CronWorkflow. Pure.

KFP writes cron with a field for seconds in front; Argo's has five fields, so only second 0 can be carried out. An
interval is robfig's `@every`, which both read.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from paddlecloud.api import cron as five_fields
from paddlecloud.kube.resource import Object

MIN_INTERVAL, MAX_INTERVAL = 1, 366 * 86400


class ScheduleError(ValueError):
    """The trigger cannot be carried out; the message says why and what to write instead."""


class Trigger(NamedTuple):
    cron: str = ""
    """Five fields, or one of robfig's words such as @hourly."""
    interval: int = 0
    """Seconds."""

    @property
    def schedule(self) -> str:
        return f"@every {self.interval}s" if self.interval else self.cron


def read(*, cron: str = "", interval: str = "", start: str = "", end: str = "") -> Trigger:
    if start or end:
        raise ScheduleError("start_time and end_time are not carried out; enable and disable the recurring run instead")
    if bool(cron) == bool(interval):
        raise ScheduleError("give a cron expression or an interval in seconds, one of the two")
    if interval:
        if not interval.isascii() or not interval.isdigit() or len(interval) > 9:
            raise ScheduleError(f"interval_second is {interval[:20]!r}; it must be a whole number of seconds")
        seconds = int(interval)
        if not MIN_INTERVAL <= seconds <= MAX_INTERVAL:
            raise ScheduleError(f"interval_second is {seconds}; it must be from {MIN_INTERVAL} to {MAX_INTERVAL}")
        return Trigger(interval=seconds)
    return Trigger(cron=_cron(cron))


def of_spec(spec: Object) -> Trigger:
    """Of a CronWorkflow."""
    text = str((spec.get("schedules") or [spec.get("schedule") or ""])[0])
    match = re.fullmatch(r"@every (\d{1,9})s", text)
    return Trigger(interval=int(match.group(1))) if match else Trigger(cron=text)


def _cron(text: str) -> str:
    words = text.split()
    if len(words) == 6:
        if words[0] != "0":
            raise ScheduleError(
                f"the seconds of {text[:60]!r} are {words[0][:20]!r}; only 0 can be carried out. "
                "Give an interval instead"
            )
        words = words[1:]
    five = " ".join("*" if word == "?" else word for word in words)
    try:
        five_fields.parse(five)
    except five_fields.BadSchedule as error:
        raise ScheduleError(f"{text[:60]!r} is no cron schedule: {error}") from error
    return five
