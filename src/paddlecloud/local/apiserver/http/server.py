"""The network edge: HTTPS in, `Request` out, `Response` back. It knows sockets and headers, and nothing of kinds.

The low-level aiohttp server is used without its router: Kubernetes paths are data, and every microsecond here is paid
by every request.
"""

from __future__ import annotations

import logging
import ssl
from contextlib import ExitStack
from functools import partial

from aiohttp import web
from aiohttp.http import HttpProcessingError

from paddlecloud.kube import descriptors, errors
from paddlecloud.kube.server.listening import KEEP_ALIVE, Site
from paddlecloud.kube.server.tls import secured
from paddlecloud.kube.server.unread import Unread
from paddlecloud.local.apiserver.api import Api
from paddlecloud.local.apiserver.auth.authentication import ANONYMOUS, Authenticator
from paddlecloud.local.apiserver.http.bodies import Bodies
from paddlecloud.local.apiserver.http.limits import BACKLOG, MAX_HEADER, MAX_LINE, MOST_BODIES, MOST_UNREAD
from paddlecloud.local.apiserver.http.reply import Reply, stream
from paddlecloud.local.apiserver.http.request import Request
from paddlecloud.local.apiserver.http.shares import Shares

REPEATED = ("command", "ports")
"""Query options that may be given more than once."""


class HttpsServer:
    def __init__(self, api: Api, authenticator: Authenticator, *, tls: ssl.SSLContext) -> None:
        self._api = api
        self._authenticator = authenticator
        self._tls = tls
        self._most = descriptors.share(one_of=8)
        self._shares = Shares(max(1, self._most // 2))
        self._bodies = Bodies(MOST_BODIES)
        self._unread = Unread(MOST_UNREAD)
        self._runner: web.ServerRunner | None = None
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        """Listen. Port 0 takes any free one; a port in use is an error that names the way out."""
        # A client that leaves cancels its request: a watch or a followed log must not outlive its reader. Writes that
        # are on their way to the store stand all the same.
        server = web.Server(
            self._serve,
            access_log=None,
            logger=_quiet_log(),
            max_line_size=MAX_LINE,
            max_field_size=MAX_HEADER,
            handler_cancellation=True,
            keepalive_timeout=KEEP_ALIVE,
            auto_decompress=False,  # kube-apiserver reads no compressed bodies either, and they can grow a thousandfold
        )
        self._runner = web.ServerRunner(server, shutdown_timeout=2)
        await self._runner.setup()
        waiting = descriptors.share(one_of=16)  # to agree on TLS, and once more to send a request
        site = Site(
            self._runner, host, port, secured=partial(secured, self._tls, most_waiting=waiting),
            backlog=min(BACKLOG, waiting), most=self._most, most_waiting=waiting,
        )  # fmt: skip
        try:
            await site.start()
        except OSError as error:
            raise OSError(
                error.errno, f"cannot listen on {host}:{port}: {error.strerror}; choose another --port"
            ) from error
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _serve(self, incoming: web.BaseRequest) -> web.StreamResponse:
        headers, url = incoming.headers, incoming.rel_url
        request = Request(incoming.method, url.raw_path, {}, headers, b"", ANONYMOUS)
        with ExitStack() as served:
            try:
                if url.raw_query_string:
                    request.raw_query = url.raw_query_string
                    request.query = {name: url.query[name] for name in url.query}
                    request.query_list = {name: url.query.getall(name) for name in REPEATED if name in url.query}
                certificate = None
                if incoming.transport is not None and "Authorization" not in headers:
                    certificate = incoming.transport.get_extra_info("peercert")
                request.user = self._authenticator.identify(headers, certificate, url.path)
                served.enter_context(self._shares.of(request.user))
                if incoming.can_read_body and request.user is not ANONYMOUS:  # nobody waits for a body of strangers
                    request.body = await self._bodies.read(incoming, request.user, served)
            except errors.ApiError as error:
                return Reply(self._api.refuse(request, error), self._unread)
            answer = await self._api.handle(request)
            if answer.upgrade is not None:
                return await answer.upgrade(incoming)  # type: ignore[no-any-return]
            if answer.stream is not None:
                return await stream(incoming, answer, answer.stream)
            return Reply(answer, self._unread)


def _quiet_log() -> logging.Logger:
    """For aiohttp, which logs a traceback for every request that is not HTTP: anybody could fill the disk with them."""
    log = logging.getLogger(f"{__name__}.aiohttp")
    log.addFilter(_is_no_bad_request)
    return log


def _is_no_bad_request(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))
