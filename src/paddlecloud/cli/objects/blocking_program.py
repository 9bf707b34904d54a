"""A program in a container as blocking calls, for what copies files in a thread (`sdk.copying`)."""

from __future__ import annotations

from paddlecloud.sdk.portal import Portal
from paddlecloud.sdk.remote import Output, Process


class BlockingProgram:
    """A program in the container as blocking calls."""

    def __init__(self, portal: Portal, process: Process) -> None:
        self._portal = portal
        self._process = process

    def read(self) -> Output | None:
        return self._portal.run(self._process.read())

    def write(self, data: bytes) -> None:
        self._portal.run(self._process.write(data))

    def end_input(self) -> None:
        self._portal.run(self._process.end_input())

    def close(self) -> None:
        self._portal.run(self._process.close())

    @property
    def exit_code(self) -> int:
        return self._process.exit_code
