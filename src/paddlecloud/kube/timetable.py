"""`schedule` and `timeZone` of a CronJob: what Kubernetes accepts there, and when it is due. Pure.

Five fields and names as `api.cron` reads them, `?` for `*`, and `@every 1h30m`, which counts from the last run. As the
library that Kubernetes uses (robfig/cron, ParseStandard), and unlike other crons, Sunday is 0 and not 7.
"""

from __future__ import annotations

import datetime
import re
import zoneinfo
from dataclasses import dataclass
from typing import Protocol

from paddlecloud.api.cron import BadSchedule, Schedule, check_length, parse
from paddlecloud.kube import calendar

_EVERY = "@every "
_NUMBER = r"([0-9]+(?:\.[0-9]+)?|\.[0-9]+)"
_DURATION = re.compile(f"(?:{_NUMBER}h)?(?:{_NUMBER}m)?(?:{_NUMBER}s)?")
_LONGEST_INTERVAL = 2**63 / 1e9
"""Seconds: as many nanoseconds as Go's durations have."""
_SUNDAY_AS_SEVEN = re.compile(r"(^|[,-])7($|[,/-])")
_LONGEST_ZONE = 100
"""Characters; the longest name of the database has 32. The library that looks a name up recurses into its parts."""
_ZONE_PART = re.compile(r"[A-Za-z._0-9+][A-Za-z.\-_0-9+]{0,13}")


class UnknownZone(ValueError):
    """No time zone has this name, as far as this machine knows."""


class Timetable(Protocol):
    """`since` is the last time that counts as run: only intervals depend on it."""

    def next_after(self, moment: float, since: float) -> float | None:
        """The first due time after `moment`; None where none ever comes."""

    def latest_until(self, moment: float, since: float) -> float | None:
        """The last due time after `since` and up to `moment`."""


@dataclass(frozen=True, slots=True)
class Calendar:
    """Times of a zone."""

    schedule: Schedule
    zone: datetime.tzinfo

    def next_after(self, moment: float, since: float) -> float | None:
        return calendar.next_after(self.schedule, moment, self.zone)

    def latest_until(self, moment: float, since: float) -> float | None:
        due = calendar.latest_until(self.schedule, moment, self.zone)
        return due if due is not None and due > since else None


@dataclass(frozen=True, slots=True)
class Interval:
    """`@every`: whole seconds between two runs, at least one."""

    seconds: int

    def next_after(self, moment: float, since: float) -> float | None:
        return since + self.seconds * (max(0, int((moment - since) // self.seconds)) + 1)

    def latest_until(self, moment: float, since: float) -> float | None:
        times = int((moment - since) // self.seconds)
        return since + self.seconds * times if times > 0 else None


def timetable(schedule: str, zone_name: str | None = None) -> Timetable:
    """Raises `BadSchedule` or `UnknownZone`."""
    check_length(schedule)
    zone = zone_of(zone_name) if zone_name else datetime.timezone.utc
    text = schedule.strip()
    if text.startswith(_EVERY):
        return Interval(_seconds(text.removeprefix(_EVERY)))
    fields = text.split()
    if len(fields) == 5 and _SUNDAY_AS_SEVEN.search(fields[4]):
        raise BadSchedule(f'day of week "{fields[4]}" must lie between 0 and 6: Sunday is 0')
    return Calendar(parse(" ".join("*" + field[1:] if field.startswith("?") else field for field in fields)), zone)


def _seconds(text: str) -> int:
    found = _DURATION.fullmatch(text)
    if not text or found is None:
        raise BadSchedule(f'"@every {text}" must name a duration, as in @every 1h30m')
    hours, minutes, seconds = (float(part or 0) for part in found.groups())
    interval = 3600 * hours + 60 * minutes + seconds
    if interval > _LONGEST_INTERVAL:
        raise BadSchedule(f'"@every {text}" is longer than 292 years')
    return max(1, int(interval))


def zone_of(name: str) -> datetime.tzinfo:
    """Raises `UnknownZone` for what is no name of the zone database."""
    parts = name.split("/")
    if len(name) > _LONGEST_ZONE or not all(_ZONE_PART.fullmatch(part) and part not in (".", "..") for part in parts):
        raise UnknownZone(f"unknown time zone {name[:_LONGEST_ZONE]}")
    if name.upper() == "UTC":
        return datetime.timezone.utc  # also where the machine has no zone database
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise UnknownZone(f"unknown time zone {name}") from None
