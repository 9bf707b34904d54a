"""Versions in a folder that all replicas on a node share: fetched once, verified by each that starts.

    sha256-HEX/files/…         the version; renamed to this name when every digest is right (`pull_by`)
    sha256-HEX/manifest.json   its manifest, by which the next replica verifies it without the hub
    locks/HEX.fetch            held by the one that fetches or verifies: others wait, and find it done
    locks/HEX.use              held, shared, by each process that serves the version

Who writes here may write anything: tenants run their own code in such pods. So nothing that lies here is believed
before its digest is right; what is not right is set aside and fetched again. A version that nobody holds and nobody
began to use for a week is removed by the next that fetches something. Locks end with their process and are never
removed: a lock that is taken while its file is removed would lock nothing.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from paddlecloud.modelhub import manifest
from paddlecloud.modelhub.errors import Damaged, Refused
from paddlecloud.modelhub.manifest import File, Manifest
from paddlecloud.modelhub.pull import pull_by
from paddlecloud.storage.stores import folder_failures

UNUSED_SECONDS = 7 * 24 * 3600.0
FETCH, USE = ".fetch", ".use"
_PREFIX = "sha256-"


class VersionSource(Protocol):
    """Where a version comes from; `granted_version.GrantedVersion`."""

    def manifest(self) -> Manifest: ...

    def read(self, file: File, start: int = 0) -> Iterator[Any]: ...


class Held(NamedTuple):
    """A version that stays on the node until the process ends, or `release` is called."""

    folder: Path
    fetched: int
    """Bytes that came from the hub; 0 where another replica fetched it before."""
    descriptor: int

    def release(self) -> None:
        os.close(self.descriptor)


def hold(root: Path, digest: str, source: VersionSource) -> Held:
    """The files of a version. Raises what `pull` and the source raise."""
    name = digest.removeprefix("sha256:")
    place = root / f"{_PREFIX}{name}"
    with folder_failures(str(root)):
        (root / "locks").mkdir(parents=True, exist_ok=True)
        descriptor = _locked(root, name + USE, fcntl.LOCK_SH)
        try:
            os.utime(root / "locks" / (name + USE))
            with _alone(root, name):
                fetched = _complete(place, digest, source)
            if fetched:
                _remove_unused(root)
        except BaseException:
            os.close(descriptor)
            raise
    return Held(place / "files", fetched, descriptor)


def _complete(place: Path, digest: str, source: VersionSource) -> int:
    found = _known(place, digest)
    fresh = found is None
    if found is None:
        found = source.manifest()
        place.mkdir(parents=True, exist_ok=True)
    try:
        fetched = _fetched(place, found, source)
    except Refused:  # what lies there is something else
        aside = Path(tempfile.mkdtemp(prefix="damaged-", dir=place))
        for part in (*place.glob(".files.*"), *place.glob("files")):
            os.rename(part, aside / part.name)  # processes that have its files open go on
        shutil.rmtree(aside, ignore_errors=True)
        fetched = _fetched(place, found, source)
    if fresh:
        draft = place / ".manifest.json"
        draft.write_bytes(manifest.encode(found))
        os.rename(draft, place / "manifest.json")
    return fetched


def _fetched(place: Path, found: Manifest, source: VersionSource) -> int:
    continued = any(place.glob(".files.*"))
    done = pull_by(source.read, found, place / "files")
    if continued:  # `pull_by` believes what the one before had finished, and verifies what is whole
        pull_by(source.read, found, place / "files")
    return done.fetched


def _known(place: Path, digest: str) -> Manifest | None:
    """The manifest that lies on the node, if it is that of the digest."""
    try:
        content = (place / "manifest.json").read_bytes()
        found = manifest.decode(content, "the manifest on the node", stored=False)
    except (OSError, Damaged):
        return None
    return found if found.digest == digest else None


def _remove_unused(root: Path) -> None:
    oldest = time.time() - UNUSED_SECONDS
    for place in root.glob(f"{_PREFIX}*"):
        name = place.name.removeprefix(_PREFIX)
        lock = root / "locks" / (name + USE)
        if lock.exists() and lock.stat().st_mtime > oldest:
            continue
        with contextlib.suppress(BlockingIOError):  # a process serves it
            descriptor = _locked(root, name + USE, fcntl.LOCK_EX | fcntl.LOCK_NB)
            try:
                shutil.rmtree(place, ignore_errors=True)
            finally:
                os.close(descriptor)


@contextlib.contextmanager
def _alone(root: Path, name: str) -> Iterator[None]:
    descriptor = _locked(root, name + FETCH, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(descriptor)


def _locked(root: Path, name: str, how: int) -> int:
    descriptor = os.open(root / "locks" / name, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(descriptor, how)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
