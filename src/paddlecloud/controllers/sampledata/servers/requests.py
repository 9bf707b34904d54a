"""Requests to the cache servers: HTTPS to their pods' addresses, within limits of time and size.

Pods are dialled by address, never by name: a controller need not run where the names of the cluster resolve. A server
proves with its certificate that it is the set's (`access`) before anything is sent to it. What runs in a pod belongs to
a tenant all the same: redirects are not followed, answers are bounded and read field by field, and only the fields that
are meant for people reach a status, shortened and on one line.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import aiohttp
import msgspec

from paddlecloud.controllers.sampledata import names
from paddlecloud.controllers.sampledata.servers.access import Access
from paddlecloud.controllers.sampledata.servers.responses import Figures, JobList, JobReport, ServerResponse, for_people

A = TypeVar("A")
_TIMEOUT = aiohttp.ClientTimeout(total=10.0, sock_connect=3.0)
_MOST_BYTES = 4 << 20
"""Of an answer: 200 jobs with their messages are a tenth of it."""


class ServerAddress(NamedTuple):
    """One cache server, and what opens it."""

    pod: str
    ip: str
    access: Access


class ServerSilent(Exception):
    """No answer, none that can be read, or one by another program: it may come right by itself."""


class ServerRefused(Exception):
    """The server understood and said no; the message is its own."""


class _Refusal(ServerResponse, frozen=True):
    message: str = ""


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


RETRY = 2.0
"""Seconds until work is offered again to a server that did not take it."""


class Submission(NamedTuple):
    """What became of work for servers: all of it taken, or why one did not take it."""

    silent: str = ""
    refused: str = ""

    @property
    def taken(self) -> bool:
        return not (self.silent or self.refused)


async def submit(servers: Servers, orders: Iterable[tuple[ServerAddress, Work]]) -> Submission:
    """Give work to servers, before the status that says so is written. After a failure the next pass offers all of it
    again, under the same ids."""
    for server, work in orders:
        try:
            await servers.submit(server, work)
        except ServerSilent as error:
            return Submission(silent=str(error))
        except ServerRefused as error:
            return Submission(refused=str(error))
    return Submission()


class Servers:
    """Connections are opened on first use, in the loop that uses them; `close` ends them."""

    def __init__(self, *, port: int = names.PORT) -> None:
        self._port = port
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def figures(self, server: ServerAddress) -> Figures:
        return _read(Figures, await self._ask("GET", server, "/v2/status"), server)

    async def job(self, server: ServerAddress, id: str) -> JobReport | None:
        """None when the server does not know it."""
        found = await self._ask("GET", server, f"/v2/jobs/{id}", missing_ok=True)
        return None if found is None else _read(JobReport, found, server)

    async def jobs(self, server: ServerAddress) -> list[JobReport]:
        return _read(JobList, await self._ask("GET", server, "/v2/jobs"), server).jobs

    async def submit(self, server: ServerAddress, work: Work) -> JobReport:
        answer = await self._ask("PUT", server, f"/v2/jobs/{work.id}", body=work.body)
        return _read(JobReport, answer, server)

    async def cancel(self, server: ServerAddress, id: str) -> None:
        await self._ask("DELETE", server, f"/v2/jobs/{id}", missing_ok=True)

    async def _ask(
        self, method: str, server: ServerAddress, path: str, *, body: Any = None, missing_ok: bool = False
    ) -> Any:
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=_TIMEOUT)
        host = f"[{server.ip}]" if ":" in server.ip else server.ip
        try:
            async with self._session.request(
                method,
                f"https://{host}:{self._port}{path}",
                json=body,
                headers={"Authorization": f"Bearer {server.access.token}"},
                ssl=_pinned(server.access.fingerprint),
                allow_redirects=False,
            ) as answer:
                data = await _read_bounded(answer.content)
        except aiohttp.ServerFingerprintMismatch as error:
            raise ServerSilent(f"{server.pod}: {_WRONG_CERTIFICATE.format(port=self._port)}") from error
        except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as error:
            raise ServerSilent(f"{server.pod} does not answer: {_cause(error)}") from error
        if data is None:
            raise ServerSilent(f"{server.pod} answered with more than {_MOST_BYTES >> 20} MiB")
        if answer.status == 404 and missing_ok:
            return None
        if answer.status >= 500 or 300 <= answer.status < 400:
            raise ServerSilent(f"{server.pod} answered {answer.status}")
        try:
            found = msgspec.json.decode(data) if data else {}
        except (msgspec.DecodeError, RecursionError) as error:
            raise ServerSilent(f"{server.pod} answered {answer.status} and no JSON") from error
        if answer.status >= 400:
            raise ServerRefused(f"{server.pod}: {for_people(_read(_Refusal, found, server).message) or answer.status}")
        return found


_WRONG_CERTIFICATE = (
    "another program answers at the address of this pod, without the set's certificate; nothing was sent to it. "
    "Find it by port {port} and end it; the server takes its address when it is free"
)


@lru_cache(maxsize=4096)
def _pinned(fingerprint: bytes) -> aiohttp.Fingerprint:
    """One object for each certificate: connections are kept and found again by it."""
    return aiohttp.Fingerprint(fingerprint)


def _cause(error: BaseException) -> str:
    """Without the text of a peer: a line that is not HTTP would be quoted by aiohttp's own message."""
    if isinstance(error, aiohttp.ClientSSLError):
        return "no TLS there, so it is not the set's server or one of an earlier release"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__


async def _read_bounded(content: aiohttp.StreamReader) -> bytes | None:
    """None for an answer that is too long."""
    found = bytearray()
    async for chunk in content.iter_chunked(1 << 16):
        found += chunk
        if len(found) > _MOST_BYTES:
            return None
    return bytes(found)


def _read(kind: type[A], value: Any, server: ServerAddress) -> A:
    """Errors name the field alone: the library's text would quote what the pod put there."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        _, marked, path = str(error).rpartition(" - at `")
        field = path.rstrip("`") if marked else "$"
        raise ServerSilent(f"{server.pod} gave an answer that cannot be read: {field} has another form") from None
