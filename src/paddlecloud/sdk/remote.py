"""Programs run in containers and connections to ports of pods, over WebSockets, on any Kubernetes.

exec uses `v5.channel.k8s.io` (Kubernetes 1.30 and later) and falls back to `v4.channel.k8s.io`, which cannot report
the end of the input. Ports are forwarded over `v4.channel.k8s.io`, one WebSocket for each connection: every release
since 1.6 serves it.

In both, the first byte of a message names its channel:

    exec          0 stdin · 1 stdout · 2 stderr · 3 the final Status · 4 terminal size · 255 closes another channel
    port-forward  0 data · 1 error, each begun by the server with two bytes that repeat the port
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

import aiohttp
from yarl import URL

from paddlecloud.kube.config import Config
from paddlecloud.kube.errors import ApiError, BadRequest, Unauthorized, Unreachable
from paddlecloud.kube.resource import PODS
from paddlecloud.kube.sockets import keep_alive
from paddlecloud.kube.transport import USER_AGENT, Response, refusal

if TYPE_CHECKING:
    from aiohttp.connector import Connection as HttpConnection

    Socket = aiohttp.ClientWebSocketResponse[bool]

STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
V5, V4 = "v5.channel.k8s.io", "v4.channel.k8s.io"
MESSAGE = 64 * 1024
"""Bytes of input sent at once: proxies on the way may refuse larger messages."""
LARGEST = 64 << 20


class Output(NamedTuple):
    """`stream` is `stdout` or `stderr`."""

    stream: str
    data: bytes


class Remote:
    """Opens WebSockets to the server of a `Config`. Belongs to one event loop; `close` ends all of them."""

    def __init__(self, config: Config, *, user_agent: str = USER_AGENT) -> None:
        self._config = config
        self._agent = user_agent
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def exec(
        self,
        namespace: str,
        pod: str,
        command: Sequence[str],
        *,
        container: str | None = None,
        stdin: bool = False,
        tty: bool = False,
    ) -> Process:
        """Start a program beside a container. With a terminal, stderr is part of stdout."""
        query = [("command", word) for word in command]
        query += [("container", container)] if container else []
        flags = {"stdin": stdin, "stdout": True, "stderr": not tty, "tty": tty}
        query += [(name, "true") for name, wanted in flags.items() if wanted]
        socket = await self._open(PODS.path(namespace, pod, "exec"), query, (V5, V4))
        return Process(socket, self._config)

    async def connect(self, namespace: str, pod: str, port: int) -> Connection:
        """One connection to a port of a pod."""
        query = [("ports", str(port))]
        socket = await self._open(PODS.path(namespace, pod, "portforward"), query, (V4,))
        return Connection(socket, port)

    async def _open(self, path: str, query: Sequence[tuple[str, str]], protocols: tuple[str, ...]) -> Socket:
        source = self._config.source
        for last in (False, True):
            try:
                return await self._handshake(path, query, protocols)
            except Unauthorized:
                if last or not await asyncio.to_thread(source.reject):
                    raise
            except aiohttp.WSServerHandshakeError as error:
                raise BadRequest(f"the server does not support WebSocket here ({error.message})") from error
            except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as error:
                raise self._config.unreachable(error) from error
        raise AssertionError("the second turn returns or raises")

    async def _handshake(self, path: str, query: Sequence[tuple[str, str]], protocols: tuple[str, ...]) -> Socket:
        config = self._config
        credential = config.source.peek()
        if credential is None:
            credential = await asyncio.to_thread(config.source.fetch)
        headers = [*config.headers, ("User-Agent", self._agent)]
        headers += [("Authorization", credential.authorization)] if credential.authorization else []
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0), response_class=_RefusalResponse
            )
        socket = await self._session.ws_connect(
            URL(f"{config.url(path)}?{urlencode(query)}", encoded=True),
            protocols=protocols,
            headers=headers,
            ssl=config.tls(credential) or True,
            server_hostname=config.server_name,
            proxy=config.proxy,
            max_msg_size=LARGEST,
        )
        keep_alive(socket.get_extra_info("socket"))
        return socket


class _RefusalResponse(aiohttp.ClientResponse):
    """A response that raises what a refusal says: a handshake that fails would drop the server's message."""

    async def start(self, connection: HttpConnection) -> aiohttp.ClientResponse:
        answer = await super().start(connection)
        if self.status >= 400:
            raise refusal(Response(self.status, await self.read()))
        return answer


class Process:
    """A program in a container. `read` until it gives None, then `exit_code` is how it ended. Always `close`."""

    def __init__(self, socket: Socket, config: Config) -> None:
        self._socket = socket
        self._config = config
        self._status: dict[str, Any] | None = None

    @property
    def can_end_input(self) -> bool:
        """False on servers that support version 4 alone: their programs never see the end of their input."""
        return self._socket.protocol == V5

    async def read(self) -> Output | None:
        """The next output; None after the last. Raises `Unreachable` when the connection broke first."""
        while True:
            message = await self._socket.receive()
            if message.type is aiohttp.WSMsgType.TEXT:
                data = message.data.encode()
            elif message.type is aiohttp.WSMsgType.BINARY:
                data = bytes(message.data)
            else:
                if self._status is None:
                    why = self._socket.exception() or message.extra or "it was closed"
                    raise self._config.unreachable(ConnectionError(f"the connection to the program broke: {why}"))
                return None
            if len(data) > 1 and data[0] in (STDOUT, STDERR):
                return Output("stdout" if data[0] == STDOUT else "stderr", data[1:])
            if len(data) > 1 and data[0] == ERROR:
                self._status = _status(data[1:])
                return None

    async def write(self, data: bytes) -> None:
        """To the program's input; waits while it does not read. Raises `Unreachable` when the connection is gone."""
        try:
            for begin in range(0, len(data), MESSAGE):
                await self._socket.send_bytes(bytes([STDIN]) + data[begin : begin + MESSAGE])
        except (ConnectionError, aiohttp.ClientError) as error:
            raise self._config.unreachable(error) from error

    async def end_input(self) -> None:
        """Close the input of the program, where the server supports it."""
        if self.can_end_input and not self._socket.closed:
            await self._socket.send_bytes(bytes([CLOSE, STDIN]))

    async def resize(self, columns: int, rows: int) -> None:
        if not self._socket.closed:
            size = json.dumps({"Width": columns, "Height": rows}).encode()
            await self._socket.send_bytes(bytes([RESIZE]) + size)

    @property
    def exit_code(self) -> int:
        """After the last `read`. Raises the server's error when the program could not be run."""
        if self._status is None:
            raise Unreachable("the program has not ended")
        return exit_code(self._status)

    async def close(self) -> None:
        """The server ends a program whose client is gone."""
        await self._socket.close()


class Connection:
    """Bytes to and from a port of a pod. There is no half-close: `close` ends both directions."""

    def __init__(self, socket: Socket, port: int) -> None:
        self._socket = socket
        self._port = port
        self._greeted: set[int] = set()

    async def read(self) -> bytes:
        """The next bytes; empty at the end. Raises `ApiError` with the pod's refusal."""
        while True:
            message = await self._socket.receive()
            if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
                return b""
            channel, data = message.data[0], bytes(message.data[1:])
            if channel not in self._greeted:
                self._greeted.add(channel)
                data = data[2:]
            if data and channel == 1:
                raise ApiError(data.decode(errors="replace").strip())
            if data:
                return data

    async def write(self, data: bytes) -> None:
        for begin in range(0, len(data), MESSAGE):
            await self._socket.send_bytes(b"\0" + data[begin : begin + MESSAGE])

    async def close(self) -> None:
        await self._socket.close()


def exit_code(status: Mapping[str, Any]) -> int:
    """The exit code in the Status that ends an exec; raises what else it says."""
    if status.get("status") == "Success":
        return 0
    for cause in (status.get("details") or {}).get("causes") or ():
        if cause.get("reason") == "ExitCode" and str(cause.get("message", "")).lstrip("-").isdigit():
            return int(cause["message"])
    raise ApiError.from_status(int(status.get("code") or 500), {"kind": "Status", **status})


def _status(data: bytes) -> dict[str, Any]:
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        body = None
    if isinstance(body, dict):
        return body
    return {"status": "Failure", "message": data.decode(errors="replace").strip()}
