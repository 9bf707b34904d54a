"""The transport of long-lived programs: aiohttp, connections kept and shared, any number of watches at once.

Requests and streams use pools of their own, so that watches held open for minutes never starve short requests.
One transport belongs to one event loop.
"""

from __future__ import annotations

import asyncio
import copy
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from paddlecloud.kube.config import Config
from paddlecloud.kube.credentials import ANONYMOUS, Credential, CredentialSource
from paddlecloud.kube.sockets import keep_alive
from paddlecloud.kube.transport import JSON, USER_AGENT, Response, refusal

REFUSAL_BYTES = 1 << 20
"""Of the answer of a program behind the API server, which may have no end."""
STREAM_GRACE = 30.0  # how much later than promised a server may end a watch before we call the connection dead


class HttpTransport:
    def __init__(
        self, config: Config, *, timeout: float = 60.0, connections: int = 64, user_agent: str = USER_AGENT
    ) -> None:
        self._config = config
        self._timeout = timeout
        self._connections = connections
        self._headers = CIMultiDict([*config.headers, ("User-Agent", user_agent), ("Accept-Encoding", "identity")])
        self._sessions: dict[bool, aiohttp.ClientSession] = {}  # by whether it streams
        self._tls: tuple[Credential, ssl.SSLContext | None] | None = None

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        accept: str = JSON,
    ) -> Response:
        headers = {"Accept": accept}
        if body is not None:
            headers["Content-Type"] = content_type
        timeout = aiohttp.ClientTimeout(total=self._timeout, sock_connect=10.0)
        try:
            answer = await self._open(method, self._url(path, query), headers, timeout, body=body)
            async with answer:
                return Response(answer.status, await answer.read(), _flat(answer))
        except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as error:
            raise self._config.unreachable(error) from error

    async def stream(
        self, path: str, *, query: Mapping[str, str] | None = None, accept: str = JSON
    ) -> AsyncIterator[bytes]:
        promised = (query or {}).get("timeoutSeconds")
        silence = float(promised) + STREAM_GRACE if promised else None
        timeout = aiohttp.ClientTimeout(sock_connect=10.0, sock_read=silence)
        try:
            answer = await self._open("GET", self._url(path, query), {"Accept": accept}, timeout, streams=True)
            try:
                if answer.status >= 400:
                    raise refusal(Response(answer.status, await _beginning(answer, REFUSAL_BYTES), _flat(answer)))
                connection = answer.connection
                if connection is not None and connection.transport is not None:
                    keep_alive(connection.transport.get_extra_info("socket"))
                async for chunk in answer.content.iter_any():
                    yield chunk
            finally:
                answer.close()
        except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as error:
            raise self._config.unreachable(error) from error

    def acting_as(self, source: CredentialSource) -> HttpTransport:
        """The same connections with credentials of another caller; only this transport is to be closed."""
        self._context(ANONYMOUS)  # made once: connections are shared by those who share it
        other = copy.copy(self)
        other._config = replace(self._config, source=source)
        return other

    async def close(self) -> None:
        sessions, self._sessions = list(self._sessions.values()), {}
        for session in sessions:
            await session.close()

    async def _open(
        self,
        method: str,
        url: URL,
        headers: Mapping[str, str],
        timeout: aiohttp.ClientTimeout,
        *,
        body: bytes | None = None,
        streams: bool = False,
    ) -> aiohttp.ClientResponse:
        """Send it; after a 401 once more, if the source of credentials has something new to offer."""
        source = self._config.source
        answer = await self._send(method, url, headers, timeout, body=body, streams=streams)
        if answer.status == 401 and await asyncio.to_thread(source.reject):
            answer.release()
            answer = await self._send(method, url, headers, timeout, body=body, streams=streams)
        return answer

    async def _send(
        self,
        method: str,
        url: URL,
        headers: Mapping[str, str],
        timeout: aiohttp.ClientTimeout,
        *,
        body: bytes | None,
        streams: bool,
    ) -> aiohttp.ClientResponse:
        source = self._config.source
        credential = source.peek()
        if credential is None:
            credential = await asyncio.to_thread(source.fetch)
        if credential.authorization:
            headers = {**headers, "Authorization": credential.authorization}
        return await self._session(streams).request(
            method,
            url,
            data=body,
            headers=headers,
            timeout=timeout,
            ssl=self._context(credential),
            server_hostname=self._config.server_name,
            proxy=self._config.proxy,
            allow_redirects=False,
        )

    def _session(self, streams: bool) -> aiohttp.ClientSession:
        session = self._sessions.get(streams)
        if session is None:
            connector = aiohttp.TCPConnector(limit=0 if streams else self._connections, keepalive_timeout=60)
            session = aiohttp.ClientSession(connector=connector, headers=self._headers, raise_for_status=False)
            self._sessions[streams] = session
        return session

    def _context(self, credential: Credential) -> ssl.SSLContext | bool:
        if self._tls is None or self._tls[0][1:] != credential[1:]:
            self._tls = (credential, self._config.tls(credential))
        return self._tls[1] or True

    def _url(self, path: str, query: Mapping[str, str] | None) -> URL:
        return URL(self._config.url(path, query), encoded=True)


async def _beginning(answer: aiohttp.ClientResponse, most: int) -> bytes:
    found = b""
    while len(found) < most and (chunk := await answer.content.read(most - len(found))):
        found += chunk
    return found


def _flat(answer: aiohttp.ClientResponse) -> dict[str, str]:
    flat: dict[str, str] = {}
    for name, value in answer.headers.items():
        key = name.lower()
        flat[key] = f"{flat[key]}, {value}" if key in flat else value
    return flat
