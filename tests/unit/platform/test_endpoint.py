"""How platforms of this machine are found: by the file in their directory, by their port, by their processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from paddlecloud.platform import endpoint

Start = Callable[..., int]


@pytest.fixture
def start() -> Iterator[Start]:
    """Processes with the command line of a daemon, which do nothing."""
    running: list[subprocess.Popen[bytes]] = []

    def begin(data: Path, *flags: str) -> int:
        program = "import sys; print(flush=True); sys.stdin.read()"
        idle = [sys.executable, "-c", program, endpoint.DAEMON, "--data", str(data), *flags]
        running.append(process := subprocess.Popen(idle, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        assert process.stdout is not None
        process.stdout.readline()  # the kernel shows no command line before the program runs
        return process.pid

    yield begin
    for process in running:
        process.communicate()


def announced(data: Path, pid: int, port: int) -> None:
    data.mkdir(exist_ok=True)
    (data / "endpoint.json").write_text(json.dumps({"pid": pid, "port": port, "started": 1.0}))


def test_given_a_running_daemon_then_its_directory_and_flags_are_known(tmp_path: Path, start: Start) -> None:
    pid = start(tmp_path / "a b", endpoint.NO_CONTROLLERS)
    assert endpoint.daemon_of(pid) == (pid, tmp_path / "a b", False)
    assert endpoint.daemon_of(start(tmp_path)).controllers  # type: ignore[union-attr]


def test_given_a_pid_that_another_program_has_now_then_the_platform_is_not_alive(tmp_path: Path, start: Start) -> None:
    announced(tmp_path, start(tmp_path / "other"), 1)
    found = endpoint.find(tmp_path)
    assert found is not None
    assert not found.alive


def test_given_several_platforms_then_one_is_found_by_its_port(tmp_path: Path, start: Start) -> None:
    for name, port in (("a", 1), ("b", 2)):
        announced(tmp_path / name, start(tmp_path / name), port)
    assert endpoint.find_at_port(2) == tmp_path / "b"
    assert endpoint.find_at_port(3) is None


def test_given_a_daemon_without_a_file_then_it_is_found_by_its_directory(tmp_path: Path, start: Start) -> None:
    assert endpoint.find_unannounced(tmp_path) is None
    pid = start(tmp_path)
    found = endpoint.find_unannounced(tmp_path)
    assert found is not None
    assert (found.pid, found.alive) == (pid, True)


def test_given_a_process_of_another_user_then_neither_it_nor_its_directory_is_the_users(
    tmp_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = start(tmp_path)
    announced(tmp_path, pid, 7)
    assert endpoint.find_at_port(7) == tmp_path
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert endpoint.find_at_port(7) is None
    assert endpoint.find_unannounced(tmp_path) is None
    assert not endpoint.is_daemon(pid, tmp_path)


def test_given_a_link_in_place_of_the_file_when_announced_then_what_it_leads_to_is_untouched(tmp_path: Path) -> None:
    (tmp_path / "theirs").write_text("kept")
    (tmp_path / "endpoint.json").symlink_to(tmp_path / "theirs")
    endpoint.announce(tmp_path, port=1, nodes=1)
    assert (tmp_path / "theirs").read_text() == "kept"
    assert (tmp_path / "endpoint.json").stat().st_mode & 0o077 == 0
