"""Virtual environments of programs whose requirements exclude ours, in ~/.cache/paddlecloud/tools (or $PDC_TOOLS).

uv makes each of them on first use; they are named by what they hold.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.go import tools

BUILD_SECONDS = 600


class NoEnvironment(Exception):
    """An environment could not be made; the message says why."""


def python(name: str, requirements: Sequence[str], version: str = "") -> Path:
    """The interpreter of an environment with these packages; that of the tests, unless another version is named."""
    digest = hashlib.sha256(" ".join(requirements).encode()).hexdigest()[:8]
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    folder = tools() / f"{name}-{digest}-py{own}"
    if not (folder / "complete").exists():
        _build(folder, requirements, sys.executable if version in ("", own) else version)
    return folder / "bin" / "python"


def uv() -> str | None:
    beside = Path(sys.executable).with_name("uv")
    return str(beside) if beside.exists() else shutil.which("uv")


def _build(folder: Path, requirements: Sequence[str], interpreter: str) -> None:
    program = uv()
    if program is None:
        raise NoEnvironment("pip install uv")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # workers of one run ask at the same moment
        if (folder / "complete").exists():
            return
        into = str(folder / "bin" / "python")
        for command in (
            [program, "venv", "--quiet", "--clear", "--python", interpreter, str(folder)],
            [program, "pip", "install", "--quiet", "--python", into, *requirements],
        ):
            done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_SECONDS)
            if done.returncode != 0:
                raise NoEnvironment(f"{' '.join(command[:3])}: {done.stderr.strip()[-500:]}")
        (folder / "complete").touch()
