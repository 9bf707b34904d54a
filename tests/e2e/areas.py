"""What the embedded platform does not serve by choice, and why other specs fail. Read from the two lists beside it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import yaml

REFUSED = Path(__file__).with_name("areas.yaml")
FAILURES = Path(__file__).with_name("failures.yaml")


class Area(NamedTuple):
    name: str
    specs: tuple[str, ...]
    """Parts of the names of its specs."""
    why: str

    def holds(self, spec: str) -> bool:
        return any(part in spec for part in self.specs)


def refused() -> list[Area]:
    return _read(REFUSED)


def failures() -> list[Area]:
    return _read(FAILURES)


def find(areas: Iterable[Area], spec: str) -> Area | None:
    return next((area for area in areas if area.holds(spec)), None)


def pattern(areas: Iterable[Area]) -> str:
    """A regular expression, for the runner, of the specs of these areas."""
    return "|".join(re.escape(part) for area in areas for part in area.specs)


def _read(path: Path) -> list[Area]:
    listed = yaml.safe_load(path.read_text(encoding="utf-8")) or []
    return [Area(entry["area"], tuple(entry["specs"]), " ".join(entry["why"].split())) for entry in listed]
