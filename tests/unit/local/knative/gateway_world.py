"""A gateway process's insides in the test's own event loop, with real sockets before and behind it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from harness import PATIENCE
from paddlecloud.local.knative.gateway.client import Client
from paddlecloud.local.knative.gateway.table import Table

R = ("ns/r", 100)
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Time:
    """The loop's clock, which a test can move on."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return asyncio.get_running_loop().time() + self.ahead


class Pod:
    """A server behind the gateway. It counts its connections and what was asked of it."""

    def __init__(self, word: str = "one") -> None:
        self.word = word
        self.connections = self.open = 0
        self.heads: list[bytes] = []
        self.bodies: list[bytes] = []
        self.inside = self.most = 0
        self.gate: asyncio.Event | None = None
        self.port = 0
        self.answer: Callable[[Pod, asyncio.StreamWriter], Awaitable[bool]] | None = None
        self._server: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> Pod:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.close()

    def entry(self, uid: str = "u", slots: str | None = None) -> list[Any]:
        return ["127.0.0.1", self.port, uid, slots]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        self._writers.append(writer)
        try:
            while await self._one(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the gateway hung up
        finally:
            self.open -= 1
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head)
        self.bodies.append(await _body(head, reader))
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            if self.gate is not None:
                await self.gate.wait()
            if self.answer is not None:
                return await self.answer(self, writer)
            body = self.word.encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            await writer.drain()
            return True
        finally:
            self.inside -= 1


async def _body(head: bytes, reader: asyncio.StreamReader) -> bytes:
    lower = head.lower()
    if b"transfer-encoding: chunked" in lower:
        body = b""
        while size := int(await reader.readline(), 16):
            body += (await reader.readexactly(size + 2))[:-2]
        await reader.readline()
        return body
    if b"content-length: " in lower:
        return await reader.readexactly(int(lower.split(b"content-length: ")[1].split(b"\r\n")[0]))
    return b""


class Gateway:
    def __init__(self) -> None:
        self.time = Time()
        self.woken: list[str] = []
        self.table = Table(now=self.time, wake=self.woken.append)
        self.port = 0

    def route(self, *targets: tuple[str, int], host: str = "a.b") -> None:
        self.table.apply({f"host:{host}": [list(target) for target in targets]})

    def pods(self, *pods: list[Any], revision: str = "ns/r", **more: Any) -> None:
        self.table.apply({f"rev:{revision}": {"pods": list(pods), **more}})

    async def connect(self) -> Dialogue:
        return Dialogue(*await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 20))

    async def ask(self, text: str = "GET / HTTP/1.1\r\nHost: a.b\r\n\r\n") -> tuple[int, bytes]:
        dialogue = await self.connect()
        dialogue.send(text.encode())
        answer = await dialogue.answer()
        dialogue.close()
        return answer


class Dialogue:
    """A client's side of a connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.head = b""

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    def get(self, path: str = "/", host: str = "a.b") -> None:
        self.send(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())

    async def answer(self) -> tuple[int, bytes]:
        self.head = await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), PATIENCE)
        status = int(self.head.split()[1])
        lower = self.head.lower()
        if b"content-length" in lower or b"chunked" in lower:
            return status, await asyncio.wait_for(_body(self.head, self.reader), PATIENCE)
        return status, b"" if status in (204, 304, 101) else await self.reader.read()

    async def ended(self) -> bool:
        """Whether the other side has closed, cleanly or not."""
        try:
            return await asyncio.wait_for(self.reader.read(1), PATIENCE) == b""
        except ConnectionError:
            return True

    def close(self) -> None:
        self.writer.close()


@asynccontextmanager
async def gateway() -> AsyncIterator[Gateway]:
    made = Gateway()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Client(made.table), "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        for client in list(made.table.clients):
            client.transport.abort()
        for revision in made.table.revisions.values():
            revision.abandon()
        await asyncio.sleep(0)


def wrote(data: bytes, *, keep: bool = False) -> Callable[[Pod, asyncio.StreamWriter], Awaitable[bool]]:
    async def answer(pod: Pod, writer: asyncio.StreamWriter) -> bool:
        writer.write(data)
        await writer.drain()
        return keep

    return answer
