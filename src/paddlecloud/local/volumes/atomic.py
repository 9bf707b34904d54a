"""Replaces all files of a directory at once, as the kubelet of Kubernetes does.

Files live in a dated folder; `..data` points at it, and every visible name points through `..data`. Swapping that one
link changes all files in one step, so a reader never sees half of an update.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from paddlecloud.local.volumes.payload import File, Payload

DATA = "..data"


def write_payload(folder: Path, payload: Payload, group: int | None = None) -> bool:
    """Make `folder` show exactly `payload`; False when it did already.

    Every user of the pod may look into it, although the platform itself makes private folders. `group` owns the files
    (a pod's fsGroup) and may read them (SetVolumeOwnership of kubernetes/pkg/volume).
    """
    _make_folder(folder, group)
    payload = {path: _of_group(file) for path, file in payload.items()} if group is not None else payload
    current = folder / DATA
    old = Path(os.readlink(current)).name if current.is_symlink() else None
    if old is not None and _same(folder / old, payload):
        return False
    fresh = Path(tempfile.mkdtemp(prefix="..", dir=folder))
    _make_folder(fresh, group)
    for path, file in payload.items():
        place = fresh / path
        for parent in reversed(place.relative_to(fresh).parents[:-1]):
            _make_folder(fresh / parent, group)
        place.write_bytes(file.data)
        _own(place, group)
        place.chmod(file.mode)
    link = folder / "..data_tmp"
    link.unlink(missing_ok=True)
    link.symlink_to(fresh.name)
    os.replace(link, current)
    _show(folder, {path.partition("/")[0] for path in payload})
    if old is not None:
        shutil.rmtree(folder / old, ignore_errors=True)
    return True


def _of_group(file: File) -> File:
    return file._replace(mode=file.mode | 0o440)


def _make_folder(place: Path, group: int | None) -> None:
    place.mkdir(parents=True, exist_ok=True)
    _own(place, group)
    place.chmod(0o755 if group is None else 0o2755)


def _own(place: Path, group: int | None) -> None:
    if group is not None:
        os.chown(place, -1, group)


def _same(folder: Path, payload: Payload) -> bool:
    present = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    if set(present) != set(payload):
        return False
    return all(
        present[path].read_bytes() == file.data and present[path].stat().st_mode & 0o7777 == file.mode
        for path, file in payload.items()
    )


def _show(folder: Path, names: set[str]) -> None:
    for name in names:
        link = folder / name
        if not link.is_symlink():
            link.symlink_to(f"{DATA}/{name}")
    for entry in list(folder.iterdir()):
        if not entry.name.startswith("..") and entry.name not in names:
            entry.unlink()
