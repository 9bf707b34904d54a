"""Artifacts as files: packed by their archive strategy, and unpacked within limits.

Everything is streamed: an artifact of any size takes a constant amount of memory. What is unpacked was packed by
another step, or comes from anywhere: names and links that lead outside, devices, and archives that grow without end are
refused.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from typing import IO, Any

from paddlecloud.local.workflow.executor import trees
from paddlecloud.local.workflow.executor.orders import ExecutorError
from paddlecloud.local.workflow.executor.trees import MOST_DEPTH

CHUNK = 1 << 20
MOST_MEMBERS = 1_000_000
RATIO = 200
"""Bytes that one byte of an archive may become, beyond the first `SMALL` ones."""
SMALL = 4 << 30
MOST_HEADER = 1 << 20
_HEADERS = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)


class Digest:
    """A file that is written to and counted: its SHA-256 and size."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._hash = hashlib.sha256()
        self.size = 0

    def write(self, data: Any) -> int:
        self._hash.update(data)
        self.size += len(data)
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()

    @property
    def text(self) -> str:
        return f"sha256:{self._hash.hexdigest()}"


def pack(source: str, target: str, strategy: str, level: int) -> tuple[str, int]:
    """One file made of a file or folder; gives its digest and size. `strategy` is tar, zip or none."""
    with open(target, "xb") as file:
        digest = Digest(file)
        if strategy == "tar":
            _pack_tar(source, digest, level)
        elif strategy == "zip":
            _pack_zip(source, digest)
        else:
            with open(source, "rb") as plain:
                shutil.copyfileobj(plain, digest, CHUNK)
    return digest.text, digest.size


def _pack_tar(source: str, target: Digest, level: int) -> None:
    """As Argo: the name of the file or folder is the first part of all names inside."""
    name = os.path.basename(os.path.abspath(source))
    if not level:
        with tarfile.open(fileobj=target, mode="w|", format=tarfile.PAX_FORMAT) as plain:  # type: ignore[call-overload]
            _add(plain, source, name)
        return
    gzipped: Any = gzip.GzipFile(filename="", mode="wb", fileobj=target, compresslevel=level, mtime=0)
    with gzipped, tarfile.open(fileobj=gzipped, mode="w|", format=tarfile.PAX_FORMAT) as archive:
        _add(archive, source, name)


def _add(archive: tarfile.TarFile, source: str, name: str) -> None:
    """Without `members`, of which tarfile keeps all; sockets and pipes are left out, as Argo does."""
    for path, inner in _walk(source, name):
        info = archive.gettarinfo(path, inner)
        if info is None or not (info.isfile() or info.isdir() or info.issym()):
            continue
        if info.isfile():
            with open(path, "rb") as file:
                archive.addfile(info, file)
        else:
            archive.addfile(info)
        _forget_members(archive)
        archive.inodes.clear()  # type: ignore[attr-defined]  # a second link to a file is packed as a separate file


def _forget_members(archive: Any) -> None:
    """tarfile keeps all members of an archive in memory."""
    archive.members.clear()


def _walk(source: str, name: str) -> Iterator[tuple[str, str]]:
    todo = [(source, name)]
    while todo:
        path, inner = todo.pop()
        yield path, inner
        if os.path.isdir(path) and (path == source or not os.path.islink(path)):
            todo += [(os.path.join(path, each), f"{inner}/{each}") for each in sorted(os.listdir(path), reverse=True)]


def _pack_zip(source: str, target: Digest) -> None:
    name = os.path.basename(os.path.abspath(source))
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:  # type: ignore[call-overload]
        for path, inner in _walk(source, name):
            mode = os.stat(path).st_mode
            if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
                archive.write(path, inner)


class _Budget:
    """What an archive may become, counted while it is unpacked: what it says of its own size may be wrong."""

    def __init__(self, archive: str, folder: str) -> None:
        self._members = 0
        self._kept = 0
        self._left = max(SMALL, os.path.getsize(archive) * RATIO)
        self._left = min(self._left, int(shutil.disk_usage(folder).free * 0.95))

    def member(self, name: str) -> None:
        self._members += 1
        if self._members > MOST_MEMBERS:
            raise ExecutorError(f"it has more than {MOST_MEMBERS:,} members")
        parts = name.split("/")
        if name.startswith("/") or ".." in parts or len(name) > 4096:
            raise ExecutorError(f"its member {name[:60]!r} leads outside of its folder")
        if len(parts) > MOST_DEPTH:
            raise ExecutorError(f"it has more than {MOST_DEPTH} folders inside one another: {name[:60]!r}…")

    def header(self, size: int, *, kept: bool) -> None:
        """One before a member, or, `kept`, one of the whole archive, of which tarfile keeps all."""
        self._kept += size if kept else 0
        if max(size, self._kept) > MOST_HEADER:
            raise ExecutorError(f"it has headers of more than {MOST_HEADER:,} bytes")

    def copy(self, source: IO[bytes], target: IO[bytes]) -> None:
        while piece := source.read(CHUNK):
            self._left -= len(piece)
            if self._left < 0:
                raise ExecutorError("it unpacks to more than it may, or than the disk has")
            target.write(piece)


def _counted_headers(budget: _Budget) -> type[tarfile.TarInfo]:
    """tarfile reads the long names and pax records before a member into memory, whatever their size."""

    class Counted(tarfile.TarInfo):
        @classmethod
        def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Any:
            header = super().frombuf(buf, encoding, errors)
            if header.type in _HEADERS:
                budget.header(header.size, kept=header.type == tarfile.XGLTYPE)
            return header

    return Counted


def unpack(archive: str, target: str, scratch: str, strategy: str) -> None:
    """Put an artifact where it belongs: unpacked if it is a tar or a zip, else, and with `none`, as it is.

    As Argo: an archive of one file or folder becomes that file or folder; of several, a folder with them.
    """
    kind = "none" if strategy == "none" else _kind(archive)
    if kind == "none":
        os.replace(archive, target) if _same_device(archive, target) else shutil.move(archive, target)
        return
    folder = os.path.join(scratch, "unpacked")
    os.mkdir(folder)
    try:
        budget = _Budget(archive, folder)
        if kind == "zip":
            _unpack_zip(archive, folder, budget)
        else:
            _unpack_tar(archive, folder, budget)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError, RuntimeError, ValueError) as why:
        raise ExecutorError(f"the archive is damaged: {why}") from None
    os.unlink(archive)
    found = os.listdir(folder)
    source = os.path.join(folder, found[0]) if len(found) == 1 else folder
    _check_links(source)
    shutil.move(source, target)


def _check_links(source: str) -> None:
    """In the tree as it will be: what a link leads to depends on other links, and on where the tree begins."""
    if os.path.islink(source):
        raise ExecutorError(f"its link {os.path.basename(source)[:60]!r} leads outside of its folder")
    if os.path.isdir(source):
        with trees.entered(source, ()) as root:
            for parts, mode in trees.walk(root):
                if stat.S_ISLNK(mode):
                    trees.leads_to(root, parts)


def _same_device(one: str, other: str) -> bool:
    return os.stat(one).st_dev == os.stat(os.path.dirname(other)).st_dev


def _kind(path: str) -> str:
    """Argo looks at the content as well: it untars what is a tar with gzip, unzips what is a zip."""
    with open(path, "rb") as file:
        head = file.read(512)
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return "zip"
    if head.startswith(b"\x1f\x8b"):
        try:
            with gzip.open(path, "rb") as packed:
                head = packed.read(512)
        except (OSError, EOFError):
            return "none"
    return "tar" if head[257:262] == b"ustar" else "none"


def _unpack_tar(archive: str, folder: str, budget: _Budget) -> None:
    modes: list[tuple[str, int]] = []
    with tarfile.open(archive, mode="r|*", tarinfo=_counted_headers(budget)) as members:
        while (item := members.next()) is not None:
            _forget_members(members)
            budget.member(item.name)
            place = _inside(folder, item.name)
            if item.isdir():
                if os.path.islink(place):
                    raise ExecutorError(f"its member {item.name[:60]!r} lies behind a link")
                os.makedirs(place, exist_ok=True)
                modes.append((place, stat.S_IMODE(item.mode) | 0o700))
                continue
            os.makedirs(os.path.dirname(place), exist_ok=True)
            if item.issym():
                os.symlink(item.linkname, place)
            elif item.islnk():
                budget.member(item.linkname)
                _copy_linked(_inside(folder, item.linkname), place, item, budget)
            elif item.isfile():
                content = members.extractfile(item)
                assert content is not None
                with open(place, "xb") as file:
                    budget.copy(content, file)
                os.chmod(place, stat.S_IMODE(item.mode) & 0o777)
            else:
                raise ExecutorError(f"its member {item.name[:60]!r} is a device or a pipe")
    for place, mode in reversed(modes):
        os.chmod(place, mode & 0o777)


def _copy_linked(source: str, place: str, item: tarfile.TarInfo, budget: _Budget) -> None:
    """A hard link becomes a separate file, and is counted as one."""
    if not stat.S_ISREG(os.lstat(source).st_mode):
        raise ExecutorError(f"its hard link {item.name[:60]!r} leads to no file")
    with open(source, "rb") as content, open(place, "xb") as file:
        budget.copy(content, file)
    os.chmod(place, stat.S_IMODE(item.mode) & 0o777)


def _unpack_zip(archive: str, folder: str, budget: _Budget) -> None:
    with zipfile.ZipFile(archive) as packed:
        for member in packed.infolist():
            budget.member(member.filename)
            place = _inside(folder, member.filename)
            if member.is_dir():
                os.makedirs(place, exist_ok=True)
                continue
            os.makedirs(os.path.dirname(place), exist_ok=True)
            with packed.open(member) as source, open(place, "xb") as file:
                budget.copy(source, file)
            if mode := (member.external_attr >> 16) & 0o777:
                os.chmod(place, mode)


def _inside(folder: str, name: str) -> str:
    """No part of the way is a link: one that an earlier member made would lead the next member outside."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    place = os.path.join(os.path.realpath(folder), *parts)
    if parts and os.path.realpath(os.path.dirname(place)) != os.path.dirname(place):
        raise ExecutorError(f"its member {name[:60]!r} lies behind a link")
    return place
