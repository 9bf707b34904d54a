"""The line that images for container engines write themselves: once, first, and only by the container's own program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness import need
from paddlecloud.local.images import stand_in

TEXT = "CPU Paddle for a 'GPU' tag; $HOME & more"
LINE = f"note: this image is a stand-in: {TEXT}\n"
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
PID_ONE = ["unshare", "--user", "--map-root-user", "--pid", "--fork"]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter with the files of a stand-in among its packages; the script for bash lies beside it."""
    done = subprocess.run([*PID_ONE, "true"], capture_output=True, timeout=20)
    need("user namespaces", have=done.returncode == 0, hint="a first process takes a PID namespace")
    folder = tmp_path_factory.mktemp("image")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=60)
    for path, text in stand_in.files(TEXT, python=VERSION).items():
        inside = path.removeprefix("/usr/local/")
        place = folder / (inside if inside.startswith("lib/") else "note.sh")
        place.write_text(text)
    return folder / "bin" / "python"


def errors_of(python: Path, *command: str) -> str:
    env = {"PATH": f"{python.parent}:/usr/bin:/bin", "BASH_ENV": str(python.parents[1] / "note.sh")}
    done = subprocess.run([*PID_ONE, *command], capture_output=True, text=True, env=env, timeout=30)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "out\n", "nothing is added to what the program prints"
    return done.stderr


PRINT = "print('out')"


@pytest.mark.parametrize(
    "command",
    [
        ("python", "-c", PRINT),
        ("python", "-c", "import subprocess, sys; subprocess.run([sys.executable, '-c', \"print('out')\"])"),
        ("python", "-c", "import os, sys; os.execv(sys.executable, ['python', '-c', \"print('out')\"])"),
        ("bash", "-c", "echo out"),
        ("bash", "-uc", f'python -c "{PRINT}"'),
        ("bash", "-c", f'true && python -c "{PRINT}" && true'),
        ("sh", "-c", f'true; python -c "{PRINT}"; true'),
    ],
)
def test_the_first_program_of_a_container_writes_the_line_once(python: Path, command: tuple[str, ...]) -> None:
    assert errors_of(python, *command) == LINE


@pytest.mark.parametrize("program", [f'python -c "{PRINT}"', "bash -c 'echo out'"])
def test_programs_beside_it_such_as_probes_write_none(python: Path, program: str) -> None:
    inner = program.replace('"', '\\"')
    assert errors_of(python, "sh", "-c", f'sh -c "{inner}; true"; true') == ""


def test_an_image_that_is_what_its_name_promises_has_nothing_of_this() -> None:
    assert (stand_in.files("", python=VERSION), stand_in.variables(""), stand_in.labels("")) == ({}, {}, {})
