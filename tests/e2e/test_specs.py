"""The suite's report is read as it was written: what ran, how it ended, and why."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import yaml

from harness import need

from . import images, specs
from .programs import CERTIFICATE


def entry(name: str, state: str, message: str = "", kind: str = "It") -> dict[str, object]:
    return {
        "LeafNodeType": kind,
        "ContainerHierarchyTexts": ["[sig-apps] CronJob"],
        "LeafNodeText": name,
        "State": state,
        "RunTime": 2_500_000_000,
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
