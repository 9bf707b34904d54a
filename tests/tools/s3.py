"""An S3 server for tests: SeaweedFS from its wheel, on ports of its own, gone with the test session.

Its first bucket is made by the first object that is put there.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from harness import until
from tools import seaweedfs
from tools.ports import free_ports

ACCESS_KEY, SECRET_KEY = "AKIDFORTESTS", "the-secret-key-of-the-tests"


def find() -> str | None:
    """The program, beside the interpreter that runs the tests or on PATH."""
    beside = Path(sys.executable).with_name("weed")
    return str(beside) if beside.exists() else shutil.which("weed")


class S3Server:
    def __init__(self, folder: Path, host: str = "127.0.0.1", keys: tuple[str, str] = (ACCESS_KEY, SECRET_KEY)) -> None:
        self.folder = folder
        self.host = host
        self.keys = keys

    def start(self) -> S3Server:
        self.folder.mkdir(parents=True, exist_ok=True)
        program = find()
        assert program is not None
        (self.folder / "s3.json").write_text(seaweedfs.identities(dict([self.keys]), ("public", "suites")))
        ports = free_ports(self.host, 8)
        self.port = ports[0]
        command = seaweedfs.server(program, self.folder, self.host, ports)
        log = (self.folder / "weed.log").open("w")
        with log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder)
        until(self._answers, timeout=60)
        return self

    def _answers(self) -> bool:
        assert self.process.poll() is None, (self.folder / "weed.log").read_text()[-2000:]
        try:
            self.store("probe").put("probe", b"x")
        except Exception:
            return False
        return True

    def stop(self) -> None:
        self.process.kill()  # asked nicely it takes half a minute
        self.process.wait(30)

    @property
    def endpoint(self) -> str:
        return f"http://{self.host}:{self.port}"

    def store(self, bucket: str) -> Any:
        return seaweedfs.store(self.endpoint, bucket, self.keys)
