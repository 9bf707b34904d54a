"""The server: routes, limits, and answers for what fails.

Every request but the questions about its health brings a token or a read grant (`authorisation`). Nothing of a body is
read before the right to send it is known. Callers and tenants have shares of what runs at the same time
(`kube.server.request_limits`); the rest waits, unread. Files pass through in pieces of a mebibyte, read, hashed and
written in threads (`threads`).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import NamedTuple

from aiohttp import web

from paddlecloud.api.model import reference
from paddlecloud.kube import descriptors
from paddlecloud.kube.clock import Clock, SystemClock
from paddlecloud.kube.config import Config
from paddlecloud.kube.http import HttpTransport
from paddlecloud.kube.metrics import CONTENT_TYPE, Registry
from paddlecloud.kube.server.listening import listen
from paddlecloud.kube.server.request_limits import BodyMemory, CallerLimits
from paddlecloud.kube.server.unread import READ_TIMEOUT, Unread
from paddlecloud.modelhub import catalogue, layout
from paddlecloud.modelhub.catalogue import VersionKey
from paddlecloud.modelhub.errors import UnknownVersion
from paddlecloud.modelhub.server.authorisation import Authoriser, GrantKey, HubCaller
from paddlecloud.modelhub.server.downloads import Downloads, ServedVersion, resolve
from paddlecloud.modelhub.server.replies import Answered, HubRefusal, refusal
from paddlecloud.modelhub.server.slots import HeldSlot, Slots
from paddlecloud.modelhub.server.threads import WRITERS, Threads
from paddlecloud.modelhub.server.uploads import Uploads
from paddlecloud.storage.errors import StorageError
from paddlecloud.storage.stores import Store

log = logging.getLogger(__name__)

READS_PER_TENANT, READS = 16, 64
WRITES_PER_TENANT = WRITERS // 2
READY_SECONDS = 5.0
MOST_UNREAD, UNREAD_SECONDS = 256 << 20, READ_TIMEOUT
"""Bytes of long answers, such as lists of files, that clients have yet to read, and the time of each."""
MAX_LINE = 16 * 1024
OTHER_FILES = (
    "the store has other files under this name than the ModelVersion or the read grant says: the version was removed "
    "and pushed again; deploy a pod again, push the version under another name"
)


class Asked(NamedTuple):
    """What a request is about; the caller has the right to it."""

    caller: HubCaller
    namespace: str
    model: str = ""
    version: str = ""
    digest: str = ""
    """Of the content that the caller may read."""

    @property
    def key(self) -> VersionKey:
        return catalogue.version_key(self.namespace, self.model, self.version)


Answer = Callable[[web.Request, Asked, HeldSlot], Awaitable[web.StreamResponse]]


class HubServer:
    """`config` is where the Kubernetes API is; its credentials are not used. `key` gives that of read grants."""

    def __init__(self, store: Store, config: Config, key: GrantKey, *, clock: Clock | None = None) -> None:
        clock = clock or SystemClock()
        self._store, self._clock = store, clock
        self._transport = HttpTransport(config, user_agent="modelhub")
        self._authoriser = Authoriser(self._transport, key, clock)
        self._threads = Threads()
        self._downloads = Downloads(store, self._threads, clock)
        self._uploads = Uploads(store, self._threads, clock)
        self._reading, self._writing = Slots(READS, clock), Slots(WRITERS, clock)
        self._readers, self._writers = CallerLimits(READS_PER_TENANT), CallerLimits(WRITES_PER_TENANT)
        self._bodies = BodyMemory()
        self._unread = Unread(MOST_UNREAD, UNREAD_SECONDS)
        self._ready: tuple[float, str] = (0.0, "")
        self._registry = Registry()
        self._requests = self._registry.counter(
            "modelhub_requests_total", "Requests by route and status.", ("route", "code")
        )
        self._seconds = self._registry.histogram(
            "modelhub_request_seconds", "Time to the end of the answer.", ("route",)
        )
        self._runner: web.AppRunner | None = None

    async def start(self, host: str, port: int) -> int:
        """Returns the port on which it listens."""
        app = web.Application()
        app.add_routes([
            web.get("/healthz", self._healthz), web.get("/readyz", self._readyz), web.get("/metrics", self._metrics),
        ])  # fmt: skip
        for method, path, verb, answer in self._table():
            for one in ("GET", "HEAD") if method == "GET" else (method,):
                app.router.add_route(one, path, partial(self._handle, path, verb, answer))
        self._runner = await listen(app, host, port, most=descriptors.share(one_of=8), max_line_size=MAX_LINE)
        return int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
        self._threads.close()
        await self._transport.close()

    def _table(self) -> list[tuple[str, str, str, Answer]]:
        """Method, path, the verb on ModelVersions that a token needs, and what answers."""
        versions = "/v1/namespaces/{namespace}/models/{model}/versions"
        blob = "/v1/namespaces/{namespace}/blobs/{sha256}"
        original = "/namespaces/{namespace}/model-center/{model}/{version}"
        return [
            ("GET", versions, "list", self._list),
            ("POST", versions, "create", self._create),
            ("GET", versions + "/{version}", "get", self._manifest),
            ("DELETE", versions + "/{version}", "delete", self._delete),
            ("GET", versions + "/{version}/files/{path:.+}", "get", self._file),
            ("HEAD", blob, "create", self._head_blob),
            ("PUT", blob, "create", self._put_blob),
            ("GET", original + "/manifest.json", "get", self._archive_manifest),
            ("GET", original + "/{archive}", "get", self._archive),
        ]

    async def _handle(self, route: str, verb: str, answer: Answer, request: web.Request) -> web.StreamResponse:
        began = self._clock.monotonic()
        reads = request.method in ("GET", "HEAD")
        limits, slots = (self._readers, self._reading) if reads else (self._writers, self._writing)
        response: web.StreamResponse
        try:
            async with AsyncExitStack() as held:
                caller = await self._authoriser.caller(request.headers.get("Authorization", ""))
                await held.enter_async_context(limits.slot(caller.token or str(caller.grant)))
                asked = await self._asked(request, caller, verb)
                await held.enter_async_context(limits.slot(caller.tenant))
                slot = await held.enter_async_context(slots.slot(caller.tenant, partial(_cut_off, request)))
                response = await answer(request, asked, slot)
        except Exception as error:
            response = _refused(request, error)
        self._requests.inc(route, str(response.status))
        self._seconds.observe(self._clock.monotonic() - began, route)
        await self._unread.send(request, response)
        return response

    async def _asked(self, request: web.Request, caller: HubCaller, verb: str) -> Asked:
        """Names are checked first: only those of the grammar are sent on or become parts of keys."""
        parts = request.match_info
        namespace = reference.namespace_name(parts["namespace"])
        model = reference.model_name(parts["model"]) if "model" in parts else ""
        version, digest = parts.get("version", ""), ""
        if verb == "get":
            if caller.grant is None:
                version = await resolve(self._authoriser.client(caller), namespace, model, version)
            digest = await self._authoriser.readable(caller, namespace, model, reference.version_name(version))
        else:
            name = reference.object_name(model, reference.version_name(version)) if version else ""
            await self._authoriser.check(caller, verb, namespace, name)
        return Asked(caller, namespace, model, version, digest)

    async def _found(self, asked: Asked) -> ServedVersion:
        found = await self._downloads.version(asked.key)
        if found.manifest.digest != asked.digest:
            raise Answered(403, "Forbidden", OTHER_FILES)
        return found

    async def _list(self, request: web.Request, asked: Asked, slot: HeldSlot) -> web.StreamResponse:
        find = partial(catalogue.versions, self._store, asked.namespace, asked.model)
        names = await self._threads.read(lambda: sorted(which.version for which in find()))
        return web.json_response({"versions": names})

    async def _manifest(self, request: web.Request, asked: Asked, slot: HeldSlot) -> web.StreamResponse:
        return await self._downloads.manifest((await self._found(asked)).manifest)

    async def _file(self, request: web.Request, asked: Asked, slot: HeldSlot) -> web.StreamResponse:
        return await self._downloads.file(request, slot, await self._found(asked), request.match_info["path"])

    async def _archive(self, request: web.Request, asked: Asked, slot: HeldSlot) -> web.StreamResponse:
        if request.match_info["archive"] != f"{asked.model}.tar.gz":
            raise UnknownVersion(f"there is {asked.model}.tar.gz and manifest.json, nothing else")
        return await self._downloads.archive(request, slot, (await self._found(asked)).manifest)

    async def _archive_manifest(self, request: web.Request, asked: Asked, slot: HeldSlot) -> web.StreamResponse:
        return await self._downloads.archive_manifest((await self._found(asked)).manifest)

    async def _head_blob(self, request: web.Request, asked: Asked, slot: HeldSlot) -> web.StreamResponse:
        return await self._uploads.head(asked.namespace, request.match_info["sha256"])

    async def _put_blob(self, request: web.Request, asked: Asked, slot: HeldSlot) -> web.StreamResponse:
        return await self._uploads.put(request, slot, asked.namespace, request.match_info["sha256"])

    async def _create(self, request: web.Request, asked: Asked, slot: HeldSlot) -> web.StreamResponse:
        client = self._authoriser.client(asked.caller)
        with self._bodies.reservation(asked.caller.tenant) as reserved:
            return await self._uploads.create(request, slot, reserved, client, asked.namespace, asked.model)

    async def _delete(self, request: web.Request, asked: Asked, slot: HeldSlot) -> web.StreamResponse:
        """The manifest; its ModelVersion is deleted first, by the client."""
        if not await self._threads.write(partial(catalogue.remove, self._store, asked.key)):
            raise UnknownVersion(f"the store has no version {asked.key}")
        self._downloads.forget(asked.key)
        return web.Response(status=204)

    async def _healthz(self, _: web.Request) -> web.Response:
        return web.Response(text="ok\n")  # that the event loop could answer is the message

    async def _readyz(self, _: web.Request) -> web.Response:
        if self._ready[0] <= self._clock.monotonic():
            problem = await self._threads.read(self._problem)
            self._ready = self._clock.monotonic() + READY_SECONDS, problem
        problem = self._ready[1]
        return web.Response(status=503 if problem else 200, text=f"{problem or 'ok'}\n")

    def _problem(self) -> str:
        try:
            self._store.size(layout.FORMAT_KEY)
        except StorageError as error:
            log.warning("the store cannot be read: %s", error)
            return f"the store cannot be read: {error.reason}"
        return ""

    async def _metrics(self, _: web.Request) -> web.Response:
        return web.Response(body=self._registry.render().encode(), headers={"Content-Type": CONTENT_TYPE})


def _cut_off(request: web.Request) -> None:
    log.info("%s %s is cut off for others that wait", request.method, request.path)
    if request.transport is not None:
        request.transport.abort()


def _refused(request: web.Request, error: Exception) -> web.Response:
    found = refusal(error)
    if found is None:
        log.error("%s %s failed", request.method, request.path, exc_info=error)
        found = HubRefusal(500, {"reason": "InternalError", "message": "the server failed; its log has the reason"})
    headers = {"WWW-Authenticate": 'Bearer, Basic realm="models"'} if found.status == 401 else {}
    response = web.json_response(found.body, status=found.status, headers=headers)
    if request.body_exists and not request.content.is_eof():
        response.force_close()  # what is left of the body is not read
    return response
