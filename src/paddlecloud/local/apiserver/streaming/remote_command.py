"""exec and attach: a program's streams joined to a client's, and at the end a Status that says how it ended.

The client's side (`Remote`) comes in two forms, SPDY streams and WebSocket channels; the program's side (`Session`)
is the kubelet's. This module knows neither: it moves bytes between them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from typing import Any, Protocol

from paddlecloud.kube.errors import ApiError
from paddlecloud.kube.resource import Object


class Piece(Protocol):
    @property
    def stream(self) -> str:
        """`stdout` or `stderr`."""

    @property
    def data(self) -> bytes: ...


class Session(Protocol):
    """A running program. `read` gives None after its last output, then `wait` its exit code."""

    async def read(self) -> Piece | None: ...

    async def write(self, data: bytes) -> None: ...

    def close_stdin(self) -> None: ...

    def resize(self, columns: int, rows: int) -> None: ...

    async def wait(self) -> int: ...

    async def close(self) -> None: ...


class Remote(Protocol):
    """The client. Writing raises ConnectionError once it is gone."""

    async def stdin(self) -> bytes:
        """The next piece of input; empty when the client has closed it."""

    async def resizes(self) -> bytes:
        """The next JSON of a new terminal size; empty when no more will come."""

    async def output(self, stream: str, data: bytes) -> None: ...

    async def status(self, body: bytes) -> None:
        """The last word; nothing is written after it."""

    async def gone(self) -> None:
        """Returns when the client has left."""


async def converse(session: Session, remote: Remote, *, stdin: bool, tty: bool) -> None:
    """Until the program ends or the client leaves. The session is closed either way, which ends the program."""
    helpers = [asyncio.ensure_future(_feed(session, remote))] if stdin else []
    helpers += [asyncio.ensure_future(_follow_size(session, remote))] if tty else []
    sending = asyncio.ensure_future(_send_status(session, remote))
    leaving = asyncio.ensure_future(remote.gone())
    try:
        await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
    finally:
        await settle([sending, leaving, *helpers])
        await session.close()


async def settle(tasks: list[asyncio.Future[Any]]) -> None:
    """End tasks, and look at their outcome so that nothing is reported as forgotten."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _feed(session: Session, remote: Remote) -> None:
    while data := await remote.stdin():
        await session.write(data)
    session.close_stdin()


async def _follow_size(session: Session, remote: Remote) -> None:
    while text := await remote.resizes():
        size = terminal_size(text)
        if size is not None:
            session.resize(*size)


def terminal_size(text: bytes) -> tuple[int, int] | None:
    """Columns and rows of a resize message; None for what is none."""
    try:
        body = json.loads(text)
        columns, rows = int(body["Width"]), int(body["Height"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return (columns, rows) if 0 < columns < 1 << 16 and 0 < rows < 1 << 16 else None


async def _send_status(session: Session, remote: Remote) -> None:
    while (piece := await session.read()) is not None:
        await remote.output(piece.stream, piece.data)
    await remote.status(json.dumps(await _outcome(session.wait())).encode())


async def _outcome(waiting: Coroutine[Any, Any, int]) -> Object:
    try:
        return exit_status(await waiting)
    except asyncio.CancelledError:
        raise
    except ApiError as error:
        return error.status()
    except Exception as error:
        # Whatever kept the program from running is the client's to know: it asked for it.
        return ApiError(f"Internal error occurred: {error}").status()


def exit_status(code: int) -> Object:
    """The Status from which clients take the exit code."""
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: error executing command, exit code {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }
