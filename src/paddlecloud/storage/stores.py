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
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from paddlecloud.storage.credentials import Credentials, from_environment
from paddlecloud.storage.endpoints import S3_SCHEMES, bucket_of, rewrites
from paddlecloud.storage.errors import BadUri, Denied, Missing, NoSpace, StorageError, Unreachable, Unsupported
from paddlecloud.storage.sources import CHUNK, BucketClient, Entry
from paddlecloud.storage.uri import parse

DRAFTS = "drafts"
"""Folder of what is still being written; the name is not free for objects."""
LINK_ATTEMPTS = 5


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
    """A folder of this machine. Writers are processes of one or several users that may write there."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def create(self, key: str, content: bytes) -> bool:
        with self._failures(key), self._draft((content,)) as draft:
            return self._link(draft, self._path(key))

    def upload(self, key: str, pieces: Iterable[bytes]) -> None:
        with self._failures(key), self._draft(pieces) as draft:
            self._link(draft, self._path(key))

    def read(self, key: str, start: int = 0) -> Iterator[Any]:
        with self._failures(key), open(self._path(key), "rb", buffering=0) as file:
            file.seek(start)
            while piece := file.read(CHUNK):
                yield piece

    def size(self, key: str) -> int | None:
        try:
            with self._failures(key):
                return os.stat(self._path(key)).st_size
        except Missing:
            return None

    def list(self, prefix: str) -> Iterator[Entry]:
        waiting = [prefix]
        while waiting:
            folder = waiting.pop()
            try:
                with self._failures(folder), os.scandir(self._path(folder)) as listing:
                    items = list(listing)
            except Missing:
                continue
            for item in items:
                if item.is_dir(follow_symlinks=False):
                    waiting.append(f"{folder}{item.name}/")
                elif item.is_file(follow_symlinks=False):
                    with contextlib.suppress(FileNotFoundError):  # removed while we look
                        info = item.stat(follow_symlinks=False)
                        yield Entry(folder + item.name, info.st_size, info.st_mtime)

    def delete(self, key: str) -> None:
        path = self._path(key)
        with contextlib.suppress(Missing), self._failures(key):
            os.unlink(path)
        with contextlib.suppress(OSError):  # others are in it, or a writer has just put one there
            os.rmdir(os.path.dirname(path))

    def delete_drafts(self, seconds: float) -> int:
        oldest = time.time() - seconds
        found = [entry for entry in self.list(f"{DRAFTS}/") if entry.mtime <= oldest]
        for entry in found:
            self.delete(entry.key)
        return len(found)

    def _path(self, key: str) -> str:
        return os.path.join(self._root, key)

    @contextlib.contextmanager
    def _draft(self, pieces: Iterable[bytes]) -> Iterator[str]:
        folder = self._path(DRAFTS)
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, secrets.token_hex(8))
        try:
            with open(path, "xb") as file:
                for piece in pieces:
                    file.write(piece)
                file.flush()
                os.fsync(file.fileno())
            yield path
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)

    @staticmethod
    def _link(draft: str, target: str) -> bool:
        parent = os.path.dirname(target)
        for _ in range(LINK_ATTEMPTS):
            os.makedirs(parent, exist_ok=True)
            try:
                os.link(draft, target)
            except FileExistsError:
                return False
            except FileNotFoundError:
                continue  # `delete` found the folder empty and removed it
            descriptor = os.open(parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            return True
        raise Unreachable(f"file://{target}: its folder is removed again and again by others; try again")

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
