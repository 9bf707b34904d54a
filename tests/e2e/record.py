"""How every spec ended when all of them last ran: a text file for each platform, a line for each spec."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from .specs import Spec

EMBEDDED = Path(__file__).with_name("embedded.txt")
CLUSTER = Path(__file__).with_name("cluster.txt")


class Record(NamedTuple):
    kubernetes: str
    commit: str
    date: str
    minutes: float
    states: Mapping[str, str]
    """By the name of the spec."""


def save(path: Path, record: Record) -> None:
    head = f"# {record.kubernetes} {record.commit} {record.date} {record.minutes:.1f}"
    lines = [f"{state} {name}" for name, state in sorted(record.states.items())]
    path.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")


NEVER = Record("", "none", "never", 0.0, {})
"""Of a platform on which all specs have not run yet."""


def load(path: Path) -> Record:
    if not path.exists():
        return NEVER
    head, *lines = path.read_text(encoding="utf-8").splitlines()
    _, kubernetes, commit, date, minutes = head.split()
    states = {name: state for state, _, name in (line.partition(" ") for line in lines)}
    return Record(kubernetes, commit, date, float(minutes), states)


def states(found: Iterable[Spec], left_out: Iterable[str]) -> dict[str, str]:
    """Everything that did not pass counts as failed, however it ended."""
    return {
        **dict.fromkeys(left_out, "refused"),
        **{spec.name: "passed" if spec.passed else "failed" for spec in found},
    }
