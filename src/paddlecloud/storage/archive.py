"""Archives on the web: fetched once, then read like a folder. Their members cannot reach beyond it."""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from paddlecloud.storage.errors import BadUri, Denied, Missing, StorageError, Unreachable
from paddlecloud.storage.sources import CHUNK, Entry, FolderSource
from paddlecloud.storage.uri import Location

TIMEOUT = 60.0


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


def fetch(url: str, target: Path) -> str:
    """Write what is behind an http(s) URL into a file; returns its sha256. Raises `StorageError`."""
    digest = hashlib.sha256()
    request = urllib.request.Request(url, headers={"User-Agent": "paddlecloud"})  # noqa: S310 - parsed as http(s)
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer, target.open("wb") as file:  # noqa: S310
            while piece := answer.read(CHUNK):
                digest.update(piece)
                file.write(piece)
    except urllib.error.HTTPError as error:
        kind: type[StorageError] = {401: Denied, 403: Denied, 404: Missing, 410: Missing}.get(error.code, Unreachable)
        raise kind(f"{url}: the server answered {error.code} {error.reason}") from error
    except urllib.error.URLError as error:
        raise Unreachable(f"{url}: {error.reason}; check the address and the network") from error
    except OSError as error:
        raise Unreachable(f"{url}: {error}; it broke off, or the disk is full") from error
    return digest.hexdigest()


def unpack(archive: Path, folder: Path, *, name: str) -> None:
    """Files and folders only: links, devices and members whose name leads outside are refused."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        if name.split("?")[0].endswith(".zip"):
            with zipfile.ZipFile(archive) as packed:
                for member in packed.infolist():
                    target = inside(folder, member.filename)
                    if member.is_dir():
                        target.mkdir(parents=True, exist_ok=True)
                    else:
                        target.parent.mkdir(parents=True, exist_ok=True)
                        with packed.open(member) as source, target.open("wb") as file:
                            shutil.copyfileobj(source, file, CHUNK)
        else:
            with tarfile.open(archive, "r:*") as packed_tar:
                for item in packed_tar:
                    target = inside(folder, item.name)
                    if item.isdir():
                        target.mkdir(parents=True, exist_ok=True)
                    elif item.isfile():
                        target.parent.mkdir(parents=True, exist_ok=True)
                        content = packed_tar.extractfile(item)
                        assert content is not None
                        with content, target.open("wb") as file:
                            shutil.copyfileobj(content, file, CHUNK)
                        os.utime(target, (item.mtime, item.mtime))
                    else:
                        raise BadUri(f"{name}: member {item.name!r} is a link or a device; only files are unpacked")
    except (tarfile.TarError, zipfile.BadZipFile, EOFError) as error:
        raise BadUri(f"{name} is not the archive its name promises: {error}") from error


def inside(folder: Path, name: str) -> Path:
    """Where a member or an object of that name belongs below a folder; `BadUri` if that would be elsewhere."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts or not parts:
        if not parts and not name.startswith("/"):
            return folder
        raise BadUri(f"the member {name!r} leads outside of its folder; it was not taken")
    return folder.joinpath(*parts)
