"""`pdc metrics` on a folder of this machine: what it prints, and what it says when there is nothing to print."""

from __future__ import annotations

from pathlib import Path

import pytest

from unit.cli.conftest import Pdc
from unit.visualdl.record_makers import scalar


@pytest.fixture
def log(tmp_path: Path) -> Path:
    folder = tmp_path / "log"
    folder.mkdir()
    (folder / "vdlrecords.1.log").write_bytes(b"".join(scalar("loss", step, 3.0 - step) for step in range(3)))
    return folder


def test_a_folder_is_read_without_a_server(pdc: Pdc, log: Path) -> None:
    done = pdc("metrics", "--dir", str(log))
    assert done.code == 0
    assert done.out.splitlines()[1].split()[:5] == [str(log), "loss", "2", "1", "1"]


def test_a_misspelt_tag_is_answered_with_the_right_one(pdc: Pdc, log: Path) -> None:
    done = pdc("metrics", "--dir", str(log), "--tag", "lsos")
    assert done.code == 3
    assert 'there are loss; did you mean "loss"?' in done.err
    assert f"next:  pdc metrics --dir {log}" in done.err


def test_a_folder_that_is_not_there_is_named_once(pdc: Pdc, tmp_path: Path) -> None:
    done = pdc("metrics", "--dir", str(tmp_path / "lgo"))
    assert done.code == 3
    assert done.err.count("there is no such folder") == 1


def test_a_job_and_a_folder_of_this_machine_are_not_both_read(pdc: Pdc, log: Path) -> None:
    done = pdc("metrics", "first", "--dir", str(log))
    assert done.code == 2
    assert "one of the two" in done.err
