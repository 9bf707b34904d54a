"""A finished answer on its way to the network: head and body in one piece, so that it is one TLS record if it is small.

aiohttp's own response class builds a header dictionary, fills in defaults and writes in parts; for answers that are
complete from the start this costs as much as everything the API server itself does for a get.
"""

from __future__ import annotations

import time
from email.utils import formatdate
from http import HTTPStatus

from aiohttp import web

from .request import Answer

ONE_PIECE = 64 * 1024  # bodies up to here are copied behind their head

_REASONS = {status.value: status.phrase for status in HTTPStatus}


class Reply(web.StreamResponse):
    def __init__(self, answer: Answer) -> None:
        super().__init__(status=answer.status)
        self._answer = answer
        self._keeps = True

    @property
    def keep_alive(self) -> bool | None:
        return self._keeps

    async def prepare(self, request: web.BaseRequest) -> None:
        """Everything is written here, at once."""
        answer, transport = self._answer, request.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the client is gone")
        self._keeps = request.keep_alive
        head = head_of(answer, close=not self._keeps)
        body = b"" if request.method == "HEAD" else answer.body
        if len(body) <= ONE_PIECE:
            transport.write(head + body)
        else:
            transport.writelines((head, body))
        await request.writer.drain()

    async def write_eof(self, data: bytes = b"") -> None:
        """Nothing is left to write."""


def head_of(answer: Answer, *, close: bool) -> bytes:
    lines = [
        f"HTTP/1.1 {answer.status} {_REASONS.get(answer.status, '')}",
        f"Content-Type: {answer.content_type}",
        f"Content-Length: {len(answer.body)}",
        f"Date: {_date(int(time.time()))}",
    ]
    for name, value in answer.headers.items():
        if "\r" in value or "\n" in value:
            raise ValueError(f"a line break in the header {name}")
        lines.append(f"{name}: {value}")
    if close:
        lines.append("Connection: close")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "replace")


_last_date = (0, "")


def _date(second: int) -> str:
    """Formatted once a second."""
    global _last_date
    if _last_date[0] != second:
        _last_date = (second, formatdate(second, usegmt=True))
    return _last_date[1]
