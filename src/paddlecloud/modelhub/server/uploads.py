"""Requests that write: files by their digest, in parts that continue, and versions made of them."""

from __future__ import annotations

import asyncio
import re
from functools import partial
from typing import Any, TypeVar

import msgspec
from aiohttp import web

from paddlecloud.api.model.reference import version_name
from paddlecloud.api.model.signature import Signature
from paddlecloud.api.names import MODEL_LABEL
from paddlecloud.kube import access
from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import Clock
from paddlecloud.kube.errors import ApiError
from paddlecloud.kube.resource import MODELVERSIONS
from paddlecloud.kube.server.request_limits import BodyReservation
from paddlecloud.kube.times import rfc3339
from paddlecloud.modelhub import catalogue, layout, manifest
from paddlecloud.modelhub.facts import check_facts
from paddlecloud.modelhub.manifest import Facts, File
from paddlecloud.modelhub.push import Pushed, push, push_next
from paddlecloud.modelhub.received import LARGEST_FILE, LARGEST_PART, SMALLEST_PART, MissingFiles, Received, Upload
from paddlecloud.modelhub.server.replies import Answered
from paddlecloud.modelhub.server.slots import HeldSlot
from paddlecloud.modelhub.server.threads import Threads, body_pieces
from paddlecloud.storage.stores import Store, check_conditions

BODY_SECONDS = 120.0
MAX_BODY = 32 << 20
"""Of the list of files of a version."""
MAX_FACTS = 256 << 10
"""Of the metrics, and of the origin, as text: 64 entries each."""
R = TypeVar("R")
_RANGE = re.compile(r"bytes (\d{1,15})-(\d{1,15})/(\d{1,15})")
_NOTHING = re.compile(r"bytes \*/(\d{1,15})")


_SIGNATURE: Any = Signature | None


class VersionRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A version to be: what a client says. Who sent it and when is added by the server."""

    files: list[File]
    version: str = ""
    """Empty for the number after the highest."""
    framework: str = ""
    description: str = ""
    metrics: msgspec.Raw = msgspec.Raw(b"{}")
    """Decoded when its size is known: the interpreter does nothing else while very many values are decoded."""
    origin: msgspec.Raw = msgspec.Raw(b"{}")
    signature: msgspec.Raw = msgspec.Raw(b"null")


class Uploads:
    def __init__(self, store: Store, threads: Threads, clock: Clock) -> None:
        self._store, self._threads, self._clock = store, threads, clock

    async def head(self, namespace: str, sha256: str) -> web.Response:
        """200 for a file that is there; 404 with the place at which its upload continues."""
        upload = self._upload(namespace, sha256)
        size = await self._threads.read(upload.finished)
        offset = size if size is not None else await self._threads.read(upload.offset)
        return web.Response(status=200 if size is not None else 404, headers={"Upload-Offset": str(offset)})

    async def put(self, request: web.Request, slot: HeldSlot, namespace: str, sha256: str) -> web.Response:
        upload = self._upload(namespace, sha256)
        start, size, total = _range(request)
        if await self._threads.read(partial(upload.finished, total)) is not None:
            return web.Response(status=200, headers={"Upload-Offset": str(total)})
        pieces = body_pieces(request.content, slot)
        await self._threads.write(partial(check_conditions, self._store, layout.FORMAT_KEY, layout.FORMAT_CONTENT))
        if size == total and start == 0:
            await self._threads.write(partial(upload.whole, size, pieces))
            return web.Response(status=201, headers={"Upload-Offset": str(total)})
        done = await self._threads.write(partial(upload.part, start, size, total, pieces))
        return web.Response(status=201 if done else 202, headers={"Upload-Offset": str(start + size)})

    async def create(
        self,
        request: web.Request,
        slot: HeldSlot,
        reserved: BodyReservation,
        client: Client,
        namespace: str,
        model: str,
    ) -> web.Response:
        with slot.of_client():
            body = await _body_in_time(request, slot, reserved)
        by, at = await _user(client), rfc3339(self._clock.now())
        asked, facts, content = await self._threads.read(partial(judged, body, namespace, by, at))
        if asked.version:
            which = catalogue.version_key(namespace, model, version_name(asked.version))
            work = partial(push, self._store, which, content, facts)
        else:
            selector = f"{MODEL_LABEL}={model}"
            listed = await client.list(MODELVERSIONS, namespace, label_selector=selector, limit=500)
            taken = {str(obj["spec"]["version"]) for obj in listed.items}
            work = partial(push_next, self._store, namespace, model, content, facts, taken)
        done = await self._threads.write(partial(_pushed, self._store, content, work))
        answer = {**manifest.shown(done.manifest), "created": done.created}
        encoded = await self._threads.read(lambda: msgspec.json.encode(answer))
        return web.Response(status=201 if done.created else 200, body=encoded, content_type="application/json")

    def _upload(self, namespace: str, sha256: str) -> Upload:
        if not manifest.is_sha256(sha256):
            raise Answered(400, "Invalid", "a file is named by its SHA-256: 64 hexadecimal digits in lower case")
        return Upload(self._store, namespace, sha256)


def _pushed(store: Store, content: Received, work: partial[Pushed]) -> Pushed:
    try:
        return work()
    except MissingFiles as error:  # all of them at once, not one after the other
        raise MissingFiles(content.missing(store) or error.digests) from error


def _range(request: web.Request) -> tuple[int, int, int]:
    """Begin, size and size of the whole file."""
    length, header = request.content_length, request.headers.get("Content-Range")
    if length is None:
        raise Answered(411, "Invalid", "say how many bytes are sent: Content-Length")
    if header is None:
        start, total = 0, length
    elif (finished := _NOTHING.fullmatch(header)) is not None and length == 0:
        start = total = int(finished[1])
    else:
        found = _RANGE.fullmatch(header)
        if found is None or int(found[1]) + length != int(found[2]) + 1 or int(found[2]) >= int(found[3]):
            raise Answered(400, "Invalid", "Content-Range is `bytes FIRST-LAST/SIZE`, with as many bytes as are sent")
        start, total = int(found[1]), int(found[3])
    if total > LARGEST_FILE:
        raise Answered(413, "Invalid", f"a file has at most {LARGEST_FILE >> 30} GiB")
    if length > LARGEST_PART:
        raise Answered(413, "Invalid", f"a part has at most {LARGEST_PART >> 20} MiB: send larger files in parts")
    if length < SMALLEST_PART and start + length < total:
        raise Answered(400, "Invalid", f"a part before the last has at least {SMALLEST_PART >> 20} MiB")
    return start, length, total


async def _body_in_time(request: web.Request, slot: HeldSlot, reserved: BodyReservation) -> bytes:
    try:
        return await asyncio.wait_for(_body(request, slot, reserved), BODY_SECONDS)
    except asyncio.TimeoutError as error:
        raise Answered(408, "Timeout", f"the body did not come within {BODY_SECONDS:g} s") from error


async def _body(request: web.Request, slot: HeldSlot, reserved: BodyReservation) -> bytes:
    found = bytearray()
    while chunk := await request.content.readany():
        reserved.grow(len(chunk))
        slot.moved(len(chunk))
        found += chunk
        if len(found) > MAX_BODY:
            raise Answered(413, "Invalid", f"the list of files has more than {MAX_BODY >> 20} MiB")
    return bytes(found)


def judged(body: bytes, namespace: str, by: str, at: str) -> tuple[VersionRequest, Facts, Received]:
    """What a body asks for. It costs time: work of a thread. Raises `Answered` and `Refused`."""
    try:
        asked = msgspec.json.decode(body, type=VersionRequest)
        metrics, origin = _few(asked.metrics, dict[str, float]), _few(asked.origin, dict[str, str])
        signature = _few(asked.signature, _SIGNATURE)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise Answered(400, "Invalid", f"the body is no list of files: {error}") from error
    facts = Facts(by, at, asked.framework, metrics, origin, asked.description, signature)
    check_facts(facts)
    return asked, facts, Received(namespace, tuple(asked.files))


def _few(raw: msgspec.Raw, kind: type[R]) -> R:
    content = bytes(raw)
    if len(content) > MAX_FACTS:
        raise Answered(413, "Invalid", f"metrics, origin and signature have {MAX_FACTS >> 10} KiB each at most")
    return msgspec.json.decode(content, type=kind)


async def _user(client: Client) -> str:
    """Who the Kubernetes API takes the caller for."""
    try:
        return await access.user_name(client)
    except ApiError:  # older than Kubernetes 1.28
        return ""
