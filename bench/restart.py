"""How long a platform with 20,000 objects needs to be back after a stop, and after `kill -9`."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from paddlecloud.local.store.record import ObjectAddress
from paddlecloud.local.store.store import Store
from paddlecloud.platform import endpoint

from .claim import Claim, pdc, resident_megabytes, until

OBJECTS = 20_000


def run() -> Iterator[Claim]:
    with tempfile.TemporaryDirectory() as directory:
        data = Path(directory).resolve()
        env = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
        pdc("up", "--data", str(data), "--port", "0", env=env)
        pdc("down", "--data", str(data), env=env)
        asyncio.run(_fill(data))
        began = time.monotonic()
        pdc("up", "--data", str(data), "--port", "0", env=env)
        after_stop = time.monotonic() - began
        found = endpoint.find(data)
        assert found is not None
        resident = resident_megabytes(found.pid)
        os.kill(found.pid, signal.SIGKILL)
        until(lambda: not Path(f"/proc/{found.pid}").exists(), timeout=10)
        began = time.monotonic()
        pdc("up", "--data", str(data), "--port", "0", env=env)
        after_kill = time.monotonic() - began
        env["KUBECONFIG"] = str(data / "kubeconfig")
        listed = pdc("get", "configmaps", "-n", "default", "-o", "name", env=env).count("\n")
        pdc("down", "--data", str(data), env=env)
    note = f"{OBJECTS:,} ConfigMaps of 3 KB, pdc up to ready, bytecode compiled"
    yield Claim("restart after a stop", after_stop, "s", note=note)
    yield Claim("restart after kill -9", after_kill, "s", note=note)
    yield Claim("objects lost", OBJECTS + 1 - listed, "", goal=0, note="counted by pdc get after kill -9")
    yield Claim("resident with these objects", resident, "MB")


async def _fill(data: Path) -> None:
    """Straight into the store: this measures the restart, not the writes before it."""
    store = Store(data / "state.db")
    for start in range(0, OBJECTS, 500):
        await asyncio.gather(*(store.put(*_object(number), expect=0) for number in range(start, start + 500)))
    await store.close()


def _object(number: int) -> tuple[ObjectAddress, dict[str, object]]:
    name = f"filler-{number:05}"
    meta = {"name": name, "namespace": "default", "uid": f"00000000-0000-4000-8000-{number:012}",
            "creationTimestamp": "2026-01-01T00:00:00Z"}  # fmt: skip
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"payload": "x" * 2800}}
    return ObjectAddress("/configmaps", "default", name), obj
