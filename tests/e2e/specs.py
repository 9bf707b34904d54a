"""What the suite's runner reports of each spec. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

CONFORMANCE = "[Conformance]"
ENDED = ("passed", "failed", "panicked", "timedout", "interrupted", "aborted")
LIMIT = 600.0
"""Seconds for each spec. Ginkgo knows a limit only for all of them together or in a spec's own source, so one that took
longer is failed here. Specs that wait to see that nothing happens (CronJob) take five minutes and more."""
_LABELS = re.compile(r"\s*\[(?:Conformance|NodeConformance|Serial|Slow|Disruptive|LinuxOnly|Privileged:\w+)\]")


class Spec(NamedTuple):
    name: str
    state: str
    seconds: float
    message: str

    @property
    def passed(self) -> bool:
        return self.state == "passed"


def read(*reports: Path) -> list[Spec]:
    """Of ginkgo's JSON reports: specs that ran, sorted by name."""
    found = []
    for name, entry in (each for report in reports for each in _entries(report)):
        if entry["State"] in ENDED:
            message = str((entry.get("Failure") or {}).get("Message") or "")
            found.append(_limited(Spec(short(name), entry["State"], entry["RunTime"] / 1e9, message)))
    return sorted(found)


def _limited(spec: Spec) -> Spec:
    if not spec.passed or spec.seconds <= LIMIT:
        return spec
    message = f"it passed after {spec.seconds:.0f} s, and {LIMIT:.0f} s are the limit for each spec"
    return spec._replace(state="timedout", message=message)


def left_out(*reports: Path) -> list[str]:
    """The names of conformance specs that were skipped, by all runs where there were several."""
    skipped = (
        {short(name) for name, entry in _entries(report) if entry["State"] == "skipped" and CONFORMANCE in name}
        for report in reports
    )
    return sorted(set.intersection(*skipped))


def _entries(report: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for suite in json.loads(report.read_text()):
        for entry in suite["SpecReports"]:
            if entry["LeafNodeType"] == "It":
                yield " ".join([*(entry["ContainerHierarchyTexts"] or ()), entry["LeafNodeText"]]), entry


def short(name: str) -> str:
    """Without the labels that all of them have."""
    return " ".join(_LABELS.sub("", name).split())
