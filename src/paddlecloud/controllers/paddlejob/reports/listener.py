"""Where pods report to: a small HTTP listener in the controller's process, the same on every platform.

    POST /report/<namespace>/<job>/<generation>/<role>/<index>
    Authorization: Signed <HMAC-SHA256 of path and body under the token of the job>

Programs prove that they have the token and do not send it: when this process is away, another program can take its
address. Those of earlier releases send it (`Bearer`) and are accepted.

Everybody in the cluster can reach it, so it gives nothing away and takes little: one method on one path, bodies of
bounded size and shape, proofs compared in constant time, one answer for an unknown job and a wrong token, and a
bounded rate per rank. It never logs what it was sent. Reports of an earlier generation are accepted and dropped: their
pods are about to go and need not know.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec
from aiohttp import web

from paddlecloud.controllers.paddlejob.reports import token
from paddlecloud.controllers.paddlejob.reports.report import Message, Rank
from paddlecloud.kube import descriptors
from paddlecloud.kube.clock import Clock
from paddlecloud.kube.rate_limit import RateLimits
from paddlecloud.kube.resource import Key
from paddlecloud.kube.server.listening import Site

log = logging.getLogger(__name__)

BODY_LIMIT = 64 * 1024
BODY_SECONDS = 5.0
RATE, BURST = 2.0, 20.0
"""Reports per second and rank; a well-behaved program sends one every two seconds."""

_ROLES = frozenset({"ps", "worker", "heter"})


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """Where to listen, and the address that pods get."""

    host: str = "127.0.0.1"
    port: int = 0
    url: str = ""
    """`http://name:port` as pods reach it, for example through a Service; made from host and port when empty."""
    remember: Path | None = None
    """Where the port is kept, so that pods that outlive this process find its successor at the same place."""
    key_namespace: str = "kube-system"
    """Where the Secret lies from which tokens are made."""


class Report(NamedTuple):
    job: Key
    generation: int
    rank: Rank
    message: Message


class Channel:
    """`token_of(job)` is the job's token, empty for one that is not there; `take` gets what came. Neither may block."""

    def __init__(
        self,
        token_of: Callable[[Key], str],
        take: Callable[[Report], None],
        *,
        clock: Clock,
        ranks_kept: int = 65536,
    ) -> None:
        self._token_of = token_of
        self._take = take
        self._limits: RateLimits[tuple[Key, Rank]] = RateLimits(clock, burst=BURST, rate=RATE, kept=ranks_kept)
        self._decoder = msgspec.json.Decoder(Message)

    @asynccontextmanager
    async def serve(self, place: ListenAddress) -> AsyncIterator[str]:
        """Serve while the context is open; yields the URL for pods."""
        app = web.Application(client_max_size=BODY_LIMIT)
        app.router.add_post("/report/{namespace}/{job}/{generation}/{role}/{index}", self._handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0, keepalive_timeout=5.0, auto_decompress=False)
        await runner.setup()
        try:
            port = await _listen(runner, place)
            yield place.url or f"http://{place.host}:{port}"
        finally:
            await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.Response:
        sender = _sender(request)
        if sender is None:
            return web.Response(status=404)
        job, generation, rank = sender
        try:
            body = await asyncio.wait_for(request.read(), BODY_SECONDS)
        except asyncio.TimeoutError:
            return web.Response(status=408)
        if not token.proves(request.headers.get("Authorization", ""), self._token_of(job), request.path, body):
            return web.Response(status=401, headers={"WWW-Authenticate": "Signed"})
        if not self._limits.take((job, rank)):
            return web.Response(status=429, headers={"Retry-After": "2"})
        try:
            message = self._decoder.decode(body or b"{}")
        except (msgspec.DecodeError, RecursionError) as error:
            return web.Response(status=400, text=f"{error}\n")
        self._take(Report(job, generation, rank, message))
        return web.Response(status=204)


def _sender(request: web.Request) -> tuple[Key, int, Rank] | None:
    part = request.match_info
    if part["role"] not in _ROLES or not part["generation"].isdecimal() or not part["index"].isdecimal():
        return None
    if max(len(part["generation"]), len(part["index"])) > 9:
        return None
    return Key(part["namespace"], part["job"]), int(part["generation"]), (part["role"], int(part["index"]))


async def _listen(runner: web.AppRunner, place: ListenAddress) -> int:
    """Listen where it was listened before, if nobody else has taken the place meanwhile."""
    wanted = place.port or _remembered(place.remember)
    try:
        await Site(runner, place.host, wanted, most=descriptors.share(one_of=16)).start()
    except OSError:
        if place.port or not wanted:
            raise
        log.warning("port %d is taken: pods of running jobs cannot report until they are restarted", wanted)
        await Site(runner, place.host, 0, most=descriptors.share(one_of=16)).start()
    port = int(runner.addresses[0][1])
    if place.remember is not None and port != wanted:
        place.remember.write_text(f"{port}\n")
    return port


def _remembered(path: Path | None) -> int:
    try:
        return int(path.read_text()) if path is not None else 0
    except (OSError, ValueError):
        return 0
