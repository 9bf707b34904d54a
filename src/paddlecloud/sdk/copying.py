"""Files and folders to and from a container, as `tar` streams through exec; the container must have `tar`.

What arrives is not trusted: nothing is written outside the destination, whatever names the archive carries. Links that
lead out of it, devices and the like are left out and reported.
"""

from __future__ import annotations

import itertools
import os
import posixpath
import shutil
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Protocol, cast

from paddlecloud.kube.errors import Unreachable
from paddlecloud.kube.wording import cause_of
from paddlecloud.sdk.remote import Output

Warn = Callable[[str], None]
BLOCK = 64 * 1024
LONGEST_HEADER = 1 << 20
"""Of long names and extended headers, which tarfile reads whole."""
MOST_COMPLAINTS = 64 * 1024
"""Bytes that are kept of what the program in the container says; of a report the first line is shown."""


class CopyError(Exception):
    """The copy is not complete; the text says what failed on which side."""


class RemoteProgram(Protocol):
    """A program in the container, as blocking calls. `read` gives None after the last output."""

    def read(self) -> Output | None: ...

    def write(self, data: bytes) -> None: ...

    def end_input(self) -> None: ...

    def close(self) -> None: ...

    @property
    def exit_code(self) -> int: ...


Start = Callable[[Sequence[str]], RemoteProgram]
"""Starts a command in the container, with its input open."""


def download(start: Start, source: str, destination: Path, *, moved: Callable[[int], None], warn: Warn) -> None:
    """`source` becomes `destination`, or goes into it when it is a directory already."""
    folder, name = posixpath.split(posixpath.normpath(source))
    name = name or "."
    target = destination / name if destination.is_dir() and name not in (".", "..") else destination
    if not target.parent.is_dir():
        raise CopyError(f"there is no directory {target.parent}")
    program = start(["tar", "-cf", "-", "-C", folder or ".", f"./{name}"])
    reader = _Reader(program, moved)
    try:
        with tarfile.open(fileobj=cast(IO[bytes], reader), mode="r|", bufsize=BLOCK, tarinfo=_Member) as archive:
            found = _unpack(archive, name, target, warn)
        reader.drain()
    except tarfile.TarError as error:
        reader.drain()
        if program.exit_code == 0:
            raise CopyError(f"what the container sent is no archive: {error}") from error
        found = 0
    except OSError as error:
        raise CopyError(f"cannot write {target}: {cause_of(error)}") from error
    finally:
        program.close()
    if program.exit_code != 0 or not found:
        raise CopyError(_complaint(source, program.exit_code, reader.complaints))


def upload(start: Start, source: Path, destination: str, *, moved: Callable[[int], None]) -> None:
    """The same in the other direction."""
    if not source.exists():
        raise CopyError(f"there is no {source}")
    target = posixpath.normpath(destination)
    if destination.endswith("/") or _is_directory(start, target):
        target = posixpath.join(target, source.resolve().name)
    folder, name = posixpath.split(target)
    program = start(["tar", "-xmf", "-", "-C", folder or "."])
    complaints = b""
    try:
        try:
            with tarfile.open(fileobj=cast(IO[bytes], _Writer(program, moved)), mode="w|", bufsize=BLOCK) as archive:
                archive.add(os.path.realpath(source), arcname=name, filter=_anonymous)
            program.end_input()
        except Unreachable:
            pass  # it may have ended early; if so, it says why
        while (piece := program.read()) is not None:
            complaints += piece.data[: MOST_COMPLAINTS - len(complaints)]
    except OSError as error:
        raise CopyError(f"cannot read {source}: {cause_of(error)}") from error
    finally:
        program.close()
    if program.exit_code != 0:
        raise CopyError(_complaint(destination, program.exit_code, complaints))


def _is_directory(start: Start, path: str) -> bool:
    program = start(["test", "-d", path])
    try:
        while program.read() is not None:
            continue
        return program.exit_code == 0
    finally:
        program.close()


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Files belong to the user who unpacks them: user numbers of this machine mean nothing in the container."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def _complaint(path: str, code: int, said: bytes) -> str:
    text = said.decode(errors="replace").strip().splitlines()
    return f"tar exited with {code} in the container for {path}" + (f": {text[0]}" if text else "")


class _Reader:
    """The archive in a program's output, as a file. What it says on stderr is kept for the report."""

    def __init__(self, program: RemoteProgram, moved: Callable[[int], None]) -> None:
        self._program = program
        self._moved = moved
        self._rest = b""
        self._ended = False
        self.complaints = b""

    def read(self, size: int) -> bytes:
        while len(self._rest) < size and not self._ended:
            piece = self._program.read()
            if piece is None:
                self._ended = True
            elif piece.stream == "stderr":
                self.complaints += piece.data[: MOST_COMPLAINTS - len(self.complaints)]
            else:
                self._rest += piece.data
                self._moved(len(piece.data))
        data, self._rest = self._rest[:size], self._rest[size:]
        return data

    def drain(self) -> None:
        while self.read(BLOCK):
            continue


class _Writer:
    def __init__(self, program: RemoteProgram, moved: Callable[[int], None]) -> None:
        self._program = program
        self._moved = moved

    def write(self, data: bytes) -> int:
        self._program.write(data)
        self._moved(len(data))
        return len(data)


# Unpacking what cannot be trusted


_HEADERS = (
    tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK,
)  # fmt: skip


class _Member(tarfile.TarInfo):
    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _Member:
        found = super().frombuf(buf, encoding, errors)
        if found.type in _HEADERS and found.size > LONGEST_HEADER:
            raise tarfile.ReadError(f"a header of {found.size} bytes")
        return found


def _unpack(archive: tarfile.TarFile, root: str, target: Path, warn: Warn) -> int:
    """How many entries were written; `root` in the archive is `target` here."""
    written = 0
    later: list[tuple[str, int]] = []
    for entry in archive:
        relative = _relative(entry.name, root)
        if relative is None:
            warn(f"left out {entry.name}: it lies outside of what was asked for")
            continue
        place = target.joinpath(*relative)
        if relative and not _inside(place if entry.isdir() else place.parent, target):
            warn(f"left out {entry.name}: a link on its way leads elsewhere")
            continue
        if entry.isdir():
            place.mkdir(parents=True, exist_ok=True)
            later.append((os.path.realpath(place), entry.mode))
        elif entry.isreg():
            content = archive.extractfile(entry)
            assert content is not None, "a regular file has content"
            _write_file(content, entry.mode, place)
        elif entry.islnk() and (twin := _twin(entry, root, place, target)):
            _write_file(twin.open("rb"), twin.stat().st_mode, place)
        elif entry.issym() and _leads_inside(entry.linkname, place.parent, target):
            place.unlink(missing_ok=True)
            place.symlink_to(entry.linkname)
        else:
            warn(f"left out {entry.name}: neither a file nor a link that stays inside")
            continue
        written += 1
    for folder, mode in reversed(later):  # last, or a read-only folder could not be filled
        os.chmod(folder, mode & 0o777)
    return written


def _relative(name: str, root: str) -> Sequence[str] | None:
    """The path below `root`, or None for a name that is not there."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    base = [part for part in root.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts[len(base) :] or parts[: len(base)] != base:
        return None
    return parts[len(base) :]


def _inside(path: Path, folder: Path) -> bool:
    resolved = Path(os.path.realpath(path))
    return resolved == Path(os.path.realpath(folder)) or resolved.is_relative_to(os.path.realpath(folder))


def _leads_inside(link: str, folder: Path, target: Path) -> bool:
    """Whether a link in `folder` stays inside `target` whatever links come after it.

    So `..` may stand at its start alone, where it climbs from a real folder. Behind a name it would climb from the
    place that this name leads to by then, which a later link of the archive can choose.
    """
    parts = [part for part in link.split("/") if part not in ("", ".")]
    climbs = list(itertools.takewhile(lambda part: part == "..", parts))
    if link.startswith("/") or ".." in parts[len(climbs) :]:
        return False
    return _inside(folder.joinpath(*climbs), target) and _inside(folder / link, target)


def _twin(entry: tarfile.TarInfo, root: str, place: Path, target: Path) -> Path | None:
    """The file of the copy that a hard link is another name of."""
    relative = _relative(entry.linkname, root)
    twin = Path(os.path.realpath(target.joinpath(*relative))) if relative else None
    if twin is None or not twin.is_file() or not _inside(twin, target) or twin == Path(os.path.realpath(place)):
        return None
    return twin


def _write_file(content: IO[bytes], mode: int, place: Path) -> None:
    """Never through a link: the name is given to a file of its own."""
    if place.is_symlink():
        place.unlink()
    place.parent.mkdir(parents=True, exist_ok=True)
    with content, open(place, "wb") as file:
        shutil.copyfileobj(content, file, 256 * 1024)
    place.chmod(mode & 0o777)


def size(path: Path) -> int:
    """Bytes of all files below a path, itself included: what will move."""
    if not path.is_dir():
        return path.stat().st_size if path.exists() else 0
    return sum(os.lstat(os.path.join(folder, name)).st_size for folder, _, names in os.walk(path) for name in names)
