"""Verdicts of a real server, kept in a file: machines without a cluster compare the embedded server with them.

`PDC_VERDICTS_RECORD=1` has the cluster's test write the file. It holds verdicts alone; the requests are made anew from
the seed, and a fingerprint tells whether they are still those that were judged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .generator import fingerprint, worlds
from .model import AccessScenario, Verdict

FILE = Path(__file__).parent / "recorded.txt"
CASES = 2000
_LONGEST = 80


@dataclass(frozen=True)
class Recorded:
    server: str
    worlds: list[AccessScenario]
    verdicts: list[list[Verdict]]


def save(server: str, seed: int, made: Sequence[AccessScenario], verdicts: Sequence[Sequence[Verdict]]) -> None:
    head = f"server {server}\nseed {seed}\nfingerprint {fingerprint(made)}\n"
    lines = (str(compacted(verdict)) for each in verdicts for verdict in each)
    FILE.write_text(head + "".join(f"{line}\n" for line in lines))


def load() -> Recorded:
    lines = FILE.read_text().splitlines()
    head = dict(line.split(" ", 1) for line in lines[:3])
    found = [_parsed(line) for line in lines[3:]]
    made = list(worlds(int(head["seed"]), len(found)))
    assert fingerprint(made) == head["fingerprint"], (
        "the generated requests are no longer those that were judged: record them again, on a cluster, with "
        "PDC_VERDICTS_RECORD=1 PDC_CLUSTER=1 python -m pytest tests/cluster/test_verdicts.py"
    )
    rest = iter(found)
    return Recorded(head["server"], made, [[next(rest) for _ in world.cases] for world in made])


def compacted(verdict: Verdict) -> Verdict:
    """Long details, such as the rules of a user, as a digest."""
    if len(verdict.detail) <= _LONGEST:
        return verdict
    return Verdict(verdict.code, f"sha256:{hashlib.sha256(verdict.detail.encode()).hexdigest()[:16]}")


def _parsed(line: str) -> Verdict:
    code, _, detail = line.partition(" ")
    return Verdict(int(code), detail)
