"""The manifest of a version: its files with digest and size, and where it came from. Immutable once it is stored. Pure.

The digest of a version is the SHA-256 of its files alone, one line `SHA256 SIZE PATH` for each in the order of paths:
the same files have the same digest, under every name and of every author.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from paddlecloud.api.model.signature import Signature
from paddlecloud.modelhub.errors import Damaged, Refused

FORMAT = 1
MOST_FILES = 100_000
LONGEST_PATH = 1024
_HEX = frozenset("0123456789abcdef")


class File(msgspec.Struct, frozen=True):
    path: str
    """Relative, separated by slashes."""
    sha256: str
    size: int
    blob: str = ""
    """Which of the stored copies with this digest (`layout.blob`)."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    format: int
    namespace: str
    model: str
    version: str
    digest: str
    size: int
    files: tuple[File, ...]
    framework: str = ""
    signature: Signature | None = None
    metrics: dict[str, float] = {}
    origin: dict[str, str] = {}
    """Where it came from, as the user or a launcher says: job, image, data, commit."""
    description: str = ""
    created_by: str = ""
    created_at: str = ""


class Facts(NamedTuple):
    """What a manifest says besides its files."""

    created_by: str
    created_at: str
    framework: str = ""
    metrics: Mapping[str, float] = {}
    origin: Mapping[str, str] = {}
    description: str = ""
    signature: Signature | None = None


def digest_of(files: Iterable[File]) -> str:
    digest = hashlib.sha256()
    for file in sorted(files, key=lambda file: file.path):
        digest.update(f"{file.sha256} {file.size} {file.path}\n".encode())
    return f"sha256:{digest.hexdigest()}"


def framework_of(paths: Iterable[str]) -> str:
    """By the endings of files, as the inference server finds them; empty for what it does not know."""
    endings = {path.rpartition(".")[2] for path in paths}
    if "pdiparams" in endings:
        return "paddle"
    return "onnx" if "onnx" in endings else ""


def check_paths(paths: Sequence[str]) -> None:
    """Raises `Refused` for names that cannot all be files below one folder of any machine."""
    if not paths:
        raise Refused("there is no file in it: a version has at least one")
    if len(paths) > MOST_FILES:
        raise Refused(f"it has {len(paths):,} files, more than {MOST_FILES:,}; pack those that belong together")
    if len(set(paths)) < len(paths):
        raise Refused("two of its files have the same name")
    for path in paths:
        parts = path.split("/")
        if len(path.encode("utf-8", "surrogateescape")) > LONGEST_PATH:
            raise Refused(f"the name {path[:40] + '…'!r} is longer than {LONGEST_PATH} bytes")
        if any(part in ("", ".", "..") for part in parts):
            raise Refused(f"the name {path!r} leads outside of the model's folder, or is no name of a file")
        if not path.isprintable():
            raise Refused(f"the name {path!r} has characters that cannot be printed; rename the file")
    ordered = sorted(path.replace("/", "\0") for path in paths)  # what is below a name follows it at once
    for upper, lower in itertools.pairwise(ordered):
        if lower.startswith(f"{upper}\0"):
            raise Refused(f"{upper.replace(chr(0), '/')!r} would be a file and a folder")


def is_sha256(text: str) -> bool:
    return len(text) == 64 and _HEX.issuperset(text)


def encode(manifest: Manifest) -> bytes:
    return msgspec.json.encode(manifest) + b"\n"


def decode(content: bytes, shown: str, *, stored: bool = True) -> Manifest:
    """Raises `Damaged`: nothing of a manifest that was changed or cut is used. One that is not `stored` but was sent
    by the hub's server does not say where copies lie."""
    try:
        manifest = msgspec.json.decode(content, type=Manifest)
        if manifest.format != FORMAT:
            raise Damaged(f"{shown} has format {manifest.format}, this release knows {FORMAT}: use a newer release")
        check_paths([file.path for file in manifest.files])
    except (msgspec.MsgspecError, UnicodeError, RecursionError, Refused) as error:
        raise Damaged(f"{shown} is no manifest of a version: {error}") from error
    for file in manifest.files:
        if not is_sha256(file.sha256) or file.size < 0 or file.blob.isalnum() != stored:
            raise Damaged(f"{shown}: {file.path} has no valid digest, size or place")
    if manifest.digest != digest_of(manifest.files) or manifest.size != sum(file.size for file in manifest.files):
        raise Damaged(f"{shown} was changed after it was stored: its digest is not that of its files")
    return manifest


def shown(manifest: Manifest) -> dict[str, Any]:
    """For reports: everything but where copies lie."""
    found: dict[str, Any] = msgspec.to_builtins(manifest)
    for file in found["files"]:
        file.pop("blob", None)
    return found
