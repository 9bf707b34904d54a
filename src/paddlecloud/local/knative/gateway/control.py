"""A process's line to the control plane: one connection, made again whenever it is lost.

Both ends send one JSON object a line. A process says who it is (`hello`), that it takes connections (`ready`), what it
carried (`report`) and which revision has requests and no pods (`wake`). It gets the whole table (`all`), then what
changes of it (`set`), both with the table's `version`; it acknowledges a version that requests follow (`applied`).
`ports` in `hello` says that it listens on the ports of single routes, which processes of earlier releases did not.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from typing import Any

from paddlecloud.local.knative.gateway.sockets import connect_unix

ALONE = 60.0
"""Seconds without a control plane after which a process ends."""
RETRY = 0.1

Message = dict[str, Any]


class ControlLine:
    """`receive` is called with every message; `follow` returns when there has been no control plane for long."""

    def __init__(self, path: str, *, number: int, port: int, receive: Callable[[Message], None]) -> None:
        self._path = path
        self.listening = False
        """Whether the process takes connections."""
        self._hello = {"pid": os.getpid(), "number": number, "port": port, "ports": True}
        self._receive = receive
        self._writer: asyncio.StreamWriter | None = None

    @property
    def is_open(self) -> bool:
        return self._writer is not None

    async def follow(self) -> None:
        loop = asyncio.get_running_loop()
        last = loop.time()
        while loop.time() - last < ALONE:
            try:
                reader, writer = await connect_unix(self._path)
            except OSError:
                await asyncio.sleep(RETRY)
                continue
            self._writer = writer
            self.send({"hello": {**self._hello, "listening": self.listening}})
            try:
                while line := await reader.readline():
                    self._receive(json.loads(line))
            except (OSError, ValueError):
                pass  # a control plane that ends in mid-sentence: the next one says it all again
            self._writer = None
            writer.close()
            last = loop.time()

    def acknowledge(self, message: Message) -> None:
        """Requests follow this message."""
        if "version" in message:  # the control plane of an earlier release sends none
            self.send({"applied": message["version"]})

    def send(self, message: Message) -> None:
        """Said to nobody while the line is down: what matters is said again."""
        if self._writer is not None:
            self._writer.write(json.dumps(message).encode() + b"\n")
