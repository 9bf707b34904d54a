"""The small HTTP server every controller process has: /healthz, /readyz, /metrics.

It answers without credentials, so it shows no more than it must: which informers are not synced, and numbers.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from paddlecloud.kube.metrics import CONTENT_TYPE, Registry
from paddlecloud.kube.server.listening import listen


@asynccontextmanager
async def serve(
    host: str, port: int, *, not_ready: Callable[[], list[str]], registry: Registry
) -> AsyncIterator[tuple[str, int]]:
    """Serve while the context is open; yields the address (port 0 means any free one)."""

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")  # that the event loop could answer is the message

    async def readyz(_: web.Request) -> web.Response:
        waiting = not_ready()
        if waiting:
            return web.Response(status=503, text="".join(f"waiting for {what}\n" for what in waiting))
        return web.Response(text="ok\n")

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=registry.render().encode(), headers={"Content-Type": CONTENT_TYPE})

    app = web.Application()
    app.add_routes([web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", metrics)])
    runner = await listen(app, host, port)
    try:
        address = runner.addresses[0]
        yield str(address[0]), int(address[1])
    finally:
        await runner.cleanup()
