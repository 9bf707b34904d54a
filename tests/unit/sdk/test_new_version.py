"""Which process of a job makes its version, what becomes of its folder, and what is known without a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from paddlecloud.data import report
from paddlecloud.modelhub import job_origin
from paddlecloud.modelhub.errors import Refused
from paddlecloud.modelhub.manifest import Manifest
from paddlecloud.sdk.new_version import AsyncNewVersion, NewVersion


class Pushes:
    def __init__(self, error: Exception | None = None) -> None:
        self.seen: list[list[str]] = []
        self.error = error

    async def __call__(self, version: NewVersion) -> Manifest:
        self.seen.append(sorted(path.name for path in version.folder.iterdir()))
        if self.error:
            raise self.error
        return cast(Any, Manifest)(
            format=1, namespace="a", model=version.model, version="7", digest="", size=0, files=()
        )  # fmt: skip


def making(push: Pushes, folder: str = "") -> AsyncNewVersion:
    return AsyncNewVersion(push, NewVersion("ocr", {}, ""), folder)


async def test_a_clean_exit_pushes_the_folder_and_removes_it() -> None:
    push = Pushes()
    async with making(push) as v:
        (v / "net").write_text("x")
        assert Path(v) == v.folder
    assert (push.seen, v.name, v.version, v.folder.exists()) == ([["net"]], "ocr:7", "7", False)


async def test_an_exception_pushes_nothing() -> None:
    push = Pushes()
    with pytest.raises(RuntimeError, match="diverged"):
        async with making(push) as v:
            raise RuntimeError("diverged")
    assert (push.seen, v.version, v.folder.exists()) == ([], "", False)


async def test_a_push_that_fails_keeps_the_folder(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Refused):
        async with making(Pushes(Refused("no space"))) as v:
            (v / "net").write_text("hours of work")
    assert (v / "net").read_text() == "hours of work"
    assert f"kept in {v.folder}" in capsys.readouterr().err


async def test_a_folder_of_ones_own_stays(tmp_path: Path) -> None:
    async with making(Pushes(), str(tmp_path / "a/b")) as v:
        (v / "net").write_text("x")
    assert (tmp_path / "a/b/net").exists()


@pytest.mark.parametrize(
    ("env", "leads"),
    [
        ({}, True),
        ({"PADDLE_TRAINER_ID": "0", "TRAINING_ROLE": "TRAINER"}, True),
        ({"PADDLE_TRAINER_ID": "1", "TRAINING_ROLE": "TRAINER"}, False),
        ({"PADDLE_TRAINER_ID": "0", "TRAINING_ROLE": "PSERVER"}, False),
    ],
)
def test_the_first_worker_makes_the_version(env: dict[str, str], leads: bool) -> None:
    assert job_origin.is_leader(env) is leads


async def test_other_ranks_push_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PADDLE_TRAINER_ID", "3")
    push = Pushes()
    async with making(push) as v:
        (v / "net").write_text("x")
    assert (push.seen, v.version) == ([], "")


def test_a_listing_tells_sizes_and_names_apart(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    first = job_origin.listing(tmp_path)
    assert first is not None
    assert first[1] == 1
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "x").write_text("")
    assert job_origin.listing(tmp_path) == first
    (tmp_path / "a").write_text("22")
    assert job_origin.listing(tmp_path) != first


def test_what_was_reported_last_is_known_where_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "_latest", {})
    report.progress(step=1, loss=0.5, accuracy=0.1)
    report.progress(step=2, loss=0.25, word="x")
    assert report.latest() == {"loss": 0.25, "accuracy": 0.1}


def test_metrics_of_a_status_are_the_last_that_were_reported() -> None:
    progress = {"loss": 0.5, "metrics": {"accuracy": 0.9}, "samplesPerSecond": 3}
    assert job_origin.status_metrics({"status": {"progress": progress}}) == {"loss": 0.5, "accuracy": 0.9}
    assert job_origin.status_metrics({}) == {}
