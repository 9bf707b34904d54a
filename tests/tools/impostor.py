"""A program of another user that took addresses before their owners did: it answers everything and keeps what it got.

It answers in plain HTTP and, with its own certificate, TLS, by what the client begins with.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterable
from pathlib import Path

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"


class Impostor:
    """A context manager; `received` is all that came, decrypted."""

    def __init__(self, addresses: Iterable[str], port: int, certificate: Path, key: Path) -> None:
        self.received = bytearray()
        self.requests = 0
        self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._tls.load_cert_chain(certificate, key)
        self._listeners = [listener for address in addresses if (listener := _bound(address, port)) is not None]

    @property
    def addresses(self) -> list[str]:
        return [listener.getsockname()[0] for listener in self._listeners]

    def __enter__(self) -> Impostor:
        for listener in self._listeners:
            threading.Thread(target=self._serve, args=(listener,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for listener in self._listeners:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()

    def _serve(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        connection.settimeout(5)
        try:
            if connection.recv(1, socket.MSG_PEEK) == b"\x16":
                connection = self._tls.wrap_socket(connection, server_side=True)
            self.received += connection.recv(1 << 16)
            self.requests += 1
            connection.sendall(ANSWER)
        except OSError:
            pass  # a client that does not trust this peer goes away
        finally:
            connection.close()


def _bound(address: str, port: int) -> socket.socket | None:
    listener = socket.socket()
    try:
        listener.bind((address, port))
    except OSError:
        listener.close()
        return None  # somebody was there first
    listener.listen(16)
    return listener
