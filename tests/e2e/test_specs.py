"""The suite's report is read as it was written: what ran, how it ended, and why."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from harness import need

from . import images, record, specs
from .programs import CERTIFICATE


def entry(name: str, state: str, message: str = "", kind: str = "It", seconds: float = 2.5) -> dict[str, object]:
    return {
        "LeafNodeType": kind,
        "ContainerHierarchyTexts": ["[sig-apps] CronJob"],
        "LeafNodeText": name,
        "State": state,
        "RunTime": int(seconds * 1e9),
        **({"Failure": {"Message": message}} if message else {}),
    }


def test_only_specs_that_ran_are_read(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    entries = [
        entry("should replace jobs [Conformance]", "failed", "the server could not find the requested resource"),
        entry("should not schedule [Slow] [Conformance]", "passed"),
        entry("is for another day", "skipped"),
        entry("sets the suite up", "passed", kind="SynchronizedBeforeSuite"),
    ]
    report.write_text(json.dumps([{"SpecReports": entries}]))
    first, second = specs.read(report)
    assert (first.name, first.passed, first.seconds) == ("[sig-apps] CronJob should not schedule", True, 2.5)
    assert (second.state, second.message) == ("failed", "the server could not find the requested resource")


def test_what_one_of_several_runs_left_to_another_was_not_left_out(tmp_path: Path) -> None:
    reports = [tmp_path / "most.json", tmp_path / "serial.json"]
    for report, states in zip(
        reports, (("passed", "skipped", "skipped"), ("skipped", "skipped", "passed")), strict=True
    ):
        named = zip(("a [Conformance]", "b [Conformance]", "c [Serial] [Conformance]"), states, strict=True)
        report.write_text(json.dumps([{"SpecReports": [entry(*each) for each in named]}]))
    assert specs.left_out(*reports) == ["[sig-apps] CronJob b"]
    assert [spec.name for spec in specs.read(*reports)] == ["[sig-apps] CronJob a", "[sig-apps] CronJob c"]


@pytest.mark.parametrize(
    ("state", "seconds", "read", "message"),
    [
        ("passed", specs.LIMIT, "passed", ""),
        ("passed", specs.LIMIT + 1, "timedout", "it passed after 601 s, and 600 s are the limit for each spec"),
        ("failed", specs.LIMIT + 1, "failed", "no such pod"),
    ],
)
def test_a_spec_that_took_longer_than_its_limit_has_failed(
    tmp_path: Path, state: str, seconds: float, read: str, message: str
) -> None:
    report = tmp_path / "report.json"
    said = "no such pod" if state == "failed" else ""
    report.write_text(json.dumps([{"SpecReports": [entry("waits", state, said, seconds=seconds)]}]))
    (spec,) = specs.read(report)
    assert (spec.state, spec.message, spec.passed) == (read, message, read == "passed")
    assert record.of([spec], [])[0][spec.name] == ("passed" if read == "passed" else "failed")


def test_every_file_of_an_image_lies_beside_its_recipe(tmp_path: Path) -> None:
    for program, package in images.PACKAGES.items():
        need("busybox", have=shutil.which(program) is not None, hint=f"install {package}")
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in (*CERTIFICATE, "nonewprivs"):
        (programs / name).touch()
    images.write(tmp_path / "images", programs)
    written = list(tmp_path.glob("images/*/image.yaml"))
    assert len(written) == len(images.RECIPES)
    for file in written:
        assert all((file.parent / name).exists() for name in yaml.safe_load(file.read_text())["files"].values())
