"""A connection from a client to the gateway: requests one after the other, each routed by its host or path."""

from __future__ import annotations

import asyncio
import http
import json
from typing import TYPE_CHECKING, Any, cast

from paddlecloud.local.knative.gateway.exchange import Exchange
from paddlecloud.local.knative.gateway.http1 import MAX_HEAD, READ, BadMessage, RequestHead, read_request
from paddlecloud.local.knative.gateway.outgoing import KEPT

if TYPE_CHECKING:
    from paddlecloud.local.knative.gateway.table import Table

HEAD_TIMEOUT = 30.0
KEEP_ALIVE = 75.0
STALLED = 300.0
"""Seconds a client may take without reading a byte of what was sent to it."""
LINGER = 2.0
"""Seconds for a client to take its last answer and hang up."""
AT_ONCE = 16
"""Requests of one client that are begun before other clients have their turn."""
FOREVER = float("inf")

_shared = bytearray(READ)
_view = memoryview(_shared)


class Client(asyncio.BufferedProtocol):
    __slots__ = (
        "_buffer",
        "_exchange",
        "_holds",
        "_lingers",
        "_port",
        "_searched",
        "_table",
        "_unread",
        "deadline",
        "forwarded",
        "leaving",
        "now",
        "transport",
    )

    def __init__(self, table: Table, port: int | None = None) -> None:
        """`port` is the one of a single route that the client came to, None for the one that they share."""
        self._table = table
        self._port = port
        self.now = table.now
        self.transport: asyncio.Transport = cast(Any, None)
        self.forwarded = b""
        self.deadline = FOREVER
        self.leaving = False
        self._buffer: bytes | bytearray = b""
        """What came and was not taken yet; a bytearray once a head comes in pieces, which then costs no copies."""
        self._searched = 0
        """Bytes of it that hold no end of a head."""
        self._exchange: Exchange | None = None
        self._holds: set[str] = set()
        self._lingers = False
        self._unread = False
        """Whether the client does not read what was sent to it."""

    @property
    def is_idle(self) -> bool:
        return self._exchange is None

    # Events of the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        address = str(peer[0]) if peer else "unknown"
        self.forwarded = b"X-Forwarded-For: %b\r\nX-Forwarded-Proto: http" % address.encode()
        self.deadline = self.now() + HEAD_TIMEOUT
        self._table.came(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return _view

    def buffer_updated(self, nbytes: int) -> None:
        if self._lingers:
            return
        data = bytes(_view[:nbytes])
        exchange = self._exchange
        if exchange is None:
            self._keep(data)
            self._next()
        elif exchange.tunnel:
            exchange.pass_on(data)
        elif exchange.wants_body and not self._buffer:
            self._feed(exchange, data)
        else:
            self._keep(data)  # the next request, sent before this one is answered
            self._bound()

    def _keep(self, data: bytes) -> None:
        if not self._buffer:
            self._buffer = data
            return
        if isinstance(self._buffer, bytes):
            self._buffer = bytearray(self._buffer)
        self._buffer += data

    def _drop(self, count: int) -> None:
        """Forget the first bytes: of a bytearray that costs nothing, however many requests it holds."""
        self._searched = 0
        if count == len(self._buffer):
            self._buffer = b""
            return
        if isinstance(self._buffer, bytes):
            self._buffer = bytearray(self._buffer)
        del self._buffer[:count]

    def _taken(self) -> bytes:
        """All that came; nothing is kept of it."""
        data, self._buffer, self._searched = bytes(self._buffer), b"", 0
        return data

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._table.left(self)
        self.deadline = FOREVER
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.client_gone()

    def pause_writing(self) -> None:
        self._unread = True
        self.deadline = self.now() + STALLED
        if self._exchange is not None:
            self._exchange.hold_answer()

    def resume_writing(self) -> None:
        exchange = self._exchange
        self.deadline = exchange.deadline if exchange is not None and not exchange.tunnel else FOREVER
        self._unread = False
        if exchange is not None:
            exchange.continue_answer()
        else:
            self._next()

    # Requests

    def _next(self) -> None:
        """Begin as many requests as can be begun now: one, or several that are refused at once. After a few of them the
        other clients have their turn."""
        for _ in range(AT_ONCE):
            if not self._may_begin():
                break
            buffer = self._buffer
            end = buffer.find(b"\r\n\r\n", max(0, self._searched - 3), MAX_HEAD + 4)
            if end < 0:
                self._wait_for_head(buffer)
                return
            head = bytes(buffer[: end + 2])
            self._drop(end + 4)
            try:
                request = read_request(head)
            except BadMessage as error:
                self._mistaken(error)
                return
            self._begin(request)
        else:
            if self._may_begin():
                asyncio.get_running_loop().call_soon(self._next)
        self._bound()

    def _may_begin(self) -> bool:
        return bool(self._buffer) and self._exchange is None and not self._unread and not self.transport.is_closing()

    def _wait_for_head(self, buffer: bytes | bytearray) -> None:
        if len(buffer) > MAX_HEAD:
            self._mistaken(BadMessage(431, f"the head is longer than {MAX_HEAD} bytes"))
        elif buffer.find(b"\n", self._searched) >= 0 and b"\r" not in buffer:
            self._mistaken(BadMessage(400, "lines must end with CR LF"))
        else:
            self._searched = len(buffer)
            self.deadline = min(self.deadline, self.now() + HEAD_TIMEOUT)
            self.go_on("pipeline")

    def _bound(self) -> None:
        """Read on only while what waits to be begun is small."""
        if len(self._buffer) > KEPT:
            self.hold("pipeline")
        else:
            self.go_on("pipeline")

    def _begin(self, head: RequestHead) -> None:
        found = self._table.find(head, self._port)
        if found is None:
            message = f"no service is known as {head.host or 'nothing'}"
            self._refuse(head, 404, message)
            return
        revision, head = found
        if revision is None:
            self._refuse(head, 200, "ok")
            return
        exchange = self._exchange = Exchange(self, head, revision, now=self.now())
        self.deadline = exchange.deadline
        if exchange.wants_body and self._buffer:
            self._feed(exchange, self._taken())
            if exchange.over:
                return
        revision.enter(exchange)

    def _feed(self, exchange: Exchange, data: bytes) -> None:
        try:
            self._buffer = exchange.more(data)
        except BadMessage as error:
            exchange.keep_alive = False
            exchange.fail(error.status, str(error))

    def _refuse(self, head: RequestHead, status: int, message: str) -> None:
        keep = head.keep_alive and head.length == 0 and not self.leaving
        self.say(status, message, keep_alive=keep)
        if keep:
            self.deadline = self.now() + KEEP_ALIVE
        else:
            self._linger()

    def _mistaken(self, error: BadMessage) -> None:
        self.say(error.status, str(error), keep_alive=False)
        self._linger()

    def _linger(self) -> None:
        """Close, but not on a client that still sends: it would be reset before it could read its answer."""
        if self.transport.is_closing():
            return
        self._lingers = True
        self._taken()
        self._holds.clear()
        self.transport.resume_reading()
        self.transport.write_eof()
        self.deadline = self.now() + LINGER

    # For the exchange

    def say(self, status: int, message: str, *, keep_alive: bool, retry_after: int | None = None) -> None:
        body = json.dumps({"error": message} if status >= 400 else {"status": message}).encode() + b"\n"
        phrase = http.HTTPStatus(status).phrase.encode()
        lines = [
            b"HTTP/1.1 %d %b" % (status, phrase),
            b"Content-Type: application/json",
            b"Content-Length: %d" % len(body),
        ]
        if retry_after is not None:
            lines.append(b"Retry-After: %d" % retry_after)
        lines.append(b"Connection: keep-alive" if keep_alive else b"Connection: close")
        self.transport.write(b"\r\n".join(lines) + b"\r\n\r\n" + body)

    def done(self, exchange: Exchange) -> None:
        """The answer is complete, or the exchange was given up."""
        if self._exchange is exchange:
            self._exchange = None
        if self.transport.is_closing():
            return
        if exchange.wants_body:
            self._linger()
            return
        if not exchange.keep_alive or self.leaving:
            self.transport.close()
            return
        self._table.answered(self)
        self.deadline = self.now() + KEEP_ALIVE
        self._holds.clear()
        self.transport.resume_reading()
        if self._buffer:
            asyncio.get_running_loop().call_soon(self._next)

    def tunnelled(self) -> None:
        self.deadline = FOREVER
        if self._buffer and self._exchange is not None:
            self._exchange.pass_on(self._taken())

    def hold(self, why: str) -> None:
        """Read no more for now."""
        self._holds.add(why)
        self.transport.pause_reading()

    def go_on(self, why: str) -> None:
        if why in self._holds:
            self._holds.discard(why)
            if not self._holds and not self.transport.is_closing():
                self.transport.resume_reading()

    # For the process

    def expire(self) -> None:
        """The deadline has passed: that of an answer, of a head, or of a client that does nothing."""
        self.deadline = FOREVER
        exchange = self._exchange
        if self._lingers:
            self.transport.abort()
        elif exchange is not None and not exchange.answered:
            exchange.expire()
        elif exchange is not None or not self._buffer:
            self.transport.abort() if exchange is not None else self.transport.close()
        else:
            self._mistaken(BadMessage(408, f"the head did not come within {HEAD_TIMEOUT:.0f} s"))

    def leave(self) -> None:
        """The process ends: finish what is in progress, begin nothing."""
        self.leaving = True
        if self._exchange is None and not self._lingers:
            self.transport.close()
