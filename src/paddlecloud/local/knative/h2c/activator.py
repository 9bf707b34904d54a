"""Where Envoy sends requests for a revision that has no pods: connections wait here for the first one.

It works on bytes and knows no HTTP/2. A connection is accepted, the revision is woken, and when it has a pod the
connection leads there, for as long as the requests on it last; Envoy sends later ones to pods by itself. When the pods
of the revision fail for good, the connection is closed, and Envoy answers 503 (gRPC: UNAVAILABLE).
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from paddlecloud.local.knative.gateway.sockets import serve_unix

log = logging.getLogger(__name__)

PIECE = 64 * 1024
PodAddress = tuple[str, int]


class Activator:
    """`wake` is called with the revision that a request waits for."""

    def __init__(self, folder: Path, *, wake: Callable[[str], None]) -> None:
        self._folder = folder
        self._wake = wake
        self._pods: Mapping[str, Sequence[PodAddress]] = {}
        self._patience: Mapping[str, float] = {}
        self._failures: Mapping[str, str] = {}
        self._servers: dict[str, asyncio.AbstractServer] = {}
        self._moved = asyncio.Condition()

    async def serve(self, revisions: Mapping[str, Any], socket: Callable[[str], str]) -> None:
        """Have a socket for each of these revisions, and lead on what waits for those that have pods by now."""
        self._pods = {key: [(ip, port) for ip, port, *_ in entry["pods"]] for key, entry in revisions.items()}
        self._patience = {key: float(entry["timeout"]) for key, entry in revisions.items()}
        self._failures = {key: str(entry["failed"]) for key, entry in revisions.items() if entry.get("failed")}
        for gone in self._servers.keys() - revisions.keys():
            self._servers.pop(gone).close()
            (self._folder / socket(gone)).unlink(missing_ok=True)
        for new in revisions.keys() - self._servers.keys():
            self._servers[new] = await serve_unix(self._folder / socket(new), self._taker(new))
        async with self._moved:
            self._moved.notify_all()

    def _taker(self, key: str) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any]:
        async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                pod = await asyncio.wait_for(self._pod_of(key), self._patience.get(key))
                pod_reader, pod_writer = await asyncio.open_connection(*pod)
            except (asyncio.TimeoutError, OSError) as error:
                log.info("%s: nothing to lead a connection to: %r", key, error)
                writer.transport.abort()
                return
            await asyncio.gather(_copy(reader, pod_writer), _copy(pod_reader, writer))

        return take

    async def _pod_of(self, key: str) -> PodAddress:
        async with self._moved:
            if not self._pods.get(key):
                self._wake(key)
            await self._moved.wait_for(lambda: self._pods.get(key) or key in self._failures)
            if not self._pods.get(key):
                raise ConnectionError(self._failures[key])
            return random.choice(self._pods[key])  # noqa: S311 - not a secret


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """All that comes, to the end of it; what the other side no longer takes is dropped."""
    try:
        while data := await reader.read(PIECE):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass  # one side is gone, and the other is closed just below
    finally:
        writer.close()
