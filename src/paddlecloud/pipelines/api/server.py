"""The HTTP server in front: bytes to a `Request` and back, with the caller's credentials.

It has no rights and keeps no state. The bearer token of a request is sent on to the Kubernetes API, which decides;
a request without one is refused, but for the question whether the server is there. Bodies have limits of size and
time. Only requests with a token that the Kubernetes API accepts are read and carried out, at most `AT_ONCE` at the
same time; one whose body is not complete takes none of these places, and each caller and each tenant has a limit of
its own (`kube.server.request_limits`).
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from contextlib import AsyncExitStack
from typing import Any

import msgspec
from aiohttp import BodyPartReader, web
from aiohttp.http_exceptions import BadHttpMessage

from paddlecloud import __version__
from paddlecloud.api.json_values import has_more_values
from paddlecloud.kube import descriptors, generated_names
from paddlecloud.kube.client import Client
from paddlecloud.kube.config import Config
from paddlecloud.kube.credentials import Credential, Static
from paddlecloud.kube.errors import ApiError
from paddlecloud.kube.http import HttpTransport
from paddlecloud.kube.server.listening import listen
from paddlecloud.kube.server.request_limits import (
    BodyMemory,
    BodyReservation,
    CallerLimitReached,
    CallerLimits,
    NoRoom,
    tenant_of,
)
from paddlecloud.kube.server.unread import READ_TIMEOUT, Unread
from paddlecloud.pipelines import names
from paddlecloud.pipelines.api import handlers, routing, v1beta1, v2beta1
from paddlecloud.pipelines.api.caller import Caller
from paddlecloud.pipelines.api.replies import NO_CREDENTIALS, Reply, RequestRefused, object_of, of_error, refusal
from paddlecloud.pipelines.api.routing import Request
from paddlecloud.pipelines.runs.package import MAX_BYTES

log = logging.getLogger(__name__)

MAX_BODY = 2 * MAX_BYTES
"""A package within JSON within JSON; an upload with the borders of its parts."""
BODY_SECONDS = 60.0
AT_ONCE = 16
"""Requests that are carried out at the same time: each may hold a body and a workflow in memory."""
MOST_UNREAD, UNREAD_SECONDS = 128 << 20, READ_TIMEOUT
"""Bytes of long answers that clients have yet to read, and the time of each."""
MAX_VALUES = 1_000_000
"""In the JSON of a body: in memory they take many times the space."""
MAX_QUERY = 64 * 1024
_HEALTH = {"commit_sha": "paddlecloud", "commit_hash": "paddlecloud", "tag_name": __version__, "multi_user": False}

ROUTES = [
    *routing.compiled("/apis/v1beta1", handlers.table(v1beta1)),
    *routing.compiled("/apis/v2beta1", handlers.table(v2beta1)),
]


class PipelinesServer:
    """`config` is where the Kubernetes API is; its credentials are not used."""

    def __init__(self, config: Config, *, namespace: str = names.SYSTEM_NAMESPACE) -> None:
        self._transport = HttpTransport(config, user_agent="ml-pipeline")
        self._namespace = namespace
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._callers = CallerLimits()
        self._bodies = BodyMemory()
        self._unread = Unread(MOST_UNREAD, UNREAD_SECONDS)
        self._runner: web.AppRunner | None = None

    async def start(self, host: str, port: int) -> int:
        """Returns the port on which it listens."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = await listen(app, host, port, most=descriptors.share(one_of=8), max_line_size=MAX_QUERY)
        return int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
        await self._transport.close()

    async def _handle(self, request: web.Request) -> web.Response:
        reply = await self._answer(request)
        headers = {"WWW-Authenticate": "Bearer"} if reply.status == 401 else None
        response = web.Response(
            body=msgspec.json.encode(reply.body), status=reply.status, content_type="application/json", headers=headers
        )
        await self._unread.send(request, response)
        return response

    async def _answer(self, request: web.Request) -> Reply:
        # A client that was given http://host/pipeline, or the API server's proxy as its host, sends this in front.
        path = request.path[request.path.find("/apis/") :] if "/apis/" in request.path else request.path
        if path in ("/healthz", "/apis/v1beta1/healthz", "/apis/v2beta1/healthz"):
            return Reply(200, _HEALTH)
        authorization = request.headers.get("Authorization", "")
        if not authorization.lower().startswith("bearer "):
            return refusal(401, NO_CREDENTIALS)
        try:
            handler, parts = routing.match(ROUTES, request.method, path)
            caller = self._caller(authorization)
            token = authorization[len("bearer ") :].strip()
            async with AsyncExitStack() as held:
                await held.enter_async_context(self._callers.slot(token))
                await caller.client.raw("GET", "/version")  # 401 for a token that nobody gave out
                await held.enter_async_context(self._callers.slot(tenant_of(token)))
                reserved = held.enter_context(self._bodies.reservation(tenant_of(token)))
                asked = await _read_in_time(request, parts, reserved)
                async with self._slots:
                    return Reply(200, await handler(caller, asked))
        except RequestRefused as error:
            return refusal(error.status, error.message)
        except CallerLimitReached as error:
            return refusal(429, str(error))
        except NoRoom as error:
            return refusal(503, str(error))
        except ApiError as error:
            return of_error(error)
        except Exception:
            log.exception("%s %s failed", request.method, path)
            return refusal(500, "the server failed; its log has the reason")

    def _caller(self, authorization: str) -> Caller:
        transport = self._transport.acting_as(Static(Credential(authorization=authorization)))
        client = Client(transport, field_manager="ml-pipeline")
        return Caller(client, self._namespace, _new_id, generated_names.suffix)


def _new_id() -> str:
    return str(uuid.uuid4())


async def _read_in_time(request: web.Request, parts: dict[str, str], reserved: BodyReservation) -> Request:
    try:
        return await asyncio.wait_for(_read(request, parts, reserved), BODY_SECONDS)
    except ConnectionResetError as error:  # nobody reads the answer
        raise RequestRefused(400, "the connection ended before the body did") from error
    except asyncio.TimeoutError as error:
        raise RequestRefused(504, f"the body did not come within {BODY_SECONDS:g} s") from error


async def _read(request: web.Request, parts: dict[str, str], reserved: BodyReservation) -> Request:
    query = {key: str(value) for key, value in request.query.items()}
    if request.content_type == "multipart/form-data":
        return Request(query, parts, {}, await _upload(request, reserved))
    data = await _body(request, reserved)
    if not data:
        return Request(query, parts, {})
    return Request(query, parts, object_of(await asyncio.to_thread(decoded, data)))


async def _body(request: web.Request, reserved: BodyReservation) -> bytes:
    found = bytearray()
    while chunk := await request.content.readany():
        reserved.grow(len(chunk))
        found += chunk
        if len(found) > MAX_BODY:
            raise RequestRefused(413, f"the body has more than {MAX_BODY} bytes")
    return bytes(found)


def decoded(data: bytes) -> Any:
    if has_more_values(data, MAX_VALUES):
        raise RequestRefused(400, f"the body has more than {MAX_VALUES:,} values")
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise RequestRefused(400, f"the body is not JSON: {error}") from error


async def _upload(request: web.Request, reserved: BodyReservation) -> bytes:
    """The part `uploadfile`, counted while it comes: aiohttp's own limit is for bodies without parts."""
    try:
        return await _first_part(request, reserved)
    except BadHttpMessage as error:
        raise RequestRefused(400, f"the upload cannot be read: {error.message[:200]}") from error
    except (ValueError, AssertionError) as error:
        raise RequestRefused(400, f"the upload cannot be read: {error}") from error


async def _first_part(request: web.Request, reserved: BodyReservation) -> bytes:
    part = await (await request.multipart()).next()
    if not isinstance(part, BodyPartReader) or part.name != "uploadfile":
        raise RequestRefused(400, "the first part of an upload must be the file, with the name uploadfile")
    found = bytearray()
    while chunk := await part.read_chunk(64 * 1024):
        reserved.grow(len(chunk))
        found += chunk
        if len(found) > MAX_BYTES:
            raise RequestRefused(413, f"the file has more than {MAX_BYTES} bytes")
    return bytes(found)
