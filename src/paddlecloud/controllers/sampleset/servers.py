"""Speaks to the cache servers: HTTP to their pods' addresses, with their token and with time limits.

Pods are dialled by address, never by name: a controller need not live where the names of the cluster resolve.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

import aiohttp
import msgspec

from paddlecloud.controllers.sampleset import names
from paddlecloud.controllers.sampleset.answers import Figures, JobList, JobReport

A = TypeVar("A")
_TIMEOUT = aiohttp.ClientTimeout(total=10.0, sock_connect=3.0)


class Server(NamedTuple):
    """One cache server, and what opens it."""

    pod: str
    ip: str
    token: str


class ServerSilent(Exception):
    """No answer, or none that can be read: it may come right by itself."""


class ServerRefused(Exception):
    """The server understood and said no; the message is its own."""


class Work(NamedTuple):
    """What a server is asked to do. Asking again for the same id changes nothing."""

    id: str
    type: str
    options: Mapping[str, Any]
    credentials: Mapping[str, str] = {}

    @property
    def body(self) -> dict[str, Any]:
        return {
            "type": self.type,
            "options": dict(self.options),
            **({"credentials": dict(self.credentials)} if self.credentials else {}),
        }


class Servers:
    """Connections are opened on first use, in the loop that uses them; `close` ends them."""

    def __init__(self, *, port: int = names.PORT) -> None:
        self._port = port
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def figures(self, server: Server) -> Figures:
        return _read(Figures, await self._ask("GET", server, "/v2/status"))

    async def job(self, server: Server, id: str) -> JobReport | None:
        """None when the server does not know it."""
        found = await self._ask("GET", server, f"/v2/jobs/{id}", missing_ok=True)
        return None if found is None else _read(JobReport, found)

    async def jobs(self, server: Server) -> list[JobReport]:
        return _read(JobList, await self._ask("GET", server, "/v2/jobs")).jobs

    async def submit(self, server: Server, work: Work) -> JobReport:
        return _read(JobReport, await self._ask("PUT", server, f"/v2/jobs/{work.id}", body=work.body))

    async def cancel(self, server: Server, id: str) -> None:
        await self._ask("DELETE", server, f"/v2/jobs/{id}", missing_ok=True)

    async def _ask(self, method: str, server: Server, path: str, *, body: Any = None, missing_ok: bool = False) -> Any:
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=_TIMEOUT)
        host = f"[{server.ip}]" if ":" in server.ip else server.ip
        headers = {"Authorization": f"Bearer {server.token}"}
        try:
            async with self._session.request(
                method, f"http://{host}:{self._port}{path}", json=body, headers=headers
            ) as answer:
                data = await answer.read()
        except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as error:
            raise ServerSilent(f"{server.pod} does not answer: {error or type(error).__name__}") from error
        if answer.status == 404 and missing_ok:
            return None
        try:
            found = msgspec.json.decode(data) if data else {}
        except msgspec.DecodeError as error:
            raise ServerSilent(f"{server.pod} answered {answer.status} and no JSON") from error
        if answer.status >= 500:
            raise ServerSilent(f"{server.pod} answered {answer.status}: {_message(found)}")
        if answer.status >= 400:
            raise ServerRefused(f"{server.pod}: {_message(found)}")
        return found


def _message(body: Any) -> str:
    return str(body.get("message") or body.get("error") or body) if isinstance(body, dict) else str(body)


def _read(kind: type[A], value: Any) -> A:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ServerSilent(f"a cache server's answer cannot be read: {error}") from error
