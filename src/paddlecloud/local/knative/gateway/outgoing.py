"""The body of a request on its way to a pod. Pure.

It is kept while it is small, for a pod that is not there yet and for one that must be asked again. One that has grown
too large is passed on piece by piece and can be sent only once.
"""

from __future__ import annotations

from paddlecloud.local.knative.gateway.bodies import LAST_CHUNK, body_of, chunk
from paddlecloud.local.knative.gateway.http1 import CHUNKED

KEPT = 64 * 1024
"""Bytes of a body that are kept."""


class OutgoingBody:
    """`whole` says whether all of it has come, `full` whether no more should come before a pod takes it."""

    __slots__ = ("_chunked", "_pieces", "_reader", "_size", "whole")

    def __init__(self, length: int) -> None:
        self._reader = body_of(length, status=400)
        self._chunked = length == CHUNKED
        self._pieces: list[bytes] | None = []
        self._size = 0
        self.whole = self._reader is None

    @property
    def full(self) -> bool:
        return self._size > KEPT

    @property
    def can_be_sent_again(self) -> bool:
        return self._pieces is not None

    def take(self, data: bytes) -> tuple[bytes, bytes]:
        """A piece as the client sent it: what of it a pod is sent, and what belongs to the next request."""
        assert self._reader is not None
        piece = self._reader.feed(data)
        self.whole = piece.ended
        out = piece.content
        if self._chunked:
            out = chunk(out) + (LAST_CHUNK if piece.ended else b"")
        if self._pieces is not None:
            self._pieces.append(out)
            self._size += len(out)
        return out, piece.rest

    def so_far(self) -> bytes:
        """Everything that has come, for a pod that is asked now; what is large is not kept from then on."""
        found = b"".join(self._pieces or ())
        self.passed_on()
        return found

    def passed_on(self) -> None:
        """A pod has all that came."""
        if self.full:
            self._pieces = None
