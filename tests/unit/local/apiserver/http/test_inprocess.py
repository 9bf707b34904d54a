"""What controllers inside of the platform read of programs behind the API server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from paddlecloud.kube.errors import ApiError
from paddlecloud.kube.http import REFUSAL_BYTES
from paddlecloud.local.apiserver.auth.authentication import User
from paddlecloud.local.apiserver.http.inprocess import InProcessTransport
from paddlecloud.local.apiserver.http.request import Request, Response


class Behind:
    """An API server that passes on what a pod answers."""

    def __init__(self, answer: Response) -> None:
        self._answer = answer

    async def handle(self, request: Request) -> Response:
        return self._answer


async def read(answer: Response) -> bytes:
    api: Any = Behind(answer)
    transport = InProcessTransport(api, User("controller"), user_agent="test")
    return b"".join([chunk async for chunk in transport.stream("/api/v1/namespaces/d/pods/p:80/proxy/metrics")])


async def test_a_refusal_of_a_pod_that_is_no_status_is_an_error_of_the_api() -> None:
    with pytest.raises(ApiError, match="not here") as caught:
        await read(Response(status=404, body=b"<h1>not here</h1>"))
    assert caught.value.code == 404


async def test_of_a_refusal_without_end_only_the_beginning_is_read() -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 1 << 16
            yield b"x" * (1 << 16)

    with pytest.raises(ApiError):
        await read(Response(status=500, stream=endless()))
    assert sent <= REFUSAL_BYTES + (1 << 16)
