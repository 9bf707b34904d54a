"""How a request reaches an API server: one interface, three carriers.

`HttpTransport` (aiohttp) is for programs that live long, `StdlibTransport` for the CLI's read path (importing aiohttp
alone costs more than the CLI may spend), and the embedded API server offers one that stays in the process but passes
the same authentication, authorisation and audit. A transport moves bytes; it knows nothing of objects.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

JSON = "application/json"


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

    def stream(
        self, path: str, *, query: Mapping[str, str] | None = None, accept: str = JSON
    ) -> AsyncIterator[bytes]:
        """The body of a GET in lines (watch) or chunks ending where the server flushed (logs).

        A refusal raises `errors.ApiError` at the first step. Closing the iterator closes the connection.
        """

    async def close(self) -> None: ...
