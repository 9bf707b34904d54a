"""How every spec ended when all of them last ran: a text file for each platform, a line for each spec."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from .specs import Spec

EMBEDDED = Path(__file__).with_name("embedded.txt")
CLUSTER = Path(__file__).with_name("cluster.txt")


class Again(NamedTuple):
    """A run of a few specs after the one of all."""

    commit: str
    date: str
    specs: int


class Record(NamedTuple):
    kubernetes: str
    commit: str
    date: str
    minutes: float
    states: Mapping[str, str]
    """By the name of the spec."""
    seconds: Mapping[str, int] = {}
    """How long specs took, as far as it was recorded."""
    again: tuple[Again, ...] = ()
    """Runs whose results are in `states` as well, in place of earlier ones."""


def save(path: Path, record: Record) -> None:
    head = [f"# {record.kubernetes} {record.commit} {record.date} {record.minutes:.1f}"]
    head += [f"# again {again.commit} {again.date} {again.specs}" for again in record.again]
    lines = [_line(record, name) for name in sorted(record.states)]
    path.write_text("\n".join([*head, *lines]) + "\n", encoding="utf-8")


def _line(record: Record, name: str) -> str:
    took = f"{record.seconds[name]} " if name in record.seconds else ""
    return f"{record.states[name]} {took}{name}"


NEVER = Record("", "none", "never", 0.0, {})
"""Of a platform on which all specs have not run yet."""


def load(path: Path) -> Record:
    if not path.exists():
        return NEVER
    lines = path.read_text(encoding="utf-8").splitlines()
    (_, kubernetes, commit, date, minutes), *further = (line.split() for line in lines if line.startswith("#"))
    again = tuple(Again(commit, date, int(count)) for _, _, commit, date, count in further)
    states: dict[str, str] = {}
    seconds: dict[str, int] = {}
    for line in lines[1 + len(again) :]:
        state, _, rest = line.partition(" ")
        took, _, name = rest.partition(" ")
        if not took.isdigit():
            name = rest
        else:
            seconds[name] = int(took)
        states[name] = state
    return Record(kubernetes, commit, date, float(minutes), states, seconds, again)


def of(found: Iterable[Spec], left_out: Iterable[str]) -> tuple[dict[str, str], dict[str, int]]:
    """States, and seconds of what ran. Everything that did not pass counts as failed, however it ended."""
    ran = list(found)
    states = {
        **dict.fromkeys(left_out, "refused"),
        **{spec.name: "passed" if spec.passed else "failed" for spec in ran},
    }
    return states, {spec.name: round(spec.seconds) for spec in ran}


def with_more(record: Record, found: Iterable[Spec], *, commit: str, date: str) -> Record:
    """The record with the results of specs that were run again, or for the first time."""
    states, seconds = of(found, ())
    return record._replace(
        states={**record.states, **states},
        seconds={**record.seconds, **seconds},
        again=(*record.again, Again(commit, date, len(states))),
    )
