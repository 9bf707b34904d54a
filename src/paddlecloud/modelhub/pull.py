"""A version into a folder: whole and verified, or not there at all.

Files are written into a folder beside the target, from which they are renamed when every digest is right. A pull that
was killed leaves that folder; the next one continues in it, at the byte where the last one stopped. What is in it is
believed, so it is the user's own and closed to others, also in a folder such as /tmp to which everybody may write.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from paddlecloud.modelhub import layout
from paddlecloud.modelhub.errors import Damaged, Refused
from paddlecloud.modelhub.manifest import File, Manifest
from paddlecloud.modelhub.parallel import each
from paddlecloud.modelhub.push import Progress, read_local
from paddlecloud.storage.archive import inside
from paddlecloud.storage.errors import Missing
from paddlecloud.storage.sources import CHUNK
from paddlecloud.storage.stores import Store, folder_failures

Reader = Callable[[File, int], Iterator[Any]]
"""The bytes of a file from a place on, in pieces. Raises `Missing`."""


class Pulled(NamedTuple):
    folder: Path
    fetched: int
    """Bytes that came from the store in this pull; fewer than the version has where an earlier one was continued."""


def pull(store: Store, manifest: Manifest, target: Path, progress: Progress = lambda _: None) -> Pulled:
    """Raises `Damaged` if the store has other bytes, `Refused` if the target holds something else."""
    return pull_by(partial(read_stored, store), manifest, target, progress)


def read_stored(store: Store, file: File, start: int = 0) -> Iterator[Any]:
    return store.read(layout.blob(file.sha256, file.blob), start)


def pull_by(read: Reader, manifest: Manifest, target: Path, progress: Progress = lambda _: None) -> Pulled:
    """The same where the bytes come from elsewhere, as from the hub's server."""
    if os.path.lexists(target):
        return _as_it_is(manifest, target)
    draft = target.with_name(f".{target.name}.{manifest.digest.removeprefix('sha256:')[:16]}.pull")
    with folder_failures(str(target)):
        target.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            draft.mkdir(mode=0o700)
        with _alone(draft):
            if os.path.lexists(target):  # another pull has finished it while this one waited
                found, fetched = _as_it_is(manifest, target)
            else:
                found, fetched = target, _fetch_all(read, manifest, draft, progress)
                os.rename(draft / "files", target)
            shutil.rmtree(draft, ignore_errors=True)
    return Pulled(found, fetched)


def _as_it_is(manifest: Manifest, target: Path) -> Pulled:
    if target.is_dir() and any(target.iterdir()) and read_local(target).digest == manifest.digest:
        return Pulled(target, 0)
    raise Refused(
        f"{target} exists and is not {manifest.model}:{manifest.version}; nothing is overwritten: name another folder, "
        "or remove it"
    )


@contextlib.contextmanager
def _alone(draft: Path) -> Iterator[None]:
    """Two pulls of one version to one place: the second waits, and then finds the target."""
    descriptor = os.open(draft, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        _check_own(draft, os.fstat(descriptor))
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _check_own(draft: Path, info: os.stat_result) -> None:
    """Somebody else who made the folder first could have links or other bytes in it."""
    if info.st_uid != os.geteuid() or info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise Refused(
            f"{draft}, where an unfinished pull is continued, is of another user or open to others: remove it, or "
            "name a folder in a place where only you may write"
        )


def _fetch_all(read: Reader, manifest: Manifest, draft: Path, progress: Progress) -> int:
    for name in ("files", "parts"):
        (draft / name).mkdir(parents=True, exist_ok=True)

    def fetch(index: int) -> int:
        file = manifest.files[index]
        target = inside(draft / "files", file.path)
        if target.exists():  # it was renamed when its digest was right
            progress(file.size)
            return 0
        try:
            count = _fetch(read, file, draft / "parts" / str(index), progress)
        except Missing as error:
            shown = f"{manifest.model}:{manifest.version}"
            raise Damaged(
                f"the store has lost {file.path} of {shown}: push the same files as {shown} again, which restores it"
            ) from error
        target.parent.mkdir(parents=True, exist_ok=True)
        os.rename(draft / "parts" / str(index), target)
        return count

    return sum(each(fetch, range(len(manifest.files))))


def _fetch(read: Reader, file: File, part: Path, progress: Progress) -> int:
    """Into `part`, which may have the beginning; with a wrong digest in the end, once more from the start."""
    fetched = 0
    with part.open("a+b") as output:
        for start in (_beginning(part, file), 0):
            output.truncate(start)
            output.seek(0)
            digest = hashlib.sha256()
            while piece := output.read(CHUNK):
                digest.update(piece)
            progress(start)
            if start < file.size:
                fetched += _append(read, file, start, output, digest, progress)
            if digest.hexdigest() == file.sha256:
                output.flush()
                os.fsync(output.fileno())
                return fetched
            progress(-output.tell())
            if start == 0:
                break
    part.unlink()
    raise Damaged(f"the store has other bytes for {file.path} than its digest says; `verify` shows all such files")


def _beginning(part: Path, file: File) -> int:
    size = part.stat().st_size
    return size if size <= file.size else 0


def _append(read: Reader, file: File, start: int, output: Any, digest: Any, progress: Progress) -> int:
    count = 0
    for piece in read(file, start):
        count += len(piece)
        if start + count > file.size:
            break  # the digest cannot be right any more
        digest.update(piece)
        output.write(piece)
        progress(len(piece))
    return count
