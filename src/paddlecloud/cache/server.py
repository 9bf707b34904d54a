"""The HTTP API of a cache server, on port 7716.

`/v2/…` is the API of today, `legacy` the one that older controllers use. Both go to the same jobs. With keys it is
served over TLS, and every request must carry the token, but for the two that probes send; without keys the server
listens on loopback only. Nothing here is a file server: what is not a route does not exist.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from paddlecloud.cache.engines.base import Engine, Status
from paddlecloud.cache.errors import BadOptions, Conflict
from paddlecloud.cache.jobs import Jobs
from paddlecloud.cache.legacy import add_legacy_routes
from paddlecloud.cache.metrics import CONTENT_TYPE, render

PORT = 7716
OPEN = ("/healthz", "/readyz")
MOST_BYTES = 1 << 20
FRESH = 1.0
"""Seconds for which figures are given out again instead of collected."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Server:
    def __init__(self, jobs: Jobs, engine: Engine, *, token: str = "") -> None:
        self.jobs = jobs
        self._engine = engine
        self._token = token
        self._status: tuple[float, int, Status] = (-FRESH, 0, Status())
        self._collecting = asyncio.Lock()

    def application(self) -> web.Application:
        app = web.Application(middlewares=[self._guard, _errors], client_max_size=MOST_BYTES)
        app.add_routes(
            [
                web.get("/healthz", self._healthy),
                web.get("/readyz", self._healthy),
                web.get("/metrics", self._metrics),
                web.get("/v2/status", self._show_status),
                web.get("/v2/jobs", self._list),
                web.put("/v2/jobs/{id}", self._put),
                web.get("/v2/jobs/{id}", self._get),
                web.delete("/v2/jobs/{id}", self._cancel),
            ]
        )
        add_legacy_routes(app, self.jobs, self.status)
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if self._token and request.path not in OPEN:
            given = request.headers.get("Authorization", "").removeprefix("Bearer ").strip()
            if not hmac.compare_digest(given.encode(errors="replace"), self._token.encode()):
                return problem(401, "Unauthorized", "send the token of the set: Authorization: Bearer …")
        return await handler(request)

    async def status(self) -> Status:
        """Collected at most once a second, off the event loop; anew after a job: who saw its end sees its effect."""
        async with self._collecting:
            at, ended_then, status = self._status
            ended = self.jobs.ended
            if ended != ended_then or time.monotonic() - at >= FRESH:
                status = await asyncio.to_thread(self._collect)
                self._status = (time.monotonic(), ended, status)
            return status

    def _collect(self) -> Status:
        try:
            return self._engine.status()
        except Exception as error:  # figures are requested all the time: their error is part of the answer
            return Status(error=f"{type(error).__name__}: {error}")

    async def _healthy(self, _: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def _metrics(self, _: web.Request) -> web.Response:
        text = render(self.jobs, await self.status())
        return web.Response(body=text.encode(), headers={"Content-Type": CONTENT_TYPE})

    async def _show_status(self, _: web.Request) -> web.Response:
        return web.json_response((await self.status()).shown())

    async def _list(self, _: web.Request) -> web.Response:
        return web.json_response({"jobs": [self.jobs.shown(job) for job in self.jobs.all()]})

    async def _put(self, request: web.Request) -> web.Response:
        body = await _body(request)
        keys = body.get("credentials") or {}
        if not isinstance(keys, dict) or not all(isinstance(value, str) for value in keys.values()):
            raise BadOptions("credentials must be an object of texts")
        unknown = set(body) - {"type", "options", "credentials", "secretEnv"}
        if unknown:
            raise BadOptions(f"unknown field {sorted(unknown)[0]!r}; known are type, options, credentials")
        kind, options = str(body.get("type", "")), body.get("options") or {}
        job = await asyncio.to_thread(self.jobs.put, request.match_info["id"], kind, options, keys)
        return web.json_response(self.jobs.shown(job), status=202)

    async def _get(self, request: web.Request) -> web.Response:
        job = self.jobs.get(request.match_info["id"])
        if job is None:
            return problem(404, "NotFound", f"no job {request.match_info['id']}")
        return web.json_response(self.jobs.shown(job))

    async def _cancel(self, request: web.Request) -> web.Response:
        job = await asyncio.to_thread(self.jobs.cancel, request.match_info["id"])
        if job is None:
            return problem(404, "NotFound", f"no job {request.match_info['id']}")
        return web.json_response(self.jobs.shown(job), status=202)


@web.middleware
async def _errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except BadOptions as error:
        return problem(400, "Invalid", str(error))
    except Conflict as error:
        return problem(409, "Conflict", str(error))
    except OSError as error:
        return problem(507, "NotStored", f"the order could not be kept: {error.strerror or error}")
    except web.HTTPException as error:
        return problem(error.status, error.reason.replace(" ", ""), f"{request.method} {request.path}: {error.reason}")


async def _body(request: web.Request) -> dict[str, Any]:
    try:
        body = json.loads(await request.read())
    except (ValueError, RecursionError) as error:
        raise BadOptions("the body must be JSON") from error
    if not isinstance(body, dict):
        raise BadOptions("the body must be an object")
    return body


def problem(status: int, reason: str, message: str) -> web.Response:
    return web.json_response({"reason": reason, "message": message}, status=status)
