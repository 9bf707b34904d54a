"""Answers that are read: manifests, files with ranges, and the original's archive."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import msgspec
from aiohttp import web

from paddlecloud.api.model.reference import LATEST, alias_name
from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import Clock
from paddlecloud.kube.resource import MODELS
from paddlecloud.modelhub import catalogue, manifest
from paddlecloud.modelhub.catalogue import VersionKey
from paddlecloud.modelhub.errors import Damaged, HubError, UnknownVersion
from paddlecloud.modelhub.manifest import File, Manifest
from paddlecloud.modelhub.pull import read_stored
from paddlecloud.modelhub.server import tarball
from paddlecloud.modelhub.server.replies import Answered
from paddlecloud.modelhub.server.slots import HeldSlot
from paddlecloud.modelhub.server.threads import PIECE_SECONDS, Threads
from paddlecloud.storage.errors import Missing, StorageError
from paddlecloud.storage.stores import Store

log = logging.getLogger(__name__)

KEPT_SECONDS = 5.0
"""How long a version that was removed is still served."""
KEPT_FILES = 200_000
"""Of all manifests that are kept in memory: a pull asks for file after file of one version."""
KEPT_DIGESTS = 1024


class ServedVersion(NamedTuple):
    manifest: Manifest
    files: dict[str, File]


async def resolve(client: Client, namespace: str, model: str, version: str) -> str:
    """An alias (after @, or latest as in the original's addresses) by the Model, with the rights of the caller."""
    if version != LATEST and not version.startswith("@"):
        return version
    alias = alias_name(version.removeprefix("@"))
    found = await client.find(MODELS, model, namespace)
    if found is None:
        raise UnknownVersion(f"there is no model {model} in namespace {namespace}")
    known = (found.get("spec") or {}).get("aliases") or {}
    if alias not in known:
        raise UnknownVersion(f"model {model} has no alias {alias}")
    return str(known[alias])


class Downloads:
    def __init__(self, store: Store, threads: Threads, clock: Clock) -> None:
        self._store, self._threads, self._clock = store, threads, clock
        self._kept: OrderedDict[VersionKey, tuple[float, ServedVersion]] = OrderedDict()
        self._digests: OrderedDict[str, str] = OrderedDict()

    async def version(self, which: VersionKey) -> ServedVersion:
        kept = self._kept.get(which)
        if kept is not None and kept[0] > self._clock.monotonic():
            return kept[1]
        found = await self._threads.read(partial(_read_version, self._store, which))
        self._kept[which] = self._clock.monotonic() + KEPT_SECONDS, found
        self._kept.move_to_end(which)
        while len(self._kept) > 1 and sum(len(one.files) for _, one in self._kept.values()) > KEPT_FILES:
            self._kept.popitem(last=False)
        return found

    def forget(self, which: VersionKey) -> None:
        self._kept.pop(which, None)

    async def manifest(self, found: Manifest) -> web.Response:
        body = await self._threads.read(lambda: msgspec.json.encode(manifest.shown(found)))
        headers = {"ETag": f'"{found.digest.removeprefix("sha256:")}"'}
        return web.Response(body=body, content_type="application/json", headers=headers)

    async def file(self, request: web.Request, slot: HeldSlot, version: ServedVersion, path: str) -> web.StreamResponse:
        file = version.files.get(path)
        if file is None:
            shown = f"{version.manifest.model}:{version.manifest.version}"
            raise UnknownVersion(f"{shown} has no file {path[:200]!r}")
        headers = {"ETag": f'"{file.sha256}"', "Accept-Ranges": "bytes", "Content-Type": "application/octet-stream"}
        if file.sha256 in tags_of(request.headers.get("If-None-Match", "")):
            return web.Response(status=304, headers=headers)
        start, end = _range(request, file)
        if start or end < file.size:
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{file.size}"
        status = 206 if "Content-Range" in headers else 200
        source = _cut(read_stored(self._store, file, start), end - start) if end > start else iter(())
        return await self._send(request, slot, status, headers, end - start, source)

    async def archive(self, request: web.Request, slot: HeldSlot, found: Manifest) -> web.StreamResponse:
        """No ranges: its end has a checksum of everything before it."""
        source = self._noted(found, tarball.pieces(found, partial(read_stored, self._store)))
        headers = {"Content-Type": "application/gzip", "Accept-Ranges": "none"}
        length = await self._threads.read(lambda: tarball.size(found))
        return await self._send(request, slot, 200, headers, length, source)

    async def archive_manifest(self, found: Manifest) -> web.Response:
        """What the original's layout has beside the archive; its digest is known once the archive was read."""
        if found.digest not in self._digests:
            source = self._noted(found, tarball.pieces(found, partial(read_stored, self._store)))
            async for _ in self._threads.pieces(source):
                pass  # only the digest is wanted
        size = await self._threads.read(lambda: tarball.size(found))
        body = {
            "name": found.model,
            "version": found.version,
            "sha256": self._digests[found.digest],
            "size": size,
            "digest": found.digest,
            "framework": found.framework,
            "created": found.created_at,
        }
        return web.Response(body=msgspec.json.encode(body), content_type="application/json")

    def _noted(self, found: Manifest, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """Remembers the digest of what passes by, if it passes to its end."""
        digest = hashlib.sha256()
        for piece in pieces:
            digest.update(piece)
            yield piece
        self._digests[found.digest] = digest.hexdigest()
        while len(self._digests) > KEPT_DIGESTS:
            self._digests.popitem(last=False)

    async def _send(
        self,
        request: web.Request,
        slot: HeldSlot,
        status: int,
        headers: dict[str, str],
        length: int,
        source: Iterator[Any],
    ) -> web.StreamResponse:
        response = web.StreamResponse(status=status, headers={**headers, "X-Content-Type-Options": "nosniff"})
        response.content_length = length
        if request.method == "HEAD":
            await response.prepare(request)
            return response
        pieces = self._threads.pieces(source)
        try:
            first = await anext(pieces, b"")  # a file that is not there is an answer, not an end of the connection
        except Missing as error:
            raise Damaged("the store has lost this file: push the same files again, which restores it") from error
        await response.prepare(request)
        try:
            sent = await _written(response, slot, first)
            async for piece in pieces:
                sent += await _written(response, slot, piece)
            if sent != length:
                raise Damaged(f"the store has {sent} bytes instead of {length}")
        except (HubError, StorageError, asyncio.TimeoutError) as error:
            log.warning("%s ends early: %s", request.path, error or "the client does not read")
            response.force_close()
            if request.transport is not None:
                request.transport.abort()  # fewer bytes than announced: the client must not take it for the whole
        return response


async def _written(response: web.StreamResponse, slot: HeldSlot, piece: Any) -> int:
    with slot.of_client():
        await asyncio.wait_for(response.write(piece), PIECE_SECONDS)
    slot.moved(len(piece))
    return len(piece)


def _read_version(store: Store, which: VersionKey) -> ServedVersion:
    found = catalogue.get(store, which)
    return ServedVersion(found, {file.path: file for file in found.files})


def _range(request: web.Request, file: File) -> tuple[int, int]:
    """Begin and end; the whole where the header is no single range of bytes, as RFC 9110 allows."""
    condition = request.headers.get("If-Range", "")
    if condition and file.sha256 not in tags_of(condition):
        return 0, file.size
    try:
        asked = request.http_range
    except ValueError:
        return 0, file.size
    if asked.start is None:
        return 0, file.size
    start, end, _ = asked.indices(file.size)
    if start >= file.size or end <= start:
        raise Answered(416, "Invalid", f"the file has {file.size} bytes")
    return start, end


def tags_of(header: str) -> set[str]:
    return {tag.strip().removeprefix("W/").strip('"') for tag in header[:4096].split(",")}


def _cut(pieces: Iterator[Any], length: int) -> Iterator[Any]:
    for piece in pieces:
        yield piece[:length]
        length -= len(piece)
        if length <= 0:
            return
