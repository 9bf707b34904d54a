"""All specs are in one run each, and those that wait hold nobody up."""

from __future__ import annotations

import re

import pytest

from .stages import LONG, Run, of_all

MARKED = r"\[Conformance\]"
SECONDS = {"[sig-node] Probing container should not be restarted": 243, "[sig-apps] Job should delete a job": LONG - 1}


def runs_of(spec: str, runs: list[Run]) -> list[str]:
    return [run.name for run in runs if re.search(run.focus, spec) and not (run.skip and re.search(run.skip, spec))]


@pytest.mark.parametrize(
    ("spec", "run"),
    [
        ("[sig-apps] Job should delete a job [Conformance]", ["most"]),
        ("[sig-apps] Job is new [Conformance]", ["most"]),
        ("[sig-node] Probing container should not be restarted [NodeConformance] [Conformance]", ["long"]),
        ("[sig-node] Probing container should not be restarted twice [Conformance]", ["most"]),
        ("[sig-apps] Daemon set [Serial] should run [Conformance]", ["serial"]),
        ("[sig-node] Taints [Disruptive] evicts [Conformance] [Serial]", ["serial"]),
        ("[sig-apps] Daemon set [Serial] should run", []),
        ("[sig-apps] Job should delete a job", []),
        ("[sig-auth] Certificates API [Conformance]", []),
        ("[sig-auth] Certificates API [Serial] [Conformance]", []),
    ],
)
def test_each_spec_is_in_one_run(spec: str, run: list[str]) -> None:
    planned = of_all(MARKED, "Certificates API", SECONDS, procs=4, waiting=8)
    assert runs_of(spec, [each for stage in planned for each in stage]) == run


def test_specs_that_wait_are_run_beside_the_others_and_serial_ones_alone() -> None:
    first, last = of_all(MARKED, "", SECONDS, procs=4, waiting=8)
    assert [(run.name, run.procs) for run in first] == [("most", 4), ("long", 1)]
    assert [(run.name, run.procs) for run in last] == [("serial", 1)]


def test_without_a_record_of_how_long_specs_take_none_has_a_run_of_its_own() -> None:
    first, _ = of_all(MARKED, "", {}, procs=4, waiting=8)
    assert [run.name for run in first] == ["most"]
