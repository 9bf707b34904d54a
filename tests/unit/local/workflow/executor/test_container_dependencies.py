"""Containers of a set wait for each other, and not for one that was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from paddlecloud.local.workflow.executor import container_dependencies
from paddlecloud.local.workflow.executor.container_dependencies import run_in_set
from paddlecloud.local.workflow.executor.orders import ExecutorError

ONE = """
import sys
from paddlecloud.local.workflow.executor import container_dependencies
container_dependencies.SHARED = sys.argv[1]
container_dependencies.run_in_set({"name": "one"}, lambda: print("begun", flush=True) or sys.stdin.read() and 0 or 3)
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, 137), (None, 3)], ids=["killed", "ended"])
@pytest.mark.timeout(30)
def test_what_depends_on_a_container_that_failed_does_not_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals | None, code: int
) -> None:
    monkeypatch.setattr(container_dependencies, "SHARED", str(tmp_path))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", ONE, str(tmp_path)], **pipes) as one:  # type: ignore[call-overload]
        one.stdout.readline()
        if number is not None:
            os.kill(one.pid, number)
        one.stdin.close()
        with pytest.raises(ExecutorError, match=f"container one, .* exit code {code}"):
            run_in_set({"name": "two", "after": ["one"]}, lambda: 0)
    assert (tmp_path / "two.exit").read_text() == "64"


@pytest.mark.timeout(30)
def test_outputs_are_saved_when_every_container_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of the others depends on the container that saves them."""
    monkeypatch.setattr(container_dependencies, "SHARED", str(tmp_path))
    made = tmp_path / "out"
    later = threading.Thread(
        target=run_in_set,
        args=({"name": "later", "after": ["main"]}, lambda: made.write_text("x") and 0),
    )
    later.start()
    assert run_in_set({"name": "main", "others": ["later"]}, lambda: 0, lambda code: len(made.read_text())) == 1
    later.join()
    assert (tmp_path / "main.exit").read_text() == "0"


def test_a_container_that_fails_is_tried_again_after_its_pause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container_dependencies, "SHARED", str(tmp_path))
    waited: list[float] = []
    monkeypatch.setattr(container_dependencies.time, "sleep", waited.append)
    codes = iter([1, 1, 0])
    assert run_in_set({"name": "one", "retries": 2, "pause": 90.0}, lambda: next(codes)) == 0
    assert waited == [90.0, 90.0]
