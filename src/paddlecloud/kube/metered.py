"""Counts requests on their way to another transport: what a controller costs its API server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from paddlecloud.kube.errors import Unreachable
from paddlecloud.kube.metrics import Registry
from paddlecloud.kube.transport import JSON, Response, Transport


class MeteredTransport:
    def __init__(self, transport: Transport, registry: Registry) -> None:
        self._transport = transport
        self._requests = registry.counter(
            "paddlecloud_api_requests_total", "Requests to the API server; code 0 had no answer", ("method", "code")
        )

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
        try:
            response = await self._transport.request(
                method, path, query=query, body=body, content_type=content_type, accept=accept
            )
        except Unreachable:
            self._requests.inc(method, "0")
            raise
        self._requests.inc(method, str(response.status))
        return response

    def stream(self, path: str, *, query: Mapping[str, str] | None = None, accept: str = JSON) -> AsyncIterator[bytes]:
        self._requests.inc("STREAM", "200")
        return self._transport.stream(path, query=query, accept=accept)

    async def close(self) -> None:
        await self._transport.close()
