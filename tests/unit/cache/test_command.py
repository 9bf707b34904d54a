"""`nuwa` by hand: the commands of docs/design/cache.md, and the exit codes."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness import until
from unit.cache.nuwa import tree

PAGE = Path(__file__).parents[3] / "docs" / "design" / "cache.md"
COMMANDS = re.findall(r"^\$ nuwa (.*)$", PAGE.read_text(), re.MULTILINE)


def nuwa(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "paddlecloud.cache.nuwa", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.fixture
def original(tmp_path: Path) -> Path:
    folder = tmp_path / "data" / "original"
    (folder / "train").mkdir(parents=True)
    (folder / "train" / "a b.jpg").write_bytes(b"a" * 1000)
    (folder / "label.txt").write_text("labels")
    return folder


def test_the_commands_of_the_page_do_what_it_says(tmp_path: Path, original: Path) -> None:
    data, cache = tmp_path / "data" / "set", tmp_path / "shm" / "set"
    expected = {
        "sync": lambda: tree(data) == tree(original),
        "warmup": lambda: tree(cache) == tree(original),
        "clear": lambda: tree(cache) == {},
        "rmr": lambda: tree(data) == {"label.txt": b"labels"},
    }
    assert [command.split()[0] for command in COMMANDS] == list(expected)
    for command in COMMANDS:
        words = shlex.split(command.replace("/data/", f"{tmp_path}/data/").replace("/dev/shm/", f"{tmp_path}/shm/"))
        done = nuwa(*words)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["progress"]["failed"] == 0
        assert expected[words[0]](), command


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["sync", "file:///no/such", "file://DATA"], 1, "NotFound"),
        (["sync", "ftp://host/file", "file://DATA"], 2, "scheme ftp is unknown"),
        (["warmup", "DATA/none"], 1, "not in the set"),
        (["warmup", "--cacheLevels=TAPE,1,/x"], 2, "cache level"),
        (["rmr"], 2, "say which data"),
        (["rmr", "/etc"], 2, "lies outside"),
        (["dance"], 2, "invalid choice"),
    ],
)
def test_the_exit_code_says_how_it_went(tmp_path: Path, arguments: list[str], code: int, words: str) -> None:
    data = str(tmp_path / "data")
    command, *rest = [argument.replace("DATA", data) for argument in arguments]
    done = nuwa(command, "--driver=local", f"--dataDir={data}", f"--cacheDirs={tmp_path}/cache", *rest)
    assert (done.returncode, words in done.stderr) == (code, True), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("roots", "code"), [([], 0), (["--sourceRoots=ROOT"], 0), (["--sourceRoots="], 1)])
def test_the_folders_that_sources_may_be_in(tmp_path: Path, original: Path, roots: list[str], code: int) -> None:
    flags = [flag.replace("ROOT", str(tmp_path)) for flag in roots]
    done = nuwa(
        "sync", "--driver=local", f"--dataDir={tmp_path}/set", *flags, f"file://{original}", f"file://{tmp_path}/set"
    )
    assert (done.returncode, "may not read" in done.stderr) == (code, code == 1), done.stderr


def test_old_flags_are_accepted(tmp_path: Path, original: Path) -> None:
    done = nuwa(
        "--driver=local", "--development", f"--dataDir={tmp_path}/set", "sync", "--threads=2", "--force-update",
        f"file://{original}", f"file://{tmp_path}/set",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert tree(tmp_path / "set") == tree(original)


def test_an_interrupted_command_leaves_no_halves(tmp_path: Path, original: Path) -> None:
    (original / "large").write_bytes(bytes(2_000_000))
    command = [
        sys.executable, "-m", "paddlecloud.cache.nuwa", "sync", "--driver=local", f"--dataDir={tmp_path}/set",
        "--bwlimit=2", f"file://{original}", f"file://{tmp_path}/set",
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(lambda: (tmp_path / "set" / ".paddlecloud" / "unfinished").exists(), every=0.02)
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 130
    assert not (tmp_path / "set" / "large").exists()
