"""One HTTP request to a pod and its answer.

Hop-by-hop headers and the client's credentials are not passed on: a pod that got a token could act as its bearer.
Redirects are not followed. Certificates of pods are not verified, as in kube-apiserver: pods make their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import ExitStack
from typing import NamedTuple

from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout, DummyCookieJar, TCPConnector
from multidict import CIMultiDict
from yarl import URL

from paddlecloud.kube import errors
from paddlecloud.local.apiserver.http.limits import MAX_HEADER
from paddlecloud.local.apiserver.http.reply import ONE_PIECE, WITHOUT_BODY
from paddlecloud.local.apiserver.http.request import Request, Response
from paddlecloud.local.apiserver.proxy.links import Rewrite, rewrite_html, rewriter

CONNECT_TIMEOUT = 10.0
IDLE_TIMEOUT = 300.0
"""Seconds without a byte from the pod after which its answer is broken off."""
LONGEST_PAGE = 256 * 1024
"""Bytes of an HTML page whose links are rewritten; longer ones are passed on as they are."""

_HOP_BY_HOP = frozenset(
    (
        "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
        "transfer-encoding", "upgrade", "expect", "http2-settings",
    )
)  # fmt: skip
_FROM_PROXIES_ONLY = ("authorization", "impersonate-", "x-remote-", "x-forwarded-", "forwarded", "x-real-ip")
"""How the names of headers begin that hold credentials, or that pods believe because a proxy sets them."""
_OF_REQUESTS = frozenset(("content-length", "accept-encoding"))
"""Written anew: the body is complete, and links can be rewritten only in a page that is not compressed."""
_OF_ANSWERS = frozenset(("content-length", "content-type", "date"))
"""Written by the API server as for every answer."""


class BackendAddress(NamedTuple):
    """`port` is where the pod listens, `known_port` the number that its program asked for."""

    scheme: str
    ip: str
    port: int
    known_port: int


async def exchange(request: Request, address: BackendAddress, *, path: str, prefix: str, held: ExitStack) -> Response:
    """The pod's answer. `path` is the one for the pod, below `prefix` in the URL of the request.

    `held` is closed as soon as all of the answer has been passed on.
    """
    body = _Body(held)
    query = f"?{request.raw_query}" if request.raw_query else ""
    url = URL(f"{address.scheme}://{address.ip}:{address.port}{path or '/'}{query}", encoded=True)
    headers = _kept(request.headers.items(), _OF_REQUESTS, _FROM_PROXIES_ONLY)
    headers["Accept-Encoding"] = "identity"
    headers["X-Forwarded-Uri"] = prefix + path
    try:
        answer = await body.begin(request, url, headers)
        if answer.status < 200:
            raise ClientError(f"status {answer.status} without a request for it")
        pod = f"{address.ip}:{address.known_port}"
        return await _response(request, answer, body, rewriter(prefix, pod=pod, host=request.header("host")))
    except (ClientError, OSError, asyncio.TimeoutError) as error:
        await body.aclose()
        reason = str(error) or "no answer in time"
        raise errors.ServiceUnavailable(f"error trying to reach service: {reason}") from error
    except BaseException:
        await body.aclose()
        raise


class _Body:
    """The pod's answer piece by piece, and everything that is open until its end."""

    def __init__(self, held: ExitStack) -> None:
        self._held = held
        self._session = ClientSession(
            connector=TCPConnector(force_close=True),
            cookie_jar=DummyCookieJar(),
            timeout=ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT, sock_read=IDLE_TIMEOUT),
            auto_decompress=False,
            skip_auto_headers=("Accept", "Content-Type", "User-Agent"),
            max_field_size=MAX_HEADER,
        )
        self._answer: ClientResponse | None = None
        self._first = bytearray()
        """What was read already. A hostile pod sends it byte by byte: `bytes` would be copied for each."""

    async def begin(self, request: Request, url: URL, headers: CIMultiDict[str]) -> ClientResponse:
        self._answer = await self._session.request(
            request.method, url, headers=headers, data=request.body or None, allow_redirects=False, ssl=False
        )
        return self._answer

    async def read(self, most: int) -> bytes | None:
        """All of it, if it is no longer than `most`."""
        assert self._answer is not None
        while len(self._first) <= most:
            piece = await self._answer.content.readany()
            if not piece:
                await self.aclose()
                return bytes(self._first)
            self._first += piece
        return None

    def __aiter__(self) -> _Body:
        return self

    async def __anext__(self) -> bytes:
        assert self._answer is not None
        if self._first:
            piece = bytes(self._first)
            self._first.clear()
            return piece
        try:
            piece = await self._answer.content.readany()
        except (ClientError, asyncio.TimeoutError) as error:  # half an answer must not look like a whole one
            raise ConnectionResetError("the pod broke off its answer") from error
        if not piece:
            raise StopAsyncIteration
        return piece

    async def aclose(self) -> None:
        with self._held:  # also where the client leaves just now
            if self._answer is not None:
                self._answer.close()
            await self._session.close()


async def _response(request: Request, answer: ClientResponse, body: _Body, rewrite: Rewrite) -> Response:
    headers = _kept(answer.headers.items(), _OF_ANSWERS)
    if location := headers.get("Location"):
        headers["Location"] = rewrite(location)
    made = Response(answer.status, content_type=answer.headers.get("Content-Type", ""), headers=headers)
    if answer.status in WITHOUT_BODY:
        await body.aclose()
        return made
    if request.method == "HEAD":
        made.stream = body
        return made
    is_page = made.content_type.partition(";")[0].strip().lower() == "text/html"
    rewritten = is_page and not location and "Content-Encoding" not in headers
    if not rewritten and (answer.content_length is None or answer.content_length > ONE_PIECE):
        made.stream = body
        return made
    whole = await body.read(LONGEST_PAGE if rewritten else ONE_PIECE)
    if whole is None:
        made.stream = body
    else:
        made.body = await asyncio.to_thread(rewrite_html, whole, rewrite) if rewritten else whole
    return made


def _kept(
    headers: Iterable[tuple[str, str]], dropped: frozenset[str], prefixes: tuple[str, ...] = ()
) -> CIMultiDict[str]:
    """Those of a message, without those of one connection, which `Connection` may name."""
    pairs = [(name, value, name.lower()) for name, value in headers]
    named = (value for _, value, lowered in pairs if lowered == "connection")
    unwanted = _HOP_BY_HOP | dropped | {token.strip().lower() for value in named for token in value.split(",")}
    return CIMultiDict(
        (name, value) for name, value, lowered in pairs if lowered not in unwanted and not lowered.startswith(prefixes)
    )
