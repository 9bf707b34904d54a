"""Container images as OCI defines them: layers, a configuration, a manifest; each a blob named by its hash.

Nothing here runs a container engine. Owners, times and the order of files are normalised, so the same content gives the
same image on every machine and on every day.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, BinaryIO, cast

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"
INDEX = "application/vnd.oci.image.index.v1+json"

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing in a layer: a file from disk or memory, a symbolic link, or a folder when nothing else is given."""

    path: str
    source: Path | None = None
    data: bytes | None = None
    link: str | None = None
    mode: int = 0o755


@dataclass(frozen=True, slots=True)
class Descriptor:
    media_type: str
    digest: str
    size: int

    def document(self) -> dict[str, Any]:
        return {"mediaType": self.media_type, "digest": self.digest, "size": self.size}


@dataclass(frozen=True, slots=True)
class Settings:
    """What a container of the image runs as, unless its pod says otherwise."""

    entrypoint: Sequence[str] = ()
    cmd: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    workdir: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)


class BlobStore:
    """Blobs below one folder. Writing is atomic: a blob that is there is whole."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._blobs = folder / "blobs" / "sha256"

    def path(self, digest: str) -> Path:
        return self._blobs / digest.removeprefix("sha256:")

    def add(self, data: bytes, media_type: str) -> Descriptor:
        with self._writing() as blob:
            blob.write(data)
        return blob.descriptor(media_type)

    def add_layer(self, entries: Iterable[Entry]) -> Descriptor:
        with (
            self._writing() as blob,
            tarfile.open(fileobj=cast(BinaryIO, blob), mode="w|", format=tarfile.PAX_FORMAT) as tar,
        ):
            for entry in with_parents(entries):
                _add(tar, entry)
        return blob.descriptor(LAYER)

    def add_image(self, layers: Sequence[Descriptor], settings: Settings) -> Descriptor:
        """The manifest's descriptor. Layers are not compressed, so each is its own diff id."""
        config: dict[str, Any] = {
            "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
            "os": "linux",
            "config": _settings(settings),
            "rootfs": {"type": "layers", "diff_ids": [layer.digest for layer in layers]},
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": self.add(_json(config), CONFIG).document(),
            "layers": [layer.document() for layer in layers],
        }
        return self.add(_json(manifest), MANIFEST)

    def export(self, image: Descriptor, name: str, archive: Path) -> None:
        """An OCI archive of one image, as `ctr images import`, `podman load` and `skopeo` read it."""
        named = {**image.document(), "annotations": {"io.containerd.image.name": name}}
        index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [named]}
        digests = self.parts(image.digest)
        blobs = [Entry(f"blobs/sha256/{digest[7:]}", source=self.path(digest), mode=0o644) for digest in digests]
        layout = Entry("oci-layout", data=_json({"imageLayoutVersion": "1.0.0"}), mode=0o644)
        unfinished = archive.with_name(f".{archive.name}.{os.getpid()}")
        with tarfile.open(unfinished, "w", format=tarfile.PAX_FORMAT) as tar:
            for entry in with_parents([layout, Entry("index.json", data=_json(index), mode=0o644), *blobs]):
                _add(tar, entry)
        unfinished.rename(archive)

    def blobs(self) -> list[Path]:
        return sorted(self._blobs.iterdir()) if self._blobs.is_dir() else []

    def parts(self, digest: str) -> list[str]:
        """The digests of an image's manifest, configuration and layers; none if it is not there."""
        try:
            manifest = json.loads(self.path(digest).read_bytes())
        except FileNotFoundError:
            return []
        return [digest, manifest["config"]["digest"], *(layer["digest"] for layer in manifest["layers"])]

    def holds(self, thing: Descriptor) -> bool:
        """Whether a layer, or an image with all its layers, is there as it was written."""
        try:
            if self.path(thing.digest).stat().st_size != thing.size:
                return False
        except FileNotFoundError:
            return False
        if thing.media_type != MANIFEST:
            return True
        manifest = json.loads(self.path(thing.digest).read_bytes())
        parts = [manifest["config"], *manifest["layers"]]
        return all(self.holds(Descriptor(part["mediaType"], part["digest"], part["size"])) for part in parts)

    def _writing(self) -> _Writing:
        self._blobs.mkdir(parents=True, exist_ok=True)
        return _Writing(self._blobs)


class _Writing(io.RawIOBase):
    """A blob on its way: hashed while written, named when closed."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._unfinished = folder / f".{os.getpid()}-{id(self)}"
        self._file = self._unfinished.open("wb")
        self._hash = hashlib.sha256()
        self._size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._hash.update(data)
        self._size += len(data)
        return self._file.write(data)

    def __exit__(self, kind: object, *_: object) -> None:
        self._file.close()
        if kind is None:
            self._unfinished.rename(self._folder / self._hash.hexdigest())
        else:
            self._unfinished.unlink()

    def descriptor(self, media_type: str) -> Descriptor:
        return Descriptor(media_type, f"sha256:{self._hash.hexdigest()}", self._size)


def tree(folder: Path, prefix: str = "", *, skip: Iterable[str] = ()) -> Iterator[Entry]:
    """The entries of a folder on disk, to lie below `prefix`. `skip` are patterns of names left out at any depth."""
    left_out = tuple(skip)
    for name in sorted(os.listdir(folder)):
        if any(fnmatchcase(name, pattern) for pattern in left_out):
            continue
        path, target = folder / name, f"{prefix}/{name}".lstrip("/")
        if path.is_symlink():
            yield Entry(target, link=os.readlink(path))
        elif path.is_dir():
            yield Entry(target, mode=path.stat().st_mode & 0o7777)
            yield from tree(path, target, skip=left_out)
        elif path.is_file():
            yield Entry(target, source=path, mode=path.stat().st_mode & 0o7777)


def with_parents(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Each folder before what lies in it, once."""
    seen: set[str] = set()
    for entry in entries:
        parts = entry.path.strip("/").split("/")
        for depth in range(1, len(parts)):
            above = "/".join(parts[:depth])
            if above not in seen:
                seen.add(above)
                yield Entry(above)
        if entry.source is None and entry.data is None and entry.link is None:
            if entry.path in seen:
                continue
            seen.add(entry.path)
        yield entry


def _add(tar: tarfile.TarFile, entry: Entry) -> None:
    info = tarfile.TarInfo(entry.path.strip("/"))
    info.mode = entry.mode
    if entry.link is not None:
        info.type, info.linkname, info.mode = tarfile.SYMTYPE, entry.link, 0o777
        tar.addfile(info)
    elif entry.data is not None:
        info.size = len(entry.data)
        tar.addfile(info, io.BytesIO(entry.data))
    elif entry.source is not None:
        info.size = entry.source.stat().st_size
        with entry.source.open("rb") as content:
            tar.addfile(info, content)
    else:
        info.type = tarfile.DIRTYPE
        tar.addfile(info)


def _settings(settings: Settings) -> dict[str, Any]:
    document: dict[str, Any] = {"Env": [_PATH, *(f"{name}={value}" for name, value in settings.env.items())]}
    optional = {
        "Entrypoint": list(settings.entrypoint),
        "Cmd": list(settings.cmd),
        "User": settings.user,
        "WorkingDir": settings.workdir,
        "Labels": dict(settings.labels),
    }
    return {**document, **{name: value for name, value in optional.items() if value}}


def _json(document: Any) -> bytes:
    return json.dumps(document, sort_keys=True).encode()
