"""What is said of a build that takes its time: what was measured and announced, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlecloud.local.images.build_progress import BuildProgress, contents, is_news


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def progress(clock: Clock, tmp_path: Path) -> BuildProgress:
    return BuildProgress(["paddlepaddle==3.3.1", "setuptools"], clock, folder=tmp_path)


def test_before_the_installer_announces_anything_only_the_time_is_known(progress: BuildProgress, clock: Clock) -> None:
    clock.now = 7
    progress.line("Collecting paddlepaddle==3.3.1")
    progress.line("  Downloading paddlepaddle-3.3.1-cp311.whl.metadata (8.6 kB)")
    assert progress.text() == "installing paddlepaddle==3.3.1, setuptools: 7 s so far"


def test_a_download_by_pip_has_bytes_rate_and_time_left(progress: BuildProgress, clock: Clock, tmp_path: Path) -> None:
    progress.line("  Downloading numpy-2.0-cp311.whl (2.0 MB)")
    progress.line("  Downloading https://files.example/x/paddle-3-cp311.whl (8.0 MB)")
    (tmp_path / "pip-unpack-x").mkdir()
    (tmp_path / "pip-unpack-x" / "paddle-3-cp311.whl").write_bytes(b"x" * 3_000_000)
    clock.now = 5
    assert progress.text().endswith(
        ": downloaded 5.0 MB of 10.0 MB announced by now, 1.0 MB/s, 5 s left for these, 5 s so far"
    )


def test_of_what_is_complete_no_time_is_left(progress: BuildProgress, clock: Clock, tmp_path: Path) -> None:
    progress.line("  Downloading numpy-2.0-cp311.whl (2.0 MB)")
    (tmp_path / "pip-unpack-x").mkdir()
    (tmp_path / "pip-unpack-x" / "numpy-2.0-cp311.whl").write_bytes(b"x" * 2_000_000)
    clock.now = 5
    assert progress.text().endswith(": downloaded 2.0 MB of 2.0 MB announced by now, 5 s so far")


def test_a_download_by_uv_has_no_time_left_because_nobody_knows_it(progress: BuildProgress, clock: Clock) -> None:
    progress.written(1_000_000)
    clock.now = 1
    progress.line("Downloading setuptools (1.0MiB)")
    progress.line("Downloading paddlepaddle (180.0MiB)")
    progress.line(" Downloaded setuptools")
    progress.written(41_000_000)
    clock.now = 5
    assert progress.text().endswith(
        ": 1 of 2 downloads complete (1.0 MB of 190 MB), 40.0 MB unpacked at 10.0 MB/s, 5 s so far"
    )


@pytest.mark.parametrize("line", ["Installing collected packages: paddlepaddle", "Prepared 12 packages in 30.21s"])
def test_after_the_downloads_it_is_said_that_they_are_installed(
    progress: BuildProgress, clock: Clock, line: str
) -> None:
    progress.line("Downloading paddlepaddle (180.0MiB)")
    progress.line(line)
    clock.now = 30
    assert progress.text().endswith(": downloads are complete, installing, 30 s so far")


def test_what_is_installed_is_named_in_short() -> None:
    items = ["/home/me/own-1.0.whl", "numpy<2", "onnx>=1; python_version >= '3.11'", "a", "b"]
    assert contents(items) == "installing own-1.0.whl, numpy<2, onnx>=1 and 2 more packages"


@pytest.mark.parametrize(
    ("line", "news"),
    [
        ("Requirement already satisfied: numpy in /cache/packages/3f/venv/lib/python3.11/site-packages (2.1)", False),
        ("  Requirement already satisfied: idna>=2", False),
        ("Collecting sklearn", True),
        ("Installing collected packages: sklearn", True),
    ],
)
def test_packages_that_are_there_already_are_no_news(line: str, news: bool) -> None:
    assert is_news(line) is news
