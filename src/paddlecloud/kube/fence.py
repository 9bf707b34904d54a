"""A fence around writes: who is no longer leader must not change anything, even if it has not noticed yet.

The fence opens for as long as a lease renewal vouches for and closes by itself when that time has passed, so a leader
that hangs, sleeps or is cut off is stopped by the clock, whatever its own code does. Requests already under way when
it closes are the reason why a lease must last longer than its fence (`lease.Elector`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from paddlecloud.kube.clock import Clock, SystemClock
from paddlecloud.kube.errors import ApiError
from paddlecloud.kube.transport import JSON, Response, Transport

READS = frozenset({"GET", "HEAD", "OPTIONS"})


class Fenced(ApiError):
    """A write by somebody who is not, or no longer, the leader. It was not sent."""

    code, reason = 0, "Fenced"


class Fence:
    """Open or closed, by two clocks: the monotonic one stands still while a machine sleeps, the other may be set back.

    It is closed if either says so.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._until: tuple[float, float] | None = None

    def open_for(self, seconds: float) -> None:
        self._until = (self._clock.monotonic() + seconds, self._clock.now() + seconds)

    def close(self) -> None:
        self._until = None

    @property
    def is_open(self) -> bool:
        if self._until is None:
            return False
        monotonic, wall = self._until
        return self._clock.monotonic() < monotonic and self._clock.now() < wall

    def check(self) -> None:
        if not self.is_open:
            raise Fenced("not the leader (any more): nothing was written")


class FencedTransport:
    """Passes reads always and writes only through an open fence."""

    def __init__(self, transport: Transport, fence: Fence) -> None:
        self._transport = transport
        self._fence = fence

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
        if method not in READS:
            self._fence.check()
        return await self._transport.request(
            method, path, query=query, body=body, content_type=content_type, accept=accept
        )

    def stream(self, path: str, *, query: Mapping[str, str] | None = None, accept: str = JSON) -> AsyncIterator[bytes]:
        return self._transport.stream(path, query=query, accept=accept)

    async def close(self) -> None:
        await self._transport.close()
