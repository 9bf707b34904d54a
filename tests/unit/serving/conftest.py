"""A server as a client meets it: real sockets, a real ONNX model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from paddlecloud.serving import app
from paddlecloud.serving.intake import Intake
from paddlecloud.serving.metrics import Metrics
from paddlecloud.serving.model import Resources
from paddlecloud.serving.slot import Slot


class Serve:
    """`await serve(folder)` gives a client of a server of that model; `slot` is the last one's place for models."""

    def __init__(self) -> None:
        self.slot: Slot
        self.ending = AsyncExitStack()

    async def __call__(self, folder: Path, *, largest: int = 1 << 19, seconds: float = 60) -> TestClient[Any, Any]:
        metrics = Metrics()
        self.slot = Slot(folder, name="", resources=Resources(workers=2), metrics=metrics)
        await self.slot.load()
        self.ending.push_async_callback(self.slot.close)
        client = TestClient(TestServer(app.build(self.slot, metrics, intake=Intake(largest, seconds=seconds))))
        self.ending.push_async_callback(client.close)
        await client.server.start_server(**app.SERVER_OPTIONS)
        await client.start_server()
        return client


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    serve = Serve()
    async with serve.ending:
        yield serve
