"""Files that the hub's server receives: parts that can be continued, then copies of which the namespace is known.

A part becomes an object of the store when it is complete, so an upload continues after a kill of the client, of the
server or of both, and on another replica. The last part puts the copy together; its digest is computed meanwhile, and
a copy with another one never becomes visible. A file that comes in one piece is written once, with no parts.

The name of a copy ends with a mark of the namespace that uploaded it. Only those copies are used for its versions: a
tenant who knows the digest of a file of another tenant cannot get the file by naming it. Where files are equal in two
namespaces they are stored twice.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

from paddlecloud.modelhub import layout, manifest
from paddlecloud.modelhub.errors import HubError, Refused
from paddlecloud.modelhub.manifest import File
from paddlecloud.modelhub.parallel import each, in_another_thread
from paddlecloud.modelhub.push import Condemned, Progress, condemned_copies, find_copy
from paddlecloud.storage.stores import Store

LARGEST_PART = 64 << 20
SMALLEST_PART = 1 << 20
"""Of those before the last: each part is an object of the store, and a request to read it."""
LARGEST_FILE = 1 << 40


class MissingFiles(HubError):
    """The namespace has not uploaded these files yet; then the same request succeeds."""

    reason: ClassVar[str] = "MissingFiles"

    def __init__(self, digests: Iterable[str]) -> None:
        self.digests = sorted(digests)
        super().__init__(f"{len(self.digests)} files have to be uploaded first")


class WrongOffset(HubError):
    """The part does not continue what is there."""

    reason: ClassVar[str] = "WrongOffset"

    def __init__(self, offset: int) -> None:
        self.offset = offset
        super().__init__(f"the upload continues at byte {offset}")


class Upload:
    """One file of one namespace on its way into the store."""

    def __init__(self, store: Store, namespace: str, sha256: str) -> None:
        self._store, self._namespace, self._sha256 = store, namespace, sha256

    def finished(self, size: int | None = None) -> int | None:
        """The size of a complete copy that a version may name; None if there is none."""
        condemned, usable = condemned_copies(self._store), owned_by(self._namespace)
        for entry in self._store.list(layout.copies(self._sha256)):
            place = layout.place(entry.key)
            if place not in condemned and usable(place[1]) and size in (None, entry.size):
                return entry.size
        return None

    def offset(self) -> int:
        """Bytes that are there, from the beginning without a gap."""
        return sum(size for _, size in self._parts())

    def whole(self, size: int, pieces: Iterable[bytes]) -> None:
        """The file in one piece."""
        self._finish(size, pieces)

    def part(self, start: int, size: int, total: int, pieces: Iterable[bytes]) -> bool:
        """One part; True if it was the last and the file is complete. Raises `WrongOffset`.

        An empty one at the end puts the file together, where a kill came between the last part and that.
        """
        if start != (offset := self.offset()):
            raise WrongOffset(offset)
        key = f"{layout.parts(self._namespace, self._sha256)}{start:020}"
        if size:
            self._store.upload(key, _of_size(pieces, size))
        if start + size < total:
            return False
        try:
            self._finish(total, in_another_thread(self._joined()))
        except Refused:
            self.discard()  # what was sent is another file; the next attempt begins anew
            raise
        self.discard()
        return True

    def discard(self) -> None:
        for entry in list(self._store.list(layout.parts(self._namespace, self._sha256))):
            self._store.delete(entry.key)

    def _parts(self) -> Iterator[tuple[str, int]]:
        listed = self._store.list(layout.parts(self._namespace, self._sha256))
        known = {int(entry.key.rpartition("/")[2]): entry for entry in listed}
        offset = 0
        while (entry := known.get(offset)) is not None and entry.size:
            yield entry.key, entry.size
            offset += entry.size

    def _joined(self) -> Iterator[Any]:
        for key, _ in self._parts():
            yield from self._store.read(key)

    def _finish(self, size: int, pieces: Iterable[Any]) -> None:
        copy = new_copy(self._namespace)
        self._store.upload(layout.blob(self._sha256, copy), self._checked(_of_size(pieces, size)))

    def _checked(self, pieces: Iterable[Any]) -> Iterator[Any]:
        digest = hashlib.sha256()
        for piece in pieces:
            digest.update(piece)
            yield piece
        if digest.hexdigest() != self._sha256:  # before the copy becomes visible
            raise Refused("what was sent has another digest than the address says; send the file again from its start")


class Received:
    """The files that a client names for a version: `push.Content` whose bytes a namespace has uploaded."""

    def __init__(self, namespace: str, files: tuple[File, ...]) -> None:
        manifest.check_paths([file.path for file in files])
        for file in files:
            if not manifest.is_sha256(file.sha256) or not 0 <= file.size <= LARGEST_FILE:
                raise Refused(f"{file.path} has no valid digest or size")
        self.files = files
        self.digest = manifest.digest_of(files)
        self._usable = owned_by(namespace)

    def missing(self, store: Store) -> list[str]:
        """The digests of all files that have to be uploaded."""
        condemned = condemned_copies(store)
        wanted = {file.sha256: file for file in self.files}
        copies = each(lambda file: find_copy(store, file, condemned, self._usable), wanted.values())
        return [sha256 for sha256, copy in zip(wanted, copies, strict=True) if not copy]

    def copy_of(self, store: Store, file: File, condemned: Condemned, progress: Progress) -> tuple[str, int]:
        copy = find_copy(store, file, condemned, self._usable)
        if not copy:
            raise MissingFiles([file.sha256])
        return copy, 0

    def restore(self, store: Store, key: str, file: File, progress: Progress) -> None:
        """From the copy that the namespace has uploaded once more."""
        copy, _ = self.copy_of(store, file, condemned_copies(store), progress)
        store.upload(key, in_another_thread(store.read(layout.blob(file.sha256, copy))))


def new_copy(namespace: str) -> str:
    return secrets.token_hex(8) + _mark(namespace)


def owned_by(namespace: str) -> Callable[[str], bool]:
    mark = _mark(namespace)
    return lambda copy: copy.endswith(mark) and len(copy) > len(mark)


def _mark(namespace: str) -> str:
    """Of fixed length, and of characters that names of copies have."""
    return "n" + hashlib.sha256(namespace.encode()).hexdigest()[:24]


def _of_size(pieces: Iterable[Any], size: int) -> Iterator[Any]:
    count = 0
    for piece in pieces:
        count += len(piece)
        if count > size:
            break
        yield piece
    if count != size:
        raise Refused(f"the body has {'more' if count > size else 'fewer'} bytes than the {size} it says")
