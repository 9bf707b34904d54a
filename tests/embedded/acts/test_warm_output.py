"""What a program started from its image's warm parent prints is there when it prints it, and stays if it is killed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from embedded.acts.acting import Pdc, background, pod
from harness import until

WAIT = """
import statistics
import inspect, os, sys, time
warm = any(frame.filename.endswith("warmstart.py") for frame in inspect.stack())
print("warm" if warm else "cold", os.getpid())
print("last words", file=sys.stderr)
while not os.path.exists("go"):
    time.sleep(0.05)
"""


@pytest.fixture
def image(run: Pdc, platform_data: Path, namespace: str) -> str:
    """One that keeps a module imported."""
    name = f"example.com/{namespace}:v1"
    folder = platform_data / "images" / namespace
    folder.mkdir(parents=True)
    (folder / "image.yaml").write_text(f"names: [{name}]\nbase: python\nproject: true\npreload: [statistics]\n")
    built = run("image", "build", name)
    assert built.returncode == 0, built.stderr
    return name


@pytest.fixture
def command(run: Pdc, image: str, tmp_path: Path) -> tuple[str, ...]:
    """Runs the program warm: the parent is made by the first runs, which end at once."""
    (tmp_path / "wait.py").write_text(WAIT)
    (tmp_path / "go").touch()
    command = ("--image", image, "--", "python", "wait.py")
    until(lambda: "warm" in run("run", *command).stdout)
    (tmp_path / "go").unlink()
    return command


def test_a_line_is_in_the_logs_before_its_program_ends(
    run: Pdc, environment: dict[str, str], namespace: str, command: tuple[str, ...], tmp_path: Path
) -> None:
    with background(environment, "-n", namespace, "run", "--name", "shown", *command, cwd=tmp_path) as child:
        until(lambda: len(run("logs", "shown").stdout.splitlines()) == 2)
        assert child.poll() is None
        assert "warm" in run("logs", "shown").stdout
        (tmp_path / "go").touch()
        out, err = child.communicate(timeout=60)
        assert child.returncode == 0, err
        assert len(out.splitlines()) == 2


def test_a_killed_program_loses_nothing_that_it_printed(
    run: Pdc, image: str, command: tuple[str, ...], tmp_path: Path
) -> None:
    container = {
        "name": "main",
        "image": image,
        "command": ["python", "-u", "wait.py"],
        "workingDir": "/work",
        "volumeMounts": [{"name": "work", "mountPath": "/work"}],
    }
    volume = {"name": "work", "hostPath": {"path": str(tmp_path)}}
    run("apply", "-f", "-", input=pod("killed", containers=[container], volumes=[volume]))
    until(lambda: len(run("logs", "killed").stdout.splitlines()) == 2)
    printed = run("logs", "killed").stdout
    how, pid = next(line for line in printed.splitlines() if line != "last words").split()
    assert how == "warm"
    os.kill(int(pid), signal.SIGKILL)
    assert run("wait", "pod/killed", "--for=finished", "--timeout=60s").returncode == 100
    assert run("logs", "killed").stdout == printed
