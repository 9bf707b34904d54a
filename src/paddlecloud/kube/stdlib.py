"""The transport of short-lived programs: http.client, no event loop.

Importing asyncio and aiohttp costs more than the CLI may spend on a whole read command. The coroutines here never
suspend, so `drive` runs any client method built on them to its end with one `send`. Nothing runs concurrently and one
connection is kept for requests; each stream has its own.
"""

from __future__ import annotations

import http.client
import select
import socket
import ssl
import time
from collections.abc import AsyncIterator, Coroutine, Generator, Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

from paddlecloud.kube.config import Config
from paddlecloud.kube.credentials import Credential
from paddlecloud.kube.errors import ConfigError
from paddlecloud.kube.sockets import keep_alive
from paddlecloud.kube.transport import JSON, USER_AGENT, Response, refusal

T = TypeVar("T")

CHUNK = 1 << 16
DEFAULT_PORTS = {"http": 80, "https": 443}


def drive(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never suspends. One that does was given a transport that needs an event loop."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        value: T = done.value
        return value
    coroutine.close()
    raise RuntimeError("the coroutine waited for an event loop; drive() needs a StdlibTransport underneath")


def drive_iter(items: AsyncIterator[T]) -> Generator[T, None, None]:
    """The same for an asynchronous iterator; it is closed with the generator."""

    async def step() -> T:
        return await items.__anext__()

    async def close() -> None:
        closing = getattr(items, "aclose", None)
        if closing is not None:
            await closing()

    try:
        while True:
            try:
                yield drive(step())
            except StopAsyncIteration:
                return
    finally:
        drive(close())


async def sleep(seconds: float) -> None:
    """For coroutines that are driven: as `asyncio.sleep`, but nothing else runs meanwhile."""
    time.sleep(seconds)  # noqa: ASYNC251 - there is no event loop to hold up


class StdlibTransport:
    def __init__(self, config: Config, *, timeout: float = 60.0, user_agent: str = USER_AGENT) -> None:
        self._config = config
        self._timeout = timeout
        self._headers = [*config.headers, ("User-Agent", user_agent), ("Accept-Encoding", "identity")]
        self._kept: tuple[Credential, http.client.HTTPConnection] | None = None
        parts = urlsplit(config.server)
        self._host = parts.hostname or ""
        self._port = parts.port or DEFAULT_PORTS.get(parts.scheme, 443)
        self._prefix = f"{parts.scheme}://{parts.netloc}"

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
        headers = [("Accept", accept)]
        if body is not None:
            headers.append(("Content-Type", content_type))
        response = self._exchange(method, self._target(path, query), headers, body)
        if response.status == 401 and self._config.source.reject():
            response = self._exchange(method, self._target(path, query), headers, body)
        return response

    async def stream(
        self, path: str, *, query: Mapping[str, str] | None = None, accept: str = JSON
    ) -> AsyncIterator[bytes]:
        try:
            connection, answer = self._open_stream(self._target(path, query), accept)
            try:
                while chunk := answer.read1(CHUNK):
                    yield chunk
            finally:
                connection.close()
        except (http.client.HTTPException, OSError) as error:
            raise self._config.unreachable(error) from error

    async def close(self) -> None:
        if self._kept is not None:
            self._kept[1].close()
            self._kept = None

    def _open_stream(self, target: str, accept: str) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        for last in (False, True):
            credential = self._credential()
            connection = self._connect(credential)
            answer = self._send(connection, credential, "GET", target, [("Accept", accept)], None)
            if answer.status < 400:
                break
            response = Response(answer.status, answer.read(), _flat(answer))
            connection.close()
            if last or answer.status != 401 or not self._config.source.reject():
                raise refusal(response)
        if connection.sock is not None:
            connection.sock.settimeout(None)  # silence is normal in a stream; keep-alive finds dead peers
        return connection, answer

    def _exchange(self, method: str, target: str, headers: list[tuple[str, str]], body: bytes | None) -> Response:
        credential = self._credential()
        try:
            connection = self._reuse(credential) or self._connect(credential)
            self._kept = (credential, connection)
            answer = self._send(connection, credential, method, target, headers, body)
            response = Response(answer.status, answer.read(), _flat(answer))
            if answer.will_close:
                connection.close()
                self._kept = None
            return response
        except (http.client.HTTPException, OSError) as error:
            if self._kept is not None:
                self._kept[1].close()
                self._kept = None
            raise self._config.unreachable(error) from error

    def _credential(self) -> Credential:
        return self._config.source.peek() or self._config.source.fetch()

    def _reuse(self, credential: Credential) -> http.client.HTTPConnection | None:
        """The kept connection, unless its certificate changed or the server hung up meanwhile.

        Asking the socket first means a request is never sent into a connection known to be dead, so none has to be
        repeated, which for a POST could not be done safely.
        """
        if self._kept is None:
            return None
        made_with, connection = self._kept
        if connection.sock is not None and made_with[1:] == credential[1:]:
            readable, _, _ = select.select([connection.sock], [], [], 0)
            if not readable:
                return connection
        connection.close()
        return None

    def _connect(self, credential: Credential) -> http.client.HTTPConnection:
        context = self._config.tls(credential)
        if self._config.proxy is None:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
        elif context is not None:
            via = urlsplit(self._config.proxy)
            connection = http.client.HTTPConnection(via.hostname or "", via.port or 80, timeout=self._timeout)
            connection.set_tunnel(self._host, self._port)
        else:
            raise ConfigError(
                f"{self._config.server} is plain http behind a proxy; use https or unset the proxy",
                reason="Unsupported",
            )
        connection.connect()
        sock: socket.socket = connection.sock
        keep_alive(sock)
        if context is not None:
            try:
                connection.sock = context.wrap_socket(sock, server_hostname=self._config.server_name or self._host)
            except (ssl.SSLError, OSError):
                sock.close()
                raise
        return connection

    def _send(
        self,
        connection: http.client.HTTPConnection,
        credential: Credential,
        method: str,
        target: str,
        headers: list[tuple[str, str]],
        body: bytes | None,
    ) -> http.client.HTTPResponse:
        connection.putrequest(method, target, skip_accept_encoding=True)
        for name, value in (*self._headers, *headers):
            connection.putheader(name, value)
        if credential.authorization:
            connection.putheader("Authorization", credential.authorization)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        return connection.getresponse()

    def _target(self, path: str, query: Mapping[str, str] | None) -> str:
        return self._config.url(path, query)[len(self._prefix) :]


def _flat(answer: http.client.HTTPResponse) -> dict[str, str]:
    flat: dict[str, str] = {}
    for name, value in answer.getheaders():
        key = name.lower()
        flat[key] = f"{flat[key]}, {value}" if key in flat else value
    return flat
