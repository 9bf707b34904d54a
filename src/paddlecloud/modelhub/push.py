"""A folder or a file as a new version: files first, the manifest last, by a conditional create.

A push that is killed leaves copies that no manifest names, which garbage collection removes later, and no version. A
copy that is stored already is used again, unless the garbage collector has condemned it. That is checked for all copies
right before the manifest is created; why this suffices is in docs/design/modelhub.md.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

from paddlecloud.modelhub import catalogue, layout, manifest
from paddlecloud.modelhub.catalogue import VersionKey
from paddlecloud.modelhub.errors import Damaged, Refused, VersionExists
from paddlecloud.modelhub.manifest import FORMAT, Facts, File, Manifest
from paddlecloud.modelhub.parallel import each
from paddlecloud.storage.sources import CHUNK, FolderSource
from paddlecloud.storage.stores import Store, check_conditions

TAKEN = 50
"""Pushes without a version that meet: how many numbers are tried."""
ROUNDS = 3
"""How often copies are looked for anew when they were condemned or removed while others were uploaded."""

Progress = Callable[[int], None]


class Pushed(NamedTuple):
    manifest: Manifest
    created: bool
    """False if the version existed with the same files."""
    uploaded: int
    """Bytes that the store did not have."""


Condemned = Collection[tuple[str, str]]
"""Digest and copy of what the garbage collector has marked."""


class Content(Protocol):
    """Files of a version to be, with their digests, wherever their bytes are."""

    @property
    def files(self) -> tuple[File, ...]: ...
    @property
    def digest(self) -> str: ...

    def copy_of(self, store: Store, file: File, condemned: Condemned, progress: Progress) -> tuple[str, int]:
        """A copy in the store that is not condemned, made if there is none; and how many bytes were uploaded."""

    def restore(self, store: Store, key: str, file: File, progress: Progress) -> None:
        """Write the bytes of a file again under the key that a manifest names."""


class Local(NamedTuple):
    """Files of this machine with their digests."""

    root: Path
    files: tuple[File, ...]

    @property
    def digest(self) -> str:
        return manifest.digest_of(self.files)

    def path(self, file: File) -> Path:
        return self.root / file.path

    def copy_of(self, store: Store, file: File, condemned: Condemned, progress: Progress) -> tuple[str, int]:
        if found := find_copy(store, file, condemned):
            progress(file.size)
            return found, 0
        copy = secrets.token_hex(8)
        _upload(store, layout.blob(file.sha256, copy), self.path(file), file, progress)
        return copy, file.size

    def restore(self, store: Store, key: str, file: File, progress: Progress) -> None:
        _upload(store, key, self.path(file), file, progress)


def read_local(path: Path, progress: Progress = lambda _: None) -> Local:
    """The files of a folder, or a single file. Links are followed. Raises `Refused`."""
    if not path.exists():
        raise Refused(f"{path} does not exist")
    if not path.is_dir() and not path.is_file():
        raise Refused(f"{path} is neither a file nor a folder")
    root = path if path.is_dir() else path.parent
    paths = _files_below(path) if path.is_dir() else [path.name]
    manifest.check_paths(paths)
    return Local(root, tuple(each(lambda name: _digested(root, name, progress), paths)))


def _files_below(folder: Path) -> list[str]:
    """Links to folders can make a few of them very many, so the listing itself ends."""
    paths: list[str] = []
    try:
        for count, entry in enumerate(FolderSource(str(folder)).entries()):
            if count > 2 * manifest.MOST_FILES:
                raise Refused(f"{folder} has more than {2 * manifest.MOST_FILES:,} files and folders, links followed")
            if not entry.is_folder:
                paths.append(entry.key)
    except RecursionError as error:
        raise Refused(f"{folder} has too many folders inside one another") from error
    return paths


def push(store: Store, which: VersionKey, local: Content, facts: Facts, progress: Progress = lambda _: None) -> Pushed:
    """Raises `VersionExists` if the version has other files, and whatever the store raises."""
    check_conditions(store, layout.FORMAT_KEY, layout.FORMAT_CONTENT)
    if (found := catalogue.find(store, which)) is not None:
        return _same(store, found, local, progress)
    files, uploaded = _stored(store, local, progress)
    wanted = Manifest(
        format=FORMAT,
        namespace=which.namespace,
        model=which.model,
        version=which.version,
        digest=local.digest,
        size=sum(file.size for file in files),
        files=files,
        framework=facts.framework or manifest.framework_of(file.path for file in files),
        signature=facts.signature,
        metrics=dict(facts.metrics),
        origin=dict(facts.origin),
        description=facts.description,
        created_by=facts.created_by,
        created_at=facts.created_at,
    )
    if store.create(which.key, manifest.encode(wanted)):
        return Pushed(wanted, created=True, uploaded=uploaded)
    # Another push was first, or this one was: a store may repeat a request whose answer was lost.
    return _same(store, catalogue.get(store, which), local, progress)._replace(uploaded=uploaded)


def push_next(
    store: Store,
    namespace: str,
    model: str,
    local: Content,
    facts: Facts,
    registered: Collection[str],
    progress: Progress = lambda _: None,
) -> Pushed:
    """As the version after the highest number, of the store and of those that are registered.

    A push that was killed after it stored the version, and before it registered it, is finished under its number.
    """
    for _ in range(TAKEN):
        stored = {which.version for which in catalogue.versions(store, namespace, model)}
        number = next_number({*stored, *registered})
        last = catalogue.version_key(namespace, model, str(int(number) - 1)) if number != "1" else None
        if last is not None and last.version in stored - set(registered):
            found = catalogue.find(store, last)
            if found is not None and found.digest == local.digest:
                return push(store, last, local, facts, progress)
        try:
            return push(store, catalogue.version_key(namespace, model, number), local, facts, progress)
        except VersionExists:
            continue  # another push took the number
    raise VersionExists(f"others push versions of {model} all the time; name the version, or try again")


def next_number(taken: Iterable[str]) -> str:
    """The version after the highest number; names that are no numbers do not count."""
    return str(max((int(name) for name in taken if name.isdecimal() and len(name) <= 18), default=0) + 1)


def _same(store: Store, found: Manifest, local: Content, progress: Progress) -> Pushed:
    """Of a version that exists, only what the store has lost is uploaded again."""
    if found.digest != local.digest:
        raise VersionExists(
            f"{found.model}:{found.version} exists with other files ({found.digest[:19]}…, by {found.created_by} at "
            f"{found.created_at}); versions never change: push it as another version"
        )
    uploaded = 0
    for file in found.files:
        key = layout.blob(file.sha256, file.blob)
        if store.size(key) != file.size:
            store.delete(key)  # a part of it is no use
            local.restore(store, key, file, progress)
            uploaded += file.size
    return Pushed(found, created=False, uploaded=uploaded)


def _stored(store: Store, local: Content, progress: Progress) -> tuple[tuple[File, ...], int]:
    """The files with a copy of each in the store, none of which was condemned a moment ago; and bytes uploaded."""
    copies: dict[str, str] = {}
    uploaded = 0
    wanted = {file.sha256: file for file in local.files}
    for _ in range(ROUNDS):
        find = partial(_copy_of, store, local, condemned_copies(store), progress)
        for file, copy, size in each(find, [file for sha256, file in wanted.items() if sha256 not in copies]):
            copies[file.sha256] = copy
            uploaded += size
        # Marks first, then copies: a copy without a mark that is there now stays for the whole grace time.
        condemned = condemned_copies(store)
        for sha256, copy in list(copies.items()):
            if (sha256, copy) in condemned or store.size(layout.blob(sha256, copy)) != wanted[sha256].size:
                del copies[sha256]
        if len(copies) == len(wanted):
            files = tuple(File(file.path, file.sha256, file.size, copies[file.sha256]) for file in local.files)
            return files, uploaded
    raise Damaged("the store loses files while they are uploaded; check it, and that no other program cleans it")


def _copy_of(
    store: Store, local: Content, condemned: Condemned, progress: Progress, file: File
) -> tuple[File, str, int]:
    return file, *local.copy_of(store, file, condemned, progress)


def find_copy(store: Store, file: File, condemned: Condemned, usable: Callable[[str], bool] = lambda copy: True) -> str:
    """A complete copy that is not condemned; empty if there is none."""
    for entry in store.list(layout.copies(file.sha256)):
        place = layout.place(entry.key)
        if place not in condemned and entry.size == file.size and usable(place[1]):
            return place[1]
    return ""


def _upload(store: Store, key: str, path: Path, file: File, progress: Progress) -> None:
    digest = hashlib.sha256()

    def pieces() -> Iterator[bytes]:
        for piece in _read(path):
            digest.update(piece)
            progress(len(piece))
            yield piece
        if digest.hexdigest() != file.sha256:  # before the copy becomes visible
            raise Refused(f"{path} was changed while it was pushed; push it when nothing writes it any more")

    store.upload(key, pieces())


def _digested(root: Path, name: str, progress: Progress) -> File:
    digest, size = hashlib.sha256(), 0
    for piece in _read(root / name):
        digest.update(piece)
        size += len(piece)
        progress(len(piece))
    return File(name, digest.hexdigest(), size)


def _read(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb", buffering=0) as file:
            while piece := file.read(CHUNK):
                yield piece
    except OSError as error:
        raise Refused(f"{path} cannot be read: {error.strerror}") from error


def condemned_copies(store: Store) -> set[tuple[str, str]]:
    return {layout.place(entry.key) for entry in store.list(layout.CONDEMNED)}
