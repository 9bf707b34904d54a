"""What can be written to: a folder or an S3 bucket, by keys with slashes. One small interface for both of them.

An object is visible as a whole or not at all, whenever the writer is killed. `create` is conditional: of several
writers of one key exactly one succeeds, and no object is ever overwritten. On S3 that is `If-None-Match: *`, and
`check_conditions` refuses servers that ignore it. In a folder it is a hard link to a draft that is on the disk.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from paddlecloud.storage import linkless
from paddlecloud.storage.credentials import Credentials, from_environment
from paddlecloud.storage.endpoints import S3_SCHEMES, bucket_of, rewrites
from paddlecloud.storage.errors import BadUri, Denied, Missing, NoSpace, StorageError, Unreachable, Unsupported
from paddlecloud.storage.sources import CHUNK, BucketClient, Entry
from paddlecloud.storage.uri import parse

DRAFTS = "drafts"
"""Folder of what is still being written; the name is not free for objects."""
LINK_ATTEMPTS = 5
DEEPEST = 16
"""Folders inside one another, more than keys of any layout have."""


class Store(Protocol):
    def create(self, key: str, content: bytes) -> bool:
        """Write an object that must not exist yet; False if it does. Raises `StorageError`."""

    def upload(self, key: str, pieces: Iterable[bytes]) -> None:
        """Write an object of any size under a key that no other writer uses. What `pieces` raises leaves nothing."""

    def read(self, key: str, start: int = 0) -> Iterator[Any]:
        """Its bytes from `start` on, in pieces (anything with the buffer protocol). Raises `Missing`."""

    def size(self, key: str) -> int | None:
        """None if there is no such object."""

    def list(self, prefix: str) -> Iterator[Entry]:
        """The objects below a prefix that ends with a slash, with their whole keys, in no order."""

    def delete(self, key: str) -> None:
        """An object that is gone already is no failure."""

    def delete_drafts(self, seconds: float) -> int:
        """Remove what killed writers left, if it is older than this; the number of files."""


def open_store(
    address: str, credentials: Credentials | None = None, *, environment: Mapping[str, str] = os.environ
) -> Store:
    """The store at `file:///FOLDER`, `s3://BUCKET[/PREFIX]` or another store with the API of S3.

    Without `credentials` those of the environment are used, under the names that the store's own tools read.
    """
    location = parse(address)
    credentials = from_environment(location.scheme, environment) if credentials is None else credentials
    if location.scheme == "file":
        return FolderStore(Path(location.path))
    if location.scheme in S3_SCHEMES:
        return BucketStore(bucket_of(location, rewritten=rewrites(environment)), credentials, location)
    raise BadUri(f"{address}: stores are folders (file:///…) and buckets of S3 and its relatives (s3://BUCKET/PREFIX)")


def check_conditions(store: Store, key: str, content: bytes) -> None:
    """Make sure that the store has this object and honours conditions. Raises `Unsupported` if it overwrites."""
    if store.create(key, content) and store.create(key, content):
        raise Unsupported(
            "the server ignores If-None-Match and overwrites objects, so that of two writers of one name both would "
            "succeed: use a server that honours it, such as Amazon S3, MinIO or SeaweedFS"
        )


class FolderStore:
    """A folder of this machine. Writers are processes of one or several users that may write there.

    What one of them puts there leads no other outside: folders are entered without following links (`linkless`).
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def create(self, key: str, content: bytes) -> bool:
        with self._failures(key), self._draft((content,)) as (draft, drafts):
            return self._link(draft, drafts, key)

    def upload(self, key: str, pieces: Iterable[bytes]) -> None:
        with self._failures(key), self._draft(pieces) as (draft, drafts):
            self._link(draft, drafts, key)

    def read(self, key: str, start: int = 0) -> Iterator[Any]:
        with self._failures(key):
            with self._above(key) as (folder, name):
                descriptor = linkless.open_file(name, folder)
            with open(descriptor, "rb", buffering=0) as file:
                file.seek(start)
                while piece := file.read(CHUNK):
                    yield piece

    def size(self, key: str) -> int | None:
        try:
            with self._failures(key), self._above(key) as (folder, name):
                return os.stat(name, dir_fd=folder, follow_symlinks=False).st_size
        except Missing:
            return None

    def list(self, prefix: str) -> Iterator[Entry]:
        waiting = [prefix]
        while waiting:
            folder = waiting.pop()
            try:
                with self._failures(folder), self._above(folder) as (descriptor, _):
                    found = list(linkless.entries(descriptor))
            except Missing:
                continue
            if found and folder.count("/") > DEEPEST:
                raise Denied(f"file://{self._path(folder)}: too many folders inside one another; it is not of a store")
            for name, info in found:
                if stat.S_ISDIR(info.st_mode):
                    waiting.append(f"{folder}{name}/")
                else:
                    yield Entry(folder + name, info.st_size, info.st_mtime)

    def delete(self, key: str) -> None:
        with contextlib.suppress(Missing), self._failures(key), self._above(key) as (folder, name):
            os.unlink(name, dir_fd=folder)
        *above, inner, _ = key.split("/")
        if above:  # folders of the first level stay: writers of drafts rely on theirs
            with contextlib.suppress(OSError), linkless.entered(self._root, above) as folder:
                os.rmdir(inner, dir_fd=folder)  # fails if others are in it, or a writer has just put one there

    def delete_drafts(self, seconds: float) -> int:
        oldest = time.time() - seconds
        found = [entry for entry in self.list(f"{DRAFTS}/") if entry.mtime <= oldest]
        for entry in found:
            self.delete(entry.key)
        return len(found)

    def _path(self, key: str) -> str:
        return os.path.join(self._root, key)

    @contextlib.contextmanager
    def _above(self, key: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """The folder of a key, open, and the key's name in it."""
        *parts, name = key.split("/")
        with linkless.entered(self._root, parts, make=make) as folder:
            yield folder, name

    @contextlib.contextmanager
    def _draft(self, pieces: Iterable[bytes]) -> Iterator[tuple[str, int]]:
        """The name of a file with these bytes, which is on the disk, and its folder."""
        with self._above(f"{DRAFTS}/{secrets.token_hex(8)}", make=True) as (folder, name):
            new = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=folder)
            try:
                with open(new, "wb") as file:
                    for piece in pieces:
                        file.write(piece)
                    file.flush()
                    os.fsync(file.fileno())
                yield name, folder
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=folder)

    def _link(self, draft: str, drafts: int, key: str) -> bool:
        for _ in range(LINK_ATTEMPTS):
            try:
                with self._above(key, make=True) as (folder, name):
                    os.link(draft, name, src_dir_fd=drafts, dst_dir_fd=folder, follow_symlinks=False)
                    os.fsync(folder)
            except FileExistsError:
                return False
            except FileNotFoundError:
                continue  # `delete` found the folder empty and removed it
            return True
        raise Unreachable(f"file://{self._path(key)}: its folder is removed again and again by others; try again")

    def _failures(self, key: str) -> contextlib.AbstractContextManager[None]:
        return folder_failures(self._path(key))


@contextlib.contextmanager
def folder_failures(path: str) -> Iterator[None]:
    """Failures of the file system as `StorageError`s."""
    try:
        yield
    except OSError as error:
        raise _explained(f"file://{path}", error) from error


def _explained(shown: str, error: OSError) -> StorageError:
    why = error.strerror or str(error)
    if isinstance(error, linkless.LinkError):
        return Denied(f"{shown}: {why}: remove it")
    if isinstance(error, (FileNotFoundError, NotADirectoryError)):
        return Missing(f"{shown}: {why}")
    if isinstance(error, PermissionError):
        return Denied(f"{shown}: {why}; check who may write there, and that its file system has hard links")
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return NoSpace(f"{shown}: {why}; make room and try again, what is visible is complete")
    return Unreachable(f"{shown}: {why}")


class BucketStore(BucketClient):
    """Objects below a prefix of an S3 bucket."""

    def create(self, key: str, content: bytes) -> bool:
        try:
            self._obstore.put(self._store, self._prefix + key, content, mode="create", use_multipart=False)
        except self._obstore.exceptions.AlreadyExistsError:
            return False
        except Exception as error:
            raise self._explained(error) from None
        return True

    def upload(self, key: str, pieces: Iterable[bytes]) -> None:
        failed: list[Exception] = []
        try:
            self._obstore.put(self._store, self._prefix + key, _noted(pieces, failed))
        except Exception as error:
            raise (failed[0] if failed else self._explained(error)) from None

    def read(self, key: str, start: int = 0) -> Iterator[Any]:
        try:
            options = {"range": {"offset": start}} if start else None
            for piece in self._obstore.get(self._store, self._prefix + key, options=options).stream(CHUNK):
                yield memoryview(piece)
        except Exception as error:
            raise self._explained(error) from None

    def size(self, key: str) -> int | None:
        try:
            return int(self._obstore.head(self._store, self._prefix + key)["size"])
        except FileNotFoundError:
            return None
        except Exception as error:
            raise self._explained(error) from None

    def list(self, prefix: str) -> Iterator[Entry]:
        for entry in self._listed(self._prefix + prefix, ""):
            yield entry._replace(key=prefix + entry.key)

    def delete(self, key: str) -> None:
        try:
            self._obstore.delete(self._store, self._prefix + key)
        except FileNotFoundError:
            return
        except Exception as error:
            raise self._explained(error) from None

    def delete_drafts(self, seconds: float) -> int:
        """Uploads in parts that were never finished are removed by the bucket's own lifecycle rules."""
        return 0


def _noted(pieces: Iterable[bytes], failed: list[Exception]) -> Iterator[bytes]:
    """The client reports what an iterator raises as a failed request."""
    try:
        yield from pieces
    except Exception as error:
        failed.append(error)
        raise
