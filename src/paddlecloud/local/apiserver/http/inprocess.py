"""A transport that stays in the process: same authorisation, same audit, no socket.

Controllers that run beside the API server use it under an identity of their own, so RBAC binds them exactly as it
would bind their pods on a cluster.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

import msgspec

from paddlecloud.kube.errors import ApiError
from paddlecloud.kube.transport import JSON, Response
from paddlecloud.local.apiserver.api import Api
from paddlecloud.local.apiserver.auth.authentication import User
from paddlecloud.local.apiserver.http.request import Request


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
            raise ApiError.from_status(answer.status, msgspec.json.decode(answer.body))
        if answer.stream is None:
            yield answer.body
            return
        async for frame in answer.stream:
            if frame:
                yield frame

    async def close(self) -> None:
        """Nothing is open."""
