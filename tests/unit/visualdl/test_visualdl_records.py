"""Record files of VisualDL, read without VisualDL. `log` was written by LogWriter of VisualDL 2.5.3 itself."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.local.removal import remove_tree
from paddlecloud.visualdl import records
from paddlecloud.visualdl.records import curves, read_file
from tools.trees import nested
from unit.budgets.inputs import field
from unit.visualdl.record_makers import framed, scalar

WRITTEN = Path(__file__).with_name("log")
"""By LogWriter: 5 steps of `loss` and `train/acc`, a group, a text, a histogram; displayed as `first`."""


def values(folder: Path, tag: str = "loss") -> list[tuple[int, float]]:
    found, problems = curves([str(folder)])
    assert problems == []
    (curve,) = [one for one in found if one.tag == tag]
    return list(zip(curve.steps, curve.values, strict=True))


def test_what_logwriter_wrote_is_read() -> None:
    found, problems = curves([str(WRITTEN)])
    assert problems == []
    by_tag = {one.tag: one for one in found}
    assert sorted(by_tag) == ["both/x", "both/y", "loss", "train/acc"], "pictures, texts and histograms are no scalars"
    assert {one.run for one in found} == {"first"}, "LogWriter's display_name"
    assert by_tag["loss"].steps == [0, 1, 2, 3, 4]
    assert by_tag["loss"].values == [1.0, 0.5, 0.25, 0.125, 0.0625]
    assert by_tag["loss"].times == [1_700_000_000_000 + step for step in range(5)]
    assert [by_tag[tag].values for tag in ("both/x", "both/y")] == [[1.5], [2.5]]


def test_a_run_is_named_after_its_folder(tmp_path: Path) -> None:
    for run in ("a", "b/c"):
        (tmp_path / run).mkdir(parents=True)
        (tmp_path / run / "vdlrecords.1.log").write_bytes(scalar("loss", 0, 1.0))
    (tmp_path / "other.log").write_bytes(b"no record")
    assert [one.run for one in curves([str(tmp_path)])[0]] == [f"{tmp_path}/a", f"{tmp_path}/b/c"]


def test_a_record_that_is_being_written_is_left_for_the_next_reading(tmp_path: Path) -> None:
    whole = scalar("loss", 0, 1.0) + scalar("loss", 1, 0.5)
    for length in range(len(whole) // 2, len(whole)):
        (tmp_path / "vdlrecords.1.log").write_bytes(whole[:length])
        assert values(tmp_path) == [(0, 1.0)]


def test_a_restarted_job_goes_on_where_its_newer_file_begins(tmp_path: Path) -> None:
    (tmp_path / "vdlrecords.1.log").write_bytes(b"".join(scalar("loss", step, 10.0 - step) for step in range(6)))
    (tmp_path / "vdlrecords.2.log").write_bytes(b"".join(scalar("loss", step, 1.0) for step in (4, 5, 6)))
    assert values(tmp_path) == [(0, 10.0), (1, 9.0), (2, 8.0), (3, 7.0), (4, 1.0), (5, 1.0), (6, 1.0)]


def test_files_of_jobs_before_and_after_are_left_out_and_named(tmp_path: Path) -> None:
    """Jobs that run in one folder write into the same runs; each has the curves of its own life."""
    for begun, written, value in (
        (1795000000, 1795000050, 1.0),
        (1795000100, 1795000150, 2.0),
        (1795000200, 1795000250, 3.0),
    ):
        file = tmp_path / f"vdlrecords.{begun}.log"
        file.write_bytes(scalar("loss", 0, value))
        os.utime(file, (written, written))
    (tmp_path / "vdlrecords.of-my-own.log").write_bytes(scalar("acc", 0, 4.0))
    found, problems = curves([str(tmp_path)], since=1795000090, until=1795000160)
    assert [(one.tag, one.values) for one in found] == [("acc", [4.0]), ("loss", [2.0])]
    assert problems == [
        f"{tmp_path}: left out vdlrecords.1795000000.log: written before the job was created",
        f"{tmp_path}: left out vdlrecords.1795000200.log: begun after the job had ended",
    ]
    command = [sys.executable, "-I", "-S", str(records.__file__), "--since=1795000190", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert [json.loads(line).get("values") for line in done.stdout.splitlines()] == [[4.0], [3.0], None]
    assert "left out vdlrecords.1795000000.log and 1 more: written before" in done.stdout


def test_a_damaged_file_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    first = scalar("loss", 0, 1.0)
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "vdlrecords.1.log").write_bytes(first + framed(b"\xff" * 20) + scalar("loss", 1, 1.0))
    (tmp_path / "good").mkdir()
    (tmp_path / "good" / "vdlrecords.1.log").write_bytes(first)
    found, problems = curves([str(tmp_path)])
    assert [(one.run.rpartition("/")[2], one.steps) for one in found] == [("bad", [0]), ("good", [0])]
    assert problems == [f"{tmp_path}/bad/vdlrecords.1.log: no record of VisualDL at byte {len(first)}"]


def test_a_large_record_is_skipped_without_being_read(tmp_path: Path) -> None:
    picture = framed(field(1, field(2, b"photo") + field(5, field(4, b"x" * (records.LARGEST + 1)))))
    (tmp_path / "vdlrecords.1.log").write_bytes(picture + scalar("loss", 3, 1.0))
    assert values(tmp_path) == [(3, 1.0)]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -0.5])
def test_every_float_is_a_value(tmp_path: Path, value: float) -> None:
    (tmp_path / "vdlrecords.1.log").write_bytes(scalar("loss", -1, value))
    ((step, found),) = values(tmp_path)
    assert step == -1
    assert found == value or (math.isnan(found) and math.isnan(value))


def test_a_folder_that_is_not_there_and_links_in_a_circle_end(tmp_path: Path) -> None:
    (tmp_path / "vdlrecords.1.log").write_bytes(scalar("loss", 0, 1.0))
    (tmp_path / "again").symlink_to(tmp_path)
    found, problems = curves([str(tmp_path), str(tmp_path), "/nowhere"])
    assert len(found) == 1
    assert problems == ["/nowhere: there is no such folder"]


def test_a_file_that_is_longer_than_what_was_written_ends_at_its_zeros(tmp_path: Path) -> None:
    path = tmp_path / "vdlrecords.1.log"
    path.write_bytes(scalar("loss", 0, 1.0))
    size = path.stat().st_size
    os.truncate(path, 1 << 40)
    found, problems = curves([str(tmp_path)])
    assert [one.values for one in found] == [[1.0]]
    assert problems == [f"{path}: zeros instead of a record of VisualDL at byte {size}"]


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "vdlrecords.1.log")
    (tmp_path / "vdlrecords.2.log").write_bytes(scalar("loss", 0, 1.0))
    found, problems = curves([str(tmp_path)])
    assert [one.values for one in found] == [[1.0]]
    assert problems == [f"{tmp_path}/vdlrecords.1.log: it is no file"]


def test_the_points_of_all_files_have_one_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "MOST_POINTS", 5)
    for number in range(3):
        points = b"".join(scalar("loss", step, 1.0) for step in range(3 * number, 3 * number + 3))
        (tmp_path / f"vdlrecords.{number}.log").write_bytes(points)
    found, problems = curves([str(tmp_path)])
    assert [one.steps for one in found] == [[0, 1, 2, 3, 4]]
    assert len(problems) == 2
    assert "more than 5 points" in problems[0]


def test_very_deep_and_very_many_folders_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nested(tmp_path, 1500)
    assert curves([str(tmp_path)]) == ([], [f"{tmp_path}: what lies below more than 100 folders is not read"])
    monkeypatch.setattr(records, "MOST_FOLDERS", 50)
    assert curves([str(tmp_path)]) == ([], [f"{tmp_path}: only the first 50 folders are read"])
    remove_tree(tmp_path / "d")  # deeper than pytest can remove


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    read_file(BytesIO(data))
    read_file(BytesIO(framed(data)))
    read_file(BytesIO(framed(field(1, data))))


def test_the_file_runs_alone_as_a_program() -> None:
    """As in pods: isolated from this project, with nothing but the standard library."""
    command = [sys.executable, "-I", "-S", str(records.__file__), str(WRITTEN), "/nowhere"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one.get("tag") for one in lines] == ["both/x", "both/y", "loss", "train/acc", None]
    assert lines[2]["values"] == [1.0, 0.5, 0.25, 0.125, 0.0625]
    assert lines[-1] == {"problem": "/nowhere: there is no such folder"}
