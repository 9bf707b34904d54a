"""In which runs of ginkgo all specs are run. Pure.

Ginkgo takes specs in its own order, so one that only waits for five minutes holds a process, and may be the last
to begin. Those that were long in the last record are run beside the others by processes of their own: they wait for
most of their time, which costs no core. Serial specs change nodes under the others' pods and follow alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from . import areas

LONG = 60
"""Seconds from which on a spec is run beside the others."""
SERIAL = r"\[Serial\]"


class Run(NamedTuple):
    name: str
    focus: str
    """A regular expression of specs, as is `skip`."""
    skip: str
    procs: int


Stage = list[Run]
"""What is run at the same time."""


def of_all(marked: str, refused: str, seconds: Mapping[str, int], *, procs: int, waiting: int) -> list[Stage]:
    """Of the specs with the mark: `procs` processes for most of them, at most `waiting` for those that are long."""
    long = sorted(name for name, took in seconds.items() if took >= LONG)
    beside = areas.names(long)
    first = [Run("most", marked, _either(refused, SERIAL, beside), procs)]
    if long:
        first.append(Run("long", beside, _either(refused, SERIAL), min(waiting, len(long))))
    return [first, [Run("serial", f"{SERIAL}.*{marked}|{marked}.*{SERIAL}", refused, 1)]]


def _either(*patterns: str) -> str:
    return "|".join(pattern for pattern in patterns if pattern)
