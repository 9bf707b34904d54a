"""What importing an image's modules has done to a warm parent, so that a fork of it can be like a program that did it.

Everything that a program could observe after the same imports is kept or noted here: variables they read and set,
output they printed, files they made in the home directory, descriptors they opened, signal handlers they installed.
Standard library only: the shim imports this.
"""

from __future__ import annotations

import fcntl
import importlib
import os
import signal
import stat
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from paddlecloud.local.kubelet.shim import linux

HOME_BYTES = 1 << 20
"""Files that imports make in the home directory are small or none; with more than this an image starts cold."""


class CannotPreload(Exception):
    """The modules cannot be imported ahead of a program; the text says why."""


class HomeFile(NamedTuple):
    """A directory (`content` is None) or a file, relative to the home directory."""

    path: str
    mode: int
    content: bytes | None


class Preloaded(NamedTuple):
    roots: tuple[str, ...]
    """The modules that were asked for."""
    modules: frozenset[str]
    """All that a program finds imported after them."""
    main: Mapping[str, Any]
    """The globals of `__main__` before any code ran in it."""
    environment: Mapping[str, str]
    """What the parent was started with."""
    reads: frozenset[str]
    """Variables that the imports looked at."""
    sets: Mapping[str, str | None]
    """Variables that the interpreter or the imports changed; None for one they removed."""
    identity: Mapping[str, tuple[int, ...] | None]
    """Files and folders that must be the same for the program: where modules come from."""
    printed: tuple[bytes, bytes]
    """To standard output and standard error."""
    home: tuple[HomeFile, ...]
    folder: str
    """The current one during the imports, which only a program's own can stand for."""
    folder_globals: tuple[tuple[str, str], ...]
    """Modules and names in them whose value is a path in that folder."""
    descriptors: frozenset[int]
    handlers: Mapping[int, Any]
    """Signal handlers as Python has them."""
    actions: Mapping[int, bytes]
    """… and as the kernel has them: native code installs its own."""


_EVERYTHING = "="
"""No variable is called so."""


class _Recording(os._Environ):  # type: ignore[type-arg]
    """The class of `os.environ` while modules are imported."""

    reads: ClassVar[set[str]] = set()

    def __getitem__(self, key: Any) -> Any:
        self.reads.add(os.fsdecode(key))
        return super().__getitem__(key)

    def __iter__(self) -> Iterator[Any]:
        self.reads.add(_EVERYTHING)
        return super().__iter__()


def preload(roots: Sequence[str], *, main: Mapping[str, Any], at_start: Collection[str]) -> Preloaded:
    """Import `roots` as a new interpreter would whose first lines they are. `at_start` are its modules before any."""
    environment = initial_environment()
    home = environment.get("HOME", "")
    lock = _take_home(home)
    folder = _enter_folder(home)
    del sys.path[0]  # empty, for `-c`; a program puts its own folder there
    for name in set(sys.modules) - set(at_start):
        del sys.modules[name]  # our modules, and the standard library's that we use: the program has not imported them
    before = open_files()
    reads, printed = _import(roots)
    descriptors = open_files() - before
    _leave_folder(folder)
    made = tuple(_made_in(home))
    os.close(lock)
    if any(os.readlink(f"/proc/self/fd/{fd}").startswith("/dev/nvidia") for fd in descriptors):
        raise CannotPreload("they open the GPU, which a fork cannot share")
    now = dict(os.environ)
    return Preloaded(
        roots=tuple(roots),
        modules=frozenset(sys.modules),
        main=dict(main),
        environment=environment,
        reads=frozenset(reads),
        sets={name: now.get(name) for name in (*now, *environment) if now.get(name) != environment.get(name)},
        identity={path: identity(path) for path in _sources(roots, environment)},
        printed=printed,
        home=made,
        folder=folder,
        folder_globals=tuple(_globals_with(folder)),
        descriptors=frozenset(descriptors),
        handlers={number: signal.getsignal(number) for number in signal.valid_signals()},
        actions=linux.signal_actions(),
    )


def _import(roots: Sequence[str]) -> tuple[set[str], tuple[bytes, bytes]]:
    """Variables read and output printed by the imports."""
    _Recording.reads.clear()
    ordinary = type(os.environ)
    kept = [out_of_the_way(fd) for fd in (1, 2)]
    captured = []
    for name in ("stdout", "stderr"):
        file = os.memfd_create(name)
        captured.append(out_of_the_way(file))
        os.close(file)
    for fd, target in zip(captured, (1, 2), strict=True):
        os.dup2(fd, target)
    _record_reads(_Recording)
    root = ""
    try:
        for root in roots:
            importlib.import_module(root)
    except Exception as error:  # whatever a module of an image does at import: the kubelet goes on without it
        raise CannotPreload(f"{root}: {error}") from error
    finally:
        _record_reads(ordinary)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        printed = tuple(_content(fd) for fd in captured)
        for fd, target in zip(kept, (1, 2), strict=True):
            os.dup2(fd, target)
        for fd in (*kept, *captured):
            os.close(fd)
    if _EVERYTHING in _Recording.reads:
        raise CannotPreload("they read the whole environment, which differs from pod to pod")
    return _Recording.reads, (printed[0], printed[1])


def _record_reads(kind: Any) -> None:
    """Make all reads go through the methods of a class."""
    for one in (os.environ, os.environb):
        one.__class__ = kind


def out_of_the_way(fd: int) -> int:
    """A copy with a high number: what modules open gets the low ones, as in a separate program."""
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 200)


def _content(fd: int) -> bytes:
    return os.pread(fd, os.fstat(fd).st_size, 0)


def initial_environment() -> dict[str, str]:
    """What this process was started with; `os.environ` may have more (PEP 538 sets LC_CTYPE)."""
    with open("/proc/self/environ", "rb") as handle:
        entries = handle.read().split(b"\0")
    return dict(os.fsdecode(entry).split("=", 1) for entry in entries if b"=" in entry)


def open_files() -> set[int]:
    """Without the descriptors by which they are listed."""
    listed = os.listdir("/proc/self/fd")
    return {int(name) for name in listed if os.path.lexists(f"/proc/self/fd/{name}")}


def identity(path: str) -> tuple[int, ...] | None:
    """Equal for the same unchanged file or folder; None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns


def _sources(roots: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Of the modules asked for, and the folders that are searched before theirs."""
    files = [getattr(sys.modules[root], "__file__", None) for root in roots]
    return [*filter(None, files), *filter(None, environment.get("PYTHONPATH", "").split(":"))]


# The home directory


_MARK = ".warm-parent"
"""A file by which a home directory is known to be here for warm parents alone."""


def _take_home(home: str) -> int:
    """Have an empty home directory; others wait for it until the descriptor returned is closed.

    A pod's home lies in the pod's own /tmp. The parent sees the machine's, where others may write: a directory of
    another user is not used, and one with files that are not of warm parents is not cleared.
    """
    try:
        os.mkdir(home, 0o700)
    except FileExistsError:
        pass  # of an earlier parent, or of others: the next lines find out
    except OSError as error:
        raise CannotPreload(f"home directory: {error}") from error
    found = os.lstat(home)
    private = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022
    if not private or (os.listdir(home) and _MARK not in os.listdir(home)):
        raise CannotPreload(f"the home directory {home} is in use by others")
    file = os.open(os.path.join(home, _MARK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    lock = out_of_the_way(file)
    os.close(file)
    fcntl.flock(lock, fcntl.LOCK_EX)
    for folder, folders, files in os.walk(home, topdown=False):
        for name in folders:
            path = os.path.join(folder, name)
            (os.unlink if os.path.islink(path) else os.rmdir)(path)
        for name in files:
            if name != _MARK:
                os.unlink(os.path.join(folder, name))
    return lock


def _enter_folder(home: str) -> str:
    """A current folder whose path nothing else has, so that modules that keep it are found out."""
    folder = os.path.join(home, f"{_MARK}-folder")
    os.mkdir(folder)
    os.chdir(folder)
    return os.getcwd()


def _leave_folder(folder: str) -> None:
    os.chdir("/")
    try:
        os.rmdir(folder)
    except OSError as error:
        raise CannotPreload("they write into the current folder") from error


def _globals_with(folder: str) -> Iterator[tuple[str, str]]:
    for module, contents in sys.modules.items():
        for name, value in getattr(contents, "__dict__", {}).items():
            if isinstance(value, str) and f"{value}/".startswith(f"{folder}/"):
                yield module, name


def _made_in(home: str) -> Iterator[HomeFile]:
    room = HOME_BYTES
    for folder, folders, files in os.walk(home):
        for name in (*folders, *files):
            if name == _MARK:
                continue
            path = os.path.join(folder, name)
            found = os.lstat(path)
            content = None
            if not stat.S_ISDIR(found.st_mode):
                room -= found.st_size
                if room < 0 or not stat.S_ISREG(found.st_mode):
                    raise CannotPreload(f"they make {path}, which is more than a small file")
                with open(path, "rb") as handle:
                    content = handle.read()
            yield HomeFile(os.path.relpath(path, home), stat.S_IMODE(found.st_mode), content)


def make_home(files: Sequence[HomeFile], home: str) -> None:
    """What the imports would have made in the program's own home directory."""
    for file in files:
        path = os.path.join(home, file.path)
        try:
            if file.content is None:
                os.mkdir(path, file.mode)
            else:
                _write_new(path, file)
        except OSError:
            continue  # it is there, or this program may not write there: its own import would have met the same


def _write_new(path: str, file: HomeFile) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, file.mode)
    with os.fdopen(fd, "wb") as handle:
        handle.write(file.content or b"")
