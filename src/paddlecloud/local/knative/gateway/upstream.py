"""A connection from the gateway to a pod, kept open between requests."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Any, cast

from paddlecloud.local.knative.gateway.http1 import MAX_HEAD, READ, BadMessage, read_response
from paddlecloud.local.knative.gateway.revisions import IDLE

if TYPE_CHECKING:
    from paddlecloud.local.knative.gateway.exchange import Exchange
    from paddlecloud.local.knative.gateway.revisions import Backend

CONNECT_TIMEOUT = 5.0
_shared = bytearray(READ)
_view = memoryview(_shared)
"""Where the kernel puts what it received. It is copied out before anything else can run."""


class Upstream(asyncio.BufferedProtocol):
    __slots__ = ("_buffer", "_head_read", "_heads", "backend", "exchange", "since", "transport", "used")

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.exchange: Exchange | None = None
        self.since = 0.0
        self.used = False
        self.transport: asyncio.Transport = cast(Any, None)
        self._buffer = bytearray()
        """The head of the answer, as long as it is not complete."""
        self._heads = 0
        """Bytes of complete heads of this answer: interim ones (1xx), and the last."""
        self._head_read = False

    # Events of the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return _view

    def buffer_updated(self, nbytes: int) -> None:
        exchange = self.exchange
        if exchange is None:
            self.close()  # the pod sent bytes without a request
            return
        data = bytes(_view[:nbytes])
        if self._head_read:
            exchange.answer_more(data)
            return
        try:
            self._read_heads(exchange, data)
        except BadMessage as error:
            exchange.fail(error.status, f"{error}")

    def _read_heads(self, exchange: Exchange, data: bytes | bytearray) -> None:
        """Interim heads count towards the longest head: otherwise a pod could send them for ever."""
        known = len(self._buffer)
        if known:
            self._buffer += data
            data = self._buffer
        at = 0
        while (end := data.find(b"\r\n\r\n", max(at, known - 3))) >= 0:
            self._heads += end + 4 - at
            self._check_size(self._heads)
            head = read_response(bytes(data[at : end + 2]), to=exchange.head.method)
            at = end + 4
            if head.status >= 200 or (head.status == 101 and exchange.head.upgrade):
                self._head_read = True
                rest = bytes(data[at:])
                self._buffer.clear()
                exchange.answer(head, rest)
                return  # by now this connection may have begun another exchange
            # other interim answers are for this connection alone
        self._check_size(self._heads + len(data) - at)
        if at or not known:
            self._buffer = bytearray(data[at:])

    def _check_size(self, heads: int) -> None:
        if heads > MAX_HEAD:
            raise BadMessage(502, f"the head of the pod's answer is longer than {MAX_HEAD} bytes")

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        exchange, self.exchange = self.exchange, None
        if exchange is not None:
            exchange.lost(clean=exc is None)
        elif self in self.backend.idle:
            self.backend.idle.remove(self)

    def pause_writing(self) -> None:
        if self.exchange is not None:
            self.exchange.client.hold("pod")

    def resume_writing(self) -> None:
        if self.exchange is not None:
            self.exchange.client.go_on("pod")

    # For the exchange

    def begin(self, exchange: Exchange, request: bytes) -> None:
        self.exchange = exchange
        self._head_read = False
        self._buffer.clear()
        self._heads = 0
        self.transport.write(request)

    @property
    def silent(self) -> bool:
        """Whether not a byte of an answer has come."""
        return not self._heads and not self._buffer

    def finish(self, now: float, *, keep: bool) -> None:
        """The answer is complete."""
        self.exchange = None
        if keep and not self.backend.gone and not self.transport.is_closing():
            self.since = now
            self.used = True
            self.transport.resume_reading()
            self.backend.idle.append(self)
        else:
            self.close()

    def close(self) -> None:
        """What the pod did not read of a request that is answered would keep the connection open: it is dropped."""
        self.exchange = None
        self.transport.abort() if self.transport.get_write_buffer_size() else self.transport.close()

    def abort(self) -> None:
        self.exchange = None
        self.transport.abort()


def idle_connection(backend: Backend, now: float) -> Upstream | None:
    """The one used last, if it is still good."""
    idle = backend.idle
    while idle:
        found = idle.pop()
        if now - found.since <= IDLE and not found.transport.is_closing():
            return found
        found.close()
    return None


async def connect(backend: Backend) -> Upstream:
    """Raises OSError when the pod does not take the connection in time."""
    loop = asyncio.get_running_loop()
    try:
        _, protocol = await asyncio.wait_for(
            loop.create_connection(lambda: Upstream(backend), *backend.address), CONNECT_TIMEOUT
        )
    except asyncio.TimeoutError:
        raise OSError("no answer to a connection attempt") from None
    connection = protocol.transport.get_extra_info("socket")
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return protocol
