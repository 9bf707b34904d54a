"""A transport that stays in the process: same authorisation, same audit, no socket.

Controllers that run beside the API server use it under their own identity, so RBAC binds them exactly as it
would bind their pods on a cluster.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping

from paddlecloud.kube.http import REFUSAL_BYTES
from paddlecloud.kube.transport import JSON, Response, refusal
from paddlecloud.local.apiserver.api import Api
from paddlecloud.local.apiserver.auth.authentication import User
from paddlecloud.local.apiserver.http.request import Request
from paddlecloud.local.apiserver.http.request import Response as Answer


class InProcessTransport:
    def __init__(self, api: Api, user: User, *, user_agent: str) -> None:
        self._api = api
        self._user = user
        self._user_agent = user_agent

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
        headers = {"accept": accept, "content-type": content_type, "user-agent": self._user_agent}
        answer = await self._api.handle(Request(method, path, query or {}, headers, body or b"", self._user))
        if answer.stream is not None:
            return Response(answer.status, b"".join([chunk async for chunk in answer.stream]), answer.headers)
        lower = {name.lower(): value for name, value in answer.headers.items()}
        return Response(answer.status, answer.body, {"content-type": answer.content_type, **lower})

    async def stream(
        self, path: str, *, query: Mapping[str, str] | None = None, accept: str = JSON
    ) -> AsyncIterator[bytes]:
        headers = {"accept": accept, "user-agent": self._user_agent}
        answer = await self._api.handle(Request("GET", path, query or {}, headers, b"", self._user))
        if answer.status >= 400:
            raise refusal(Response(answer.status, await _beginning(answer), answer.headers))
        if answer.stream is None:
            yield answer.body
            return
        async for frame in answer.stream:
            if frame:
                yield frame

    async def close(self) -> None:
        """Nothing is open."""


async def _beginning(answer: Answer) -> bytes:
    """Of a refusal: a Status, or through pods/proxy whatever a pod answers, be it without end."""
    if answer.stream is None:
        return answer.body
    found = b""
    try:
        async for frame in answer.stream:
            found += frame
            if len(found) >= REFUSAL_BYTES:
                break
    finally:
        if isinstance(answer.stream, AsyncGenerator):
            await answer.stream.aclose()
    return found[:REFUSAL_BYTES]
