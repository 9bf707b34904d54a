"""One request and its answer, from the head of the one to the end of the other.

It is passed between the client's connection, the revision's queue and a pod's connection, and ends exactly once: by a
complete answer, by a refusal of the gateway's own, or by breaking the client's connection when half an answer has been
sent already, so that it cannot pass for a whole one.

A request is sent again only when no pod can have acted on it: the connection was refused, or a connection kept from an
earlier request broke before a byte of an answer and the method may be repeated.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from paddlecloud.local.knative.gateway.bodies import LAST_CHUNK, Body, UntilClose, body_of, chunk
from paddlecloud.local.knative.gateway.http1 import (
    CHUNKED,
    HTTP2_ADVICE,
    UNTIL_CLOSE,
    BadMessage,
    RequestHead,
    ResponseHead,
    render,
)
from paddlecloud.local.knative.gateway.outgoing import OutgoingBody
from paddlecloud.local.knative.gateway.upstream import Upstream, connect, idle_connection

if TYPE_CHECKING:
    from paddlecloud.local.knative.gateway.client import Client
    from paddlecloud.local.knative.gateway.revisions import Backend, Revision

REPEATABLE = frozenset((b"GET", b"HEAD", b"OPTIONS", b"PUT", b"DELETE"))
ATTEMPTS = 3
PATIENCE = 3.0
"""Seconds during which refused connections are tried again."""


class Exchange:
    __slots__ = (
        "_attempts",
        "_backend",
        "_body",
        "_chunk_out",
        "_connecting",
        "_reader",
        "_refused",
        "_reusable",
        "_upstream",
        "answered",
        "began",
        "client",
        "deadline",
        "head",
        "keep_alive",
        "over",
        "revision",
        "tunnel",
    )  # fmt: skip

    def __init__(self, client: Client, head: RequestHead, revision: Revision, *, now: float) -> None:
        self.client = client
        self.head = head
        self.revision = revision
        self.began = now
        self.deadline = now + revision.timeout
        self.over = False
        self.answered = 0
        """The status that was sent, 0 before one was."""
        self.keep_alive = head.keep_alive
        self.tunnel = False
        self._body = OutgoingBody(head.length)
        self._reader: Body | None = None
        self._chunk_out = False
        self._backend: Backend | None = None
        self._upstream: Upstream | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._reusable = False
        self._attempts = 0
        self._refused = 0.0

    @property
    def wants_body(self) -> bool:
        return not self._body.whole

    # From the client

    def more(self, data: bytes) -> bytes:
        """Take a piece of the request's body; returns what belongs to the next request."""
        out, rest = self._body.take(data)
        if self._upstream is not None:
            self._upstream.transport.write(out)
            self._body.passed_on()
        elif self._body.full:
            self.client.hold("queue")
        return rest

    def pass_on(self, data: bytes) -> None:
        """Bytes of a tunnel."""
        if self._upstream is not None:
            self._upstream.transport.write(data)

    def hold_answer(self) -> None:
        if self._upstream is not None:
            self._upstream.transport.pause_reading()

    def continue_answer(self) -> None:
        if self._upstream is not None:
            self._upstream.transport.resume_reading()

    def client_gone(self) -> None:
        if not self.over:
            self._end(0, keep=False)

    # To a pod

    def go(self, backend: Backend) -> None:
        """A pod has a place for it."""
        self._backend = backend
        kept = idle_connection(backend, self.client.now())
        if kept is not None:
            self._send(kept)
        else:
            self._connecting = asyncio.ensure_future(self._connect(backend))

    async def _connect(self, backend: Backend) -> None:
        try:
            connection = await connect(backend)
        except OSError as error:
            if not self.over:
                self._was_refused(backend, error)
            return
        if self.over:
            connection.close()
        else:
            backend.answered()
            self._send(connection)

    def _was_refused(self, backend: Backend, error: OSError) -> None:
        now = self.client.now()
        self._backend = None
        backend.refused(now)
        backend.give_back()
        self._refused = self._refused or now
        if now - self._refused > PATIENCE:
            self.fail(502, f"no pod takes a connection: {error.strerror or error}")
        else:
            self.revision.again(self)

    def _send(self, connection: Upstream) -> None:
        self._upstream = connection
        self._attempts += 1
        head = self.head
        more = [self.client.forwarded]
        if head.length == CHUNKED:
            more.append(b"Transfer-Encoding: chunked")
        if head.upgrade:
            more += [b"Connection: Upgrade", b"Upgrade: " + head.upgrade]
        request = render(b"%b %b HTTP/1.1\r\n" % (head.method, head.target), head.headers, *more)
        connection.begin(self, request + self._body.so_far())
        self.client.go_on("queue")
        if head.expects and self.wants_body and self._attempts == 1:
            self.client.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    # From the pod

    def answer(self, head: ResponseHead, data: bytes) -> None:
        """The head of the answer, and what came with it."""
        if head.status == 101:
            self._open_tunnel(head, data)
            return
        self.answered = head.status
        client, modern = self.client, self.head.modern
        unbounded = head.length in (CHUNKED, UNTIL_CLOSE)
        self._chunk_out = unbounded and modern
        if (unbounded and not modern) or client.leaving or self.wants_body:
            self.keep_alive = False
        more = []
        if self._chunk_out:
            more.append(b"Transfer-Encoding: chunked")
        if not self.keep_alive:
            more.append(b"Connection: close")
        elif not modern:
            more.append(b"Connection: keep-alive")
        self._reusable = head.keep_alive
        first = render(head.first, head.headers, *more)
        self._reader = body_of(head.length, status=502)
        if self._reader is None:
            client.transport.write(first)
            self._end(head.status, keep=not data)  # what a pod sends after the end could pass for the next answer
        else:
            self._pass_answer(first, data)

    def answer_more(self, data: bytes) -> None:
        if self.tunnel:
            self.client.transport.write(data)
        else:
            self._pass_answer(b"", data)

    def _pass_answer(self, before: bytes, data: bytes) -> None:
        assert self._reader is not None
        if not data:
            if before:
                self.client.transport.write(before)
            return
        try:
            piece = self._reader.feed(data)
        except BadMessage:
            self.client.transport.write(before)
            self._break()
            return
        out = piece.content
        if self._chunk_out:
            out = chunk(out) + (LAST_CHUNK if piece.ended else b"")
        self.client.transport.write(before + out if before else out)
        if piece.ended:
            self._end(self.answered, keep=not piece.rest)

    def _open_tunnel(self, head: ResponseHead, data: bytes) -> None:
        self.answered = 101
        self.tunnel = True
        self.keep_alive = False
        more = (b"Connection: Upgrade", b"Upgrade: " + (head.upgrade or self.head.upgrade))
        self.client.transport.write(render(head.first, head.headers, *more) + data)
        self.client.tunnelled()

    def lost(self, *, clean: bool) -> None:
        """The pod's connection is gone."""
        if self.over:
            return
        connection, self._upstream = self._upstream, None
        assert connection is not None
        if self.tunnel:
            self._end(101, keep=False)
        elif self.answered:
            if clean and isinstance(self._reader, UntilClose):
                self.client.transport.write(LAST_CHUNK if self._chunk_out else b"")
                self._end(self.answered, keep=False)
            else:
                self._break()
        elif self._may_repeat(connection):
            backend, self._backend = self._backend, None
            assert backend is not None
            backend.give_back()
            self.revision.again(self)
        else:
            self.fail(502, "the pod closed the connection without an answer")

    def _may_repeat(self, connection: Upstream) -> bool:
        return (
            connection.used
            and connection.silent
            and self.head.method in REPEATABLE
            and self._body.can_be_sent_again
            and self._attempts < ATTEMPTS
        )

    # Ends

    def expire(self) -> None:
        """The time a request may take is over."""
        if self._upstream is None:
            self.fail(504, f"no pod was ready within {self.revision.timeout:.0f} s")
        else:
            self.fail(504, f"no answer within {self.revision.timeout:.0f} s")

    def refuse(self, status: int, message: str, *, retry_after: int | None = None) -> None:
        """An answer of the gateway's own, before any pod was asked."""
        self.fail(status, message, retry_after=retry_after)

    def fail(self, status: int, message: str, *, retry_after: int | None = None) -> None:
        if self.over:
            return
        if self.answered:
            self._break()
            return
        self.keep_alive = self.keep_alive and self._body.whole
        if status == 502 and self.revision.h2c:
            message = f"{message}; {HTTP2_ADVICE}"
        self.client.say(status, message, keep_alive=self.keep_alive, retry_after=retry_after)
        self._end(status, keep=False)

    def _break(self) -> None:
        """Half an answer is out: the client must see an error, not an end."""
        self.client.transport.abort()
        self._end(502, keep=False)

    def _end(self, status: int, *, keep: bool) -> None:
        self.over = True
        now = self.client.now()
        connection, self._upstream = self._upstream, None
        if connection is not None:
            if keep and self._body.whole and self._reusable:
                connection.finish(now, keep=True)
            else:
                connection.abort()
        if self._backend is not None:
            backend, self._backend = self._backend, None
            backend.give_back()
        self.revision.stats.leave(now, status, now - self.began)
        self.client.done(self)
        if self.revision.waiting:
            self.revision.dispatch()
