"""The HTTP API of the original cache server, for controllers and tools of its time.

    POST /upload/syncOptions      header `filename` is the job's id, the body its options
    GET  /syncOptions/ID          the options again, without keys
    GET  /syncResult/ID           {"status": "running" | "success" | "fail", "message": …}; 404 until it began
    GET  /cacheStatus/cacheInfo.json

and the same for clear, rmr and warmup. `?terminate=…` ends everything first. Keys that such a client puts into the
source's address are taken out before anything is kept.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import unquote

from aiohttp import web

from paddlecloud.cache.engines.base import Status
from paddlecloud.cache.errors import BadOptions
from paddlecloud.cache.jobs import Jobs

KINDS = ("sync", "clear", "rmr", "warmup")
TERMINATE = "terminate"
_RESULTS = {"Running": "running", "Succeeded": "success", "Failed": "fail", "Cancelled": "fail"}
_KEYS = re.compile(r"^(?P<head>[a-z0-9]+:///?)(?P<access>[^:@/]*)(?::(?P<secret>[^@]*))?@(?P<rest>.*)$", re.DOTALL)


def add_legacy_routes(app: web.Application, jobs: Jobs, status: Callable[[], Awaitable[Status]]) -> None:
    legacy = _Legacy(jobs, status)
    for kind in KINDS:
        app.router.add_post(f"/upload/{kind}Options", legacy.upload(kind))
        app.router.add_get(f"/{kind}Options/{{id}}", legacy.options(kind))
        app.router.add_get(f"/{kind}Result/{{id}}", legacy.result(kind))
    app.router.add_get("/cacheStatus/cacheInfo.json", legacy.cache_info)


def without_keys(source: str) -> tuple[str, dict[str, str]]:
    """An address without the keys before its @, and those keys."""
    match = _KEYS.match(source)
    if match is None:
        return source, {}
    keys = {"access-key": unquote(match["access"]), "secret-key": unquote(match["secret"] or "")}
    return match["head"] + match["rest"], {name: value for name, value in keys.items() if value}


Handler = Callable[[web.Request], Awaitable[web.Response]]


class _Legacy:
    def __init__(self, jobs: Jobs, status: Callable[[], Awaitable[Status]]) -> None:
        self._jobs = jobs
        self._status = status

    def upload(self, kind: str) -> Handler:
        async def handle(request: web.Request) -> web.Response:
            name = request.headers.get("filename", "")
            if not name:
                raise BadOptions("the header filename must name the job")
            if "terminate" in request.query:
                await asyncio.to_thread(self._jobs.cancel_all)
                if name == TERMINATE:
                    return web.Response()
            try:
                options = json.loads(await request.read()) or {}
            except (ValueError, RecursionError) as error:
                raise BadOptions("the body must be JSON") from error
            keys: dict[str, str] = {}
            if isinstance(options, dict) and isinstance(options.get("source"), str):
                options["source"], keys = without_keys(options["source"])
            await asyncio.to_thread(self._jobs.put, name, kind, options, keys)
            return web.Response()

        return handle

    def options(self, kind: str) -> Handler:
        async def handle(request: web.Request) -> web.Response:
            return web.json_response(self._job(request, kind).options)

        return handle

    def result(self, kind: str) -> Handler:
        async def handle(request: web.Request) -> web.Response:
            job = self._job(request, kind)
            if job.state == "Queued":
                raise web.HTTPNotFound
            body = {"status": _RESULTS[job.state]}
            if job.message:
                body["message"] = job.message
            return web.json_response(body)

        return handle

    def _job(self, request: web.Request, kind: str) -> Any:
        job = self._jobs.get(request.match_info["id"])
        if job is None or job.type != kind:
            raise web.HTTPNotFound
        return job

    async def cache_info(self, _: web.Request) -> web.Response:
        """Numbers as texts, under the names of old; the spelling of the last one is part of the API."""
        status = await self._status()
        body = {
            "totalSize": str(status.totalBytes),
            "totalFiles": str(status.totalFiles),
            "cachedSize": str(status.cachedBytes),
            "diskSize": str(status.diskBytes),
            "diskUsed": str(status.diskUsedBytes),
            "diskAvail": str(status.diskAvailBytes),
        }
        if status.error:
            body["errorMassage"] = status.error
        return web.json_response(body)
