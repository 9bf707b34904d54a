"""A control plane in its own process, to be killed by tests: `python control_plane.py DATA`.

Creates the pods it reads from standard input (one JSON object per line); prints `ready` and its port before it begins.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from unit.local.kubelet.machine import TestMachine


async def main() -> None:
    machine = TestMachine(Path(sys.argv[1]))
    await machine.start()
    print("ready", flush=True)
    print(machine.platform.port, flush=True)
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        await machine.create(json.loads(line))
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
