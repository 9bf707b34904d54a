"""A program that holds many connections to a gateway: `python many_connections.py PORT COUNT HOST`.

It asks once on each connection and says how many were answered; for every line that it is sent it does so again.
"""

from __future__ import annotations

import asyncio
import resource
import sys

AT_ONCE = 200
"""Connections that are made at the same time: the backlog of a socket is bounded."""


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str) -> bool:
    writer.write(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].split()[0])
    await reader.readexactly(length)
    return head.startswith(b"HTTP/1.1 200")


async def main(port: int, count: int, host: str) -> None:
    turn = asyncio.Semaphore(AT_ONCE)
    held: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def come() -> bool:
        async with turn:
            held.append(pair := await asyncio.open_connection("127.0.0.1", port, limit=4096))
            return await ask(*pair, host)

    async def again(pair: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> bool:
        async with turn:
            return await ask(*pair, host)

    print(sum(await asyncio.gather(*(come() for _ in range(count)))), flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        print(sum(await asyncio.gather(*map(again, held))), flush=True)


if __name__ == "__main__":
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
