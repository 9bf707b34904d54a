"""TLS for the connections of a server: bytes from the socket, plain bytes to the protocol behind it, and back.

asyncio does this too, for everybody: clients, servers, connections that turn to TLS on their way. Here is one case, a
server that accepts nothing else, and it takes half the time: no read that must fail to show its end, no backlog, no
state machine, no quarter of a megabyte per connection. Left out is what this case never needs: `start_tls`,
renegotiation, waiting for the client's close_notify.

Between socket and protocol stays asyncio's own transport, which buffers, controls the flow and closes.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Iterable
from typing import Any

from paddlecloud.kube.server.listening import Newcomers

READ = 64 * 1024
RECORD = 16 * 1024  # plain bytes in a TLS record, at most
PIECE = 16 * RECORD  # plain bytes encrypted at once, so that a long answer is not held in two forms
AGREEMENT = 30.0  # seconds a client has for its handshake

Factory = Callable[[], asyncio.Protocol]


def secured(
    context: ssl.SSLContext, serve: Factory, *, most_waiting: int | None = None
) -> Callable[[], asyncio.BufferedProtocol]:
    """What `loop.create_server` takes: TLS in front of the protocol that `serve` makes for each connection.

    `most_waiting` connections may be without an agreement at a time; then the oldest of them are closed.
    """
    context.options |= ssl.OP_NO_RENEGOTIATION  # so that writing never has to wait for a read
    buffer = memoryview(bytearray(READ))  # one for all connections: what was read is decrypted before the next read
    newcomers = Newcomers(AGREEMENT, most_waiting)
    return lambda: _Connection(context, serve, buffer, newcomers)


class _Connection(asyncio.BufferedProtocol):
    """The side of the socket: what its transport talks to."""

    def __init__(self, context: ssl.SSLContext, serve: Factory, buffer: memoryview, newcomers: Newcomers) -> None:
        self._serve = serve
        self._newcomers = newcomers
        self._buffer = buffer
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._socket: asyncio.Transport
        self._plain: Transport | None = None  # once there is an agreement

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._socket = transport
        self._newcomers.add(self, transport.abort)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, count: int) -> None:
        self._incoming.write(self._buffer[:count])
        if self._plain is not None or self._agree():
            self.deliver()

    def _agree(self) -> bool:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            return False
        except ssl.SSLError:
            self._flush()  # the alert that says why
            self._socket.close()
            return False
        self._flush()
        self._newcomers.remove(self)
        self._plain = Transport(self, self._socket, self._tls, self._serve())
        self._plain.get_protocol().connection_made(self._plain)
        return True

    def deliver(self) -> None:
        """Hand on what has been received, as far as the protocol wants it now."""
        plain, tls = self._plain, self._tls
        assert plain is not None
        while plain.wanted and (self._incoming.pending or tls.pending()):
            try:
                data = tls.read(RECORD)
            except ssl.SSLWantReadError:
                break
            except ssl.SSLError:
                self._flush()
                self._socket.close()
                return
            if not data:  # the client sent close_notify
                plain.get_protocol().eof_received()
                plain.close()
                return
            plain.get_protocol().data_received(data)
        if self._outgoing.pending:  # what TLS sends by itself, such as new keys
            self._flush()

    def send(self, data: bytes | bytearray | memoryview) -> None:
        for start in range(0, len(data), PIECE):
            self._tls.write(data if len(data) <= PIECE else memoryview(data)[start : start + PIECE])
            self._socket.write(self._outgoing.read())

    def send_close_notify(self) -> None:
        try:
            self._tls.unwrap()
        except ssl.SSLError:
            pass  # it now waits for the client's close_notify, and we do not; or the connection had broken before
        self._flush()
        self._socket.close()

    def _flush(self) -> None:
        if self._outgoing.pending:
            self._socket.write(self._outgoing.read())

    def eof_received(self) -> None:
        if self._plain is not None:
            self._plain.get_protocol().eof_received()

    def connection_lost(self, error: Exception | None) -> None:
        self._newcomers.remove(self)
        if self._plain is not None:
            self._plain.closing = True
            self._plain.get_protocol().connection_lost(error)

    def pause_writing(self) -> None:
        if self._plain is not None:
            self._plain.get_protocol().pause_writing()

    def resume_writing(self) -> None:
        if self._plain is not None:
            self._plain.get_protocol().resume_writing()


class Transport(asyncio.Transport):
    """The plain side: what the protocol talks to."""

    def __init__(
        self, connection: _Connection, socket: asyncio.Transport, tls: ssl.SSLObject, protocol: asyncio.Protocol
    ) -> None:
        super().__init__()
        self._connection = connection
        self._socket = socket
        self._tls = tls
        self._protocol = protocol
        self._reading = True
        self.closing = False
        self._certificate: Any = ...

    @property
    def wanted(self) -> bool:
        """Whether the protocol takes data now."""
        return self._reading and not self.closing

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name == "peercert":
            if self._certificate is ...:
                self._certificate = self._tls.getpeercert()
            return self._certificate
        if name == "sslcontext":
            return self._tls.context
        if name == "ssl_object":
            return self._tls
        return self._socket.get_extra_info(name, default)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        assert isinstance(protocol, asyncio.Protocol)
        self._protocol = protocol

    def get_protocol(self) -> asyncio.Protocol:
        return self._protocol

    def is_closing(self) -> bool:
        return self.closing or self._socket.is_closing()

    def close(self) -> None:
        """After what was written has been sent."""
        if not self.closing:
            self.closing = True
            self._connection.send_close_notify()

    def abort(self) -> None:
        self.closing = True
        self._socket.abort()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if data and not self.closing:
            self._connection.send(data)

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        for data in list_of_data:
            self.write(data)

    def can_write_eof(self) -> bool:
        return False

    def is_reading(self) -> bool:
        return self._reading

    def pause_reading(self) -> None:
        self._reading = False
        self._socket.pause_reading()

    def resume_reading(self) -> None:
        if self._reading or self.closing:
            return
        self._reading = True
        self._socket.resume_reading()
        asyncio.get_running_loop().call_soon(self._connection.deliver)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._socket.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        return self._socket.get_write_buffer_size()
