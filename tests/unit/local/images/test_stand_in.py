"""The line that images for container engines write themselves: once, first, and only by the container's own program."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from harness import need, until
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


def errors_of(python: Path, *command: str, through: Sequence[str] = PID_ONE) -> str:
    env = {"PATH": f"{python.parent}:/usr/bin:/bin", "BASH_ENV": str(python.parents[1] / "note.sh")}
    done = subprocess.run([*through, *command], capture_output=True, text=True, env=env, timeout=30)
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


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[list[str]]:
    """How a program is started in a pod that shares its processes: without a parent, beside `pause` as process 1."""
    need("root", have=os.geteuid() == 0, hint="programs without a parent take `nsenter`")
    pause = tmp_path / "pause"
    shutil.copy(shutil.which("sleep") or "", pause)
    command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", str(pause), "100"]
    with subprocess.Popen(command) as outer:
        children = Path(f"/proc/{outer.pid}/task/{outer.pid}/children")
        until(lambda: children.read_text() != "" and Path(f"/proc/{_only(children)}/comm").read_text() == "pause\n")
        inside = ["nsenter", f"--target={_only(children)}", "--mount", "--pid"]
        subprocess.run([*inside, "mount", "-t", "tmpfs", "tmpfs", "/var/tmp"], check=True, timeout=20)
        yield inside
        outer.kill()


def _only(children: Path) -> str:
    return children.read_text().split()[0]


@pytest.mark.parametrize(
    "command",
    [
        ("python", "-c", PRINT),
        ("python", "-c", "import subprocess, sys; subprocess.run([sys.executable, '-c', \"print('out')\"])"),
        ("bash", "-c", "echo out"),
        ("bash", "-c", f'true && python -c "{PRINT}" && true'),
        ("sh", "-c", f'true; python -c "{PRINT}"; true'),
    ],
)
def test_where_a_pods_containers_share_processes_the_first_program_writes_it_and_no_other(
    python: Path, shared: list[str], command: tuple[str, ...]
) -> None:
    assert errors_of(python, *command, through=shared) == LINE
    for program in (("python", "-c", PRINT), ("bash", "-c", "echo out")):
        assert errors_of(python, *program, through=shared) == "", "what `kubectl exec` starts adds nothing"


def test_an_image_that_is_what_its_name_promises_has_nothing_of_this() -> None:
    assert (stand_in.files("", python=VERSION), stand_in.variables(""), stand_in.labels("")) == ({}, {}, {})
