"""What the embedded platform does not serve by choice, why other specs fail there or on the cluster, and which few are
run for every change.

Read from the lists beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import yaml

REFUSED = Path(__file__).with_name("areas.yaml")
FAILURES = Path(__file__).with_name("failures.yaml")
CLUSTER_FAILURES = Path(__file__).with_name("cluster_failures.yaml")
CORE = Path(__file__).with_name("core.yaml")
_LABELS = r"(?: \[[^\]]+\])*"
"""Specs have labels, of which the names here know nothing, after any of their words."""


class Area(NamedTuple):
    name: str
    specs: tuple[str, ...]
    """Parts of the names of its specs; one that ends with `$` is the end of a name."""
    why: str
    stricter: bool = False
    """Refused by a choice that others might make differently: a failure in the stricter of the two shares."""

    def holds(self, spec: str) -> bool:
        return any(spec.endswith(part[:-1]) if part.endswith("$") else part in spec for part in self.specs)


def refused() -> list[Area]:
    return _read(REFUSED)


def failures() -> list[Area]:
    return _read(FAILURES)


def cluster_failures() -> list[Area]:
    return _read(CLUSTER_FAILURES)


def find(areas: Iterable[Area], spec: str) -> Area | None:
    return next((area for area in areas if area.holds(spec)), None)


def pattern(areas: Iterable[Area]) -> str:
    """A regular expression, for the runner, of the specs of these areas."""
    return "|".join(_expression(part) for area in areas for part in area.specs)


def names(specs: Iterable[str]) -> str:
    """A regular expression, for the runner, of the specs with these names."""
    return "|".join(_expression(f"{name}$") for name in specs)


def core() -> str:
    """A regular expression, for the runner, of the few specs that every change is judged by."""
    return names(yaml.safe_load(CORE.read_text(encoding="utf-8")))


def _expression(part: str) -> str:
    words = (_LABELS + " ").join(re.escape(word) for word in part.removesuffix("$").split(" "))
    return f"{words}{_LABELS}$" if part.endswith("$") else words


def _read(path: Path) -> list[Area]:
    listed = yaml.safe_load(path.read_text(encoding="utf-8")) or []
    return [
        Area(entry["area"], tuple(entry["specs"]), " ".join(entry["why"].split()), entry.get("stricter", False))
        for entry in listed
    ]
