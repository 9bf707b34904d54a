"""Archives on the web: fetched once, then read like a folder. Their members cannot reach beyond it."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import hashlib
import lzma
import os
import shutil
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from paddlecloud.kube.wording import cause_of
from paddlecloud.storage.errors import BadUri, Denied, Missing, StorageError, Unreachable
from paddlecloud.storage.sources import CHUNK, Entry, FolderSource
from paddlecloud.storage.uri import Location

TIMEOUT = 60.0
MOST_MEMBERS = 4_000_000
LONGEST_NAME, DEEPEST = 1024, 64
RATIO = 100
"""Bytes that one byte of an archive may become, beyond the first `SMALL` ones. Texts become ten or twenty, zeros a
thousand."""
SMALL = 1 << 30
FREE_SHARE = 0.9
LONGEST_READ = 16 << 20

_COMPRESSIONS: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}
_DAMAGED = (
    tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError, ValueError,
    RuntimeError,  # an encrypted member, or a compression that zipfile does not know
)  # fmt: skip


class ArchiveSource:
    """Fetched and unpacked into a temporary folder when first listed; gone with this object."""

    def __init__(self, location: Location) -> None:
        self._location = location
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._files: FolderSource | None = None

    def entries(self, after: str = "") -> Iterator[Entry]:
        if self._files is None:
            self._folder = tempfile.TemporaryDirectory(prefix="paddlecloud-archive-")
            root = Path(self._folder.name)
            archive = root / "archive"
            fetch(str(self._location), archive)
            unpack(archive, root / "files", name=self._location.path)
            archive.unlink()
            self._files = FolderSource(str(root / "files"))
        yield from self._files.entries(after)

    def read(self, entry: Entry) -> Iterator[Any]:
        assert self._files is not None, "entries come first"
        return self._files.read(entry)

    def delete(self, entry: Entry) -> None:
        raise BadUri("delete-src: what is in an archive on the web cannot be deleted there")


class _Redirects(urllib.request.HTTPRedirectHandler):
    """A redirect must not take encryption away, nor lead to another kind of server (urllib would follow to ftp)."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        scheme = newurl.partition(":")[0].lower()
        if scheme != "https" and (scheme, req.type) != ("http", "http"):
            raise Denied(f"{req.full_url} redirects to {scheme}: not followed; only https may lead on from https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def open_web(url: str, token: str = "") -> Any:
    """The answer to a GET of an http(s) URL. A token is sent to this server alone, not to one it redirects to."""
    request = urllib.request.Request(url, headers={"User-Agent": "paddlecloud"})  # noqa: S310 - parsed as http(s)
    if token:
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    return urllib.request.build_opener(_Redirects).open(request, timeout=TIMEOUT)


def fetch(url: str, target: Path, token: str = "") -> str:
    """Write what is behind an http(s) URL into a file; returns its sha256. Raises `StorageError`."""
    digest = hashlib.sha256()
    try:
        with open_web(url, token) as answer, target.open("wb") as file:
            while piece := answer.read(CHUNK):
                digest.update(piece)
                file.write(piece)
    except urllib.error.HTTPError as error:
        kind: type[StorageError] = {401: Denied, 403: Denied, 404: Missing, 410: Missing}.get(error.code, Unreachable)
        raise kind(f"{url}: the server answered {error.code} {error.reason}") from error
    except urllib.error.URLError as error:
        raise Unreachable(f"{url}: {error.reason}; check the address and the network") from error
    except OSError as error:
        raise Unreachable(f"{url}: {cause_of(error)}; it broke off, or the disk is full") from error
    return digest.hexdigest()


class Budget:
    """What an archive may become, counted while it is unpacked: what it says of its own size may be wrong."""

    def __init__(self, archive: Path, folder: Path, *, name: str) -> None:
        self._name = name
        self._files = 0
        self._bytes = 0
        packed = archive.stat().st_size
        free = int(shutil.disk_usage(folder).free * FREE_SHARE)
        self._most_bytes = min(max(SMALL, packed * RATIO), free)
        self._why = "the disk has no more" if free <= max(SMALL, packed * RATIO) else f"{RATIO} times what was fetched"

    def member(self, member: str) -> None:
        self._files += 1
        if self._files > MOST_MEMBERS:
            raise BadUri(f"{self._name} has more than {MOST_MEMBERS} members; nothing of it is taken")
        if len(member) > LONGEST_NAME or member.count("/") > DEEPEST:
            text = f"a member's name is longer than {LONGEST_NAME} characters or {DEEPEST} folders deep"
            raise BadUri(f"{self._name}: {text}; nothing of it is taken")

    def copy(self, source: Any, target: Any) -> None:
        while piece := source.read(CHUNK):
            self._bytes += len(piece)
            if self._bytes > self._most_bytes:
                limit = f"{self._most_bytes >> 20} MiB ({self._why})"
                raise BadUri(f"{self._name} unpacks to more than {limit}; nothing of it is taken. Pack it in parts")
            target.write(piece)


class _Unpacked:
    """A decompressed tar. tarfile reads long names and pax headers whole, however long they claim to be."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.seek, self.tell = stream.seek, stream.tell

    def read(self, size: int) -> bytes:
        if size > LONGEST_READ:
            raise tarfile.ReadError(f"a header of {size} bytes")
        return bytes(self._stream.read(size))


def unpack(archive: Path, folder: Path, *, name: str) -> None:
    """Files and folders only, within a budget: links, devices and members whose name leads outside are refused."""
    folder.mkdir(parents=True, exist_ok=True)
    budget = Budget(archive, folder, name=name)
    try:
        if name.split("?")[0].endswith(".zip"):
            _unpack_zip(archive, folder, budget)
        else:
            _unpack_tar(archive, folder, budget, name)
    except _DAMAGED as error:
        raise BadUri(f"{name} is not the archive its name promises: {error}") from error
    except OSError as error:
        raise BadUri(f"{name} cannot be unpacked: {cause_of(error)}") from error


def _unpack_zip(archive: Path, folder: Path, budget: Budget) -> None:
    with zipfile.ZipFile(archive) as packed:
        for member in packed.infolist():
            budget.member(member.filename)
            target = inside(folder, member.filename)
            if member.is_dir():
                target.mkdir(parents=True, exist_ok=True)
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                with packed.open(member) as source, target.open("wb") as file:
                    budget.copy(source, file)
                with contextlib.suppress(OverflowError, ValueError):  # a time that no clock has shown
                    modified = datetime(*member.date_time, tzinfo=timezone.utc).timestamp()
                    os.utime(target, (modified, modified))


def _unpack_tar(archive: Path, folder: Path, budget: Budget, name: str) -> None:
    with _decompressed(archive) as stream, tarfile.open(fileobj=_Unpacked(stream), mode="r:") as packed:  # type: ignore[call-overload]
        while (item := packed.next()) is not None:
            packed.members.clear()  # it would keep them all
            budget.member(item.name)
            target = inside(folder, item.name)
            if item.isdir():
                target.mkdir(parents=True, exist_ok=True)
            elif item.isfile():
                target.parent.mkdir(parents=True, exist_ok=True)
                content = packed.extractfile(item)
                assert content is not None
                with content, target.open("wb") as file:
                    budget.copy(content, file)
                with contextlib.suppress(OverflowError):  # a time that no clock has shown
                    os.utime(target, (item.mtime, item.mtime))
            else:
                raise BadUri(f"{name}: member {item.name!r} is a link or a device; only files are unpacked")


def _decompressed(archive: Path) -> Any:
    with archive.open("rb") as file:
        magic = file.read(6)
    for beginning, opener in _COMPRESSIONS.items():
        if magic.startswith(beginning):
            return opener(archive, "rb")
    return archive.open("rb")


def inside(folder: Path, name: str) -> Path:
    """Where a member or an object of that name belongs below a folder; `BadUri` if that would be elsewhere."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts or not parts:
        if not parts and not name.startswith("/"):
            return folder
        raise BadUri(f"the member {name!r} leads outside of its folder; it was not taken")
    return folder.joinpath(*parts)
