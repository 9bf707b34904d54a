"""Both generations of kfp, each in an environment of its own: their requirements exclude each other and ours.

They lie in ~/.cache/paddlecloud/tools (or $PDC_TOOLS), made by uv on first use. kfp 1 takes Python 3.12 at most.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from harness import need
from tools.go import tools

VERSIONS = {1: "1.8.22", 2: "2.17.0"}
BUILD_SECONDS = 600
_REQUIREMENTS = {
    1: ["kfp==1.8.22", "setuptools<80"],  # it imports pkg_resources, which newer ones lack
    2: ["kfp==2.17.0", "kfp-kubernetes==2.17.0"],
}


def python(generation: int) -> Path:
    """The interpreter of an environment with that kfp. Skips, or with PDC_REQUIRE=kfp fails, if it cannot be made."""
    digest = hashlib.sha256(" ".join(_REQUIREMENTS[generation]).encode()).hexdigest()[:8]
    folder = tools() / f"kfp-{VERSIONS[generation]}-{digest}-py{sys.version_info.major}.{sys.version_info.minor}"
    if not (folder / "complete").exists():
        need("kfp", have=_uv() is not None, hint="pip install uv")
        problem = _build(folder, generation)
        need("kfp", have=not problem, hint=problem)
    return folder / "bin" / "python"


def _uv() -> str | None:
    beside = Path(sys.executable).with_name("uv")
    return str(beside) if beside.exists() else shutil.which("uv")


def _build(folder: Path, generation: int) -> str:
    """Empty, or why it could not be made."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    version = "3.12" if generation == 1 and sys.version_info > (3, 12) else sys.executable
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # workers of one run ask at the same moment
        if (folder / "complete").exists():
            return ""
        uv = str(_uv())
        into = str(folder / "bin" / "python")
        for command in (
            [uv, "venv", "--quiet", "--clear", "--python", version, str(folder)],
            [uv, "pip", "install", "--quiet", "--python", into, *_REQUIREMENTS[generation]],
        ):
            done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_SECONDS)
            if done.returncode != 0:
                return f"{' '.join(command[:3])}: {done.stderr.strip()[-500:]}"
        (folder / "complete").touch()
        return ""
