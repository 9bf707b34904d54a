"""How a request reaches an API server: one interface, three carriers.

`HttpTransport` (aiohttp) is for programs that live long, `StdlibTransport` for the CLI's read path (importing aiohttp
alone costs more than the CLI may spend), and the embedded API server offers one that stays in the process but passes
the same authentication, authorisation and audit. A transport moves bytes; it knows nothing of objects.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from paddlecloud import __version__
from paddlecloud.kube.errors import ApiError

JSON = "application/json"
USER_AGENT = f"paddlecloud/{__version__}"


@dataclass(slots=True)
class Response:
    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)  # names in lower case


class Transport(Protocol):
    """Raises `errors.Unreachable` when no answer came; any HTTP status is an answer."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        accept: str = JSON,
    ) -> Response: ...

    def stream(self, path: str, *, query: Mapping[str, str] | None = None, accept: str = JSON) -> AsyncIterator[bytes]:
        """The body of a GET as it comes: whole lines or several (watch), chunks ending where the server flushed (logs).

        A reader must not count on one line per item (`split_lines` does not).
        A refusal raises `errors.ApiError` at the first step. Closing the iterator closes the connection.
        """

    async def close(self) -> None: ...


def refusal(response: Response) -> ApiError:
    """The typed error of an answer with a status of 400 and above, whether a Status or a proxy's text."""
    try:
        body: Any = msgspec.json.decode(response.body)
    except (msgspec.DecodeError, RecursionError):
        body = response.body.decode(errors="replace").strip()[:500]
    error = ApiError.from_status(response.status, body)
    after = response.headers.get("retry-after", "")
    if error.retry_after is None and after.isdigit():
        error.retry_after = int(after)
    return error


async def split_lines(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Whole lines from chunks cut anywhere, without their newlines; blank ones are left out."""
    rest = b""
    try:
        async for chunk in chunks:
            *lines, last = chunk.split(b"\n")
            if lines:
                lines[0] = rest + lines[0]
                rest = last
            else:
                rest += last
            for line in lines:
                if line:
                    yield line
        if rest:
            yield rest
    finally:
        if isinstance(chunks, AsyncGenerator):
            await chunks.aclose()
