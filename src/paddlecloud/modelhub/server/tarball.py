"""A version as the original's MODEL.tar.gz: the same bytes for the same version, on every machine and at every time.

Members are sorted, have no time, no owner and fixed modes. gzip's blocks are stored, not compressed: what a compressor
makes differs between releases of zlib, weights hardly become smaller, and the length is known before the first byte is
read. All sizes follow from the manifest alone. Pure, but for the bytes that `read` gives.
"""

from __future__ import annotations

import hashlib
import struct
import tarfile
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from paddlecloud.modelhub.errors import Damaged
from paddlecloud.modelhub.manifest import File, Manifest

_BLOCK = 512
_RECORD = 20 * _BLOCK
_STORED = 0xFFFF
"""The most bytes of one stored block of deflate."""
_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
"""gzip without name and time, made on no system in particular."""

Read = Callable[[File], Iterator[Any]]


def size(manifest: Manifest) -> int:
    """Of the whole archive in bytes."""
    plain = sum(len(_header(file)) + _padded(file.size) for file in manifest.files) + 2 * _BLOCK
    plain = -(-plain // _RECORD) * _RECORD
    return len(_HEAD) + plain + 5 * -(-plain // _STORED) + 8


def pieces(manifest: Manifest, read: Read) -> Iterator[bytes]:
    """Raises `Damaged` if a file has other bytes than the manifest says: the archive is never finished then."""
    yield _HEAD
    waiting, crc, count = bytearray(), 0, 0
    for piece in _tar(manifest, read):
        crc, count = zlib.crc32(piece, crc), count + len(piece)
        waiting += piece
        if len(waiting) > _STORED:
            whole = (len(waiting) - 1) // _STORED * _STORED  # the last block is marked as such: something is kept back
            yield b"".join(_stored(memoryview(waiting)[at : at + _STORED]) for at in range(0, whole, _STORED))
            del waiting[:whole]
    yield _stored(waiting, last=True)
    yield struct.pack("<II", crc, count & 0xFFFFFFFF)


def _stored(data: Any, *, last: bool = False) -> bytes:
    length = len(data)
    return struct.pack("<BHH", int(last), length, length ^ 0xFFFF) + bytes(data)


def _tar(manifest: Manifest, read: Read) -> Iterator[Any]:
    count = 0
    for file in sorted(manifest.files, key=lambda file: file.path):
        header = _header(file)
        yield header
        yield from _content(file, read)
        yield bytes(_padded(file.size) - file.size)
        count += len(header) + _padded(file.size)
    count += 2 * _BLOCK
    yield bytes(2 * _BLOCK + -count % _RECORD)


def _content(file: File, read: Read) -> Iterator[Any]:
    digest, count = hashlib.sha256(), 0
    for piece in read(file):
        count += len(piece)
        if count > file.size:
            break
        digest.update(piece)
        yield piece
    if count != file.size or digest.hexdigest() != file.sha256:
        raise Damaged(f"the store has other bytes for {file.path} than its digest says; `verify` shows all such files")


def _header(file: File) -> bytes:
    """With an extended header (pax) for long names and sizes."""
    member = tarfile.TarInfo(file.path)
    member.size, member.mode, member.mtime = file.size, 0o644, 0
    return member.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


def _padded(size: int) -> int:
    return -(-size // _BLOCK) * _BLOCK
