"""A cache server as a separate process, and what a controller says to it."""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from harness import until
from paddlecloud.controllers.sampledata.servers import access

TOKEN = "a-token-nobody-else-has"


def write_keys(folder: Path, token: str = TOKEN) -> None:
    """The files of a server's mounted Secret."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in access.fresh().items():
        (folder / name).write_bytes(base64.b64decode(value))
    (folder / "token").write_text(token)


class Nuwa:
    """`server.put(...)`, `server.wait(...)`; a context manager that ends the process."""

    def __init__(
        self, folder: Path, *flags: str, driver: str = "local", token: str = TOKEN, env: dict[str, str] | None = None
    ) -> None:
        self.data = folder / "data"
        self.cache = folder / "cache"
        self.log = folder / "nuwa.log"
        self._flags = flags
        self._driver = driver
        self._token = token
        self._env = env or {}
        self.address = ""
        self._tls: ssl.SSLContext | None = None
        if token:
            keys = folder / "keys"
            write_keys(keys, token)
            self._flags = (f"--keys={keys}", *flags)
            self._tls = ssl.create_default_context(cafile=str(keys / "tls.crt"))
            self._tls.check_hostname = False

    def start(self) -> Nuwa:
        self.cache.mkdir(parents=True, exist_ok=True)
        command = [
            sys.executable, "-m", "paddlecloud.cache.nuwa", "server", f"--driver={self._driver}",
            f"--dataDir={self.data}", f"--cacheDirs={self.cache}", "--serverPort=0", "--serverAddress=127.0.0.1",
            *self._flags,
        ]  # fmt: skip
        env = {**os.environ, **self._env}
        with self.log.open("a") as log:
            before = log.tell()
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=env)
        until(lambda: self._serving(before), every=0.05)
        return self

    def _serving(self, after: int) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        match = re.search(r"on (127\.\S+:\d+)", self.log.read_text()[after:])
        self.address = match[1] if match else ""
        return match is not None

    __enter__ = start

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(30)

    def request(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        request = urllib.request.Request(
            f"{'https' if self._tls else 'http'}://{self.address}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self._token}"} if headers is None else headers,
        )
        try:
            with urllib.request.urlopen(request, timeout=30, context=self._tls) as answer:
                return answer.status, _decoded(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, _decoded(error.read())

    def put(self, job: str, kind: str, options: Any = None, **more: Any) -> Any:
        status, answer = self.request("PUT", f"/v2/jobs/{job}", {"type": kind, "options": options or {}, **more})
        assert status == 202, answer
        return answer

    def get(self, job: str) -> Any:
        status, answer = self.request("GET", f"/v2/jobs/{job}")
        assert status == 200, answer
        return answer

    def wait(self, job: str, *, timeout: float = 60) -> Any:
        until(lambda: self.get(job)["state"] in ("Succeeded", "Failed", "Cancelled"), timeout=timeout, every=0.05)
        return self.get(job)

    def do(self, job: str, kind: str, options: Any = None, **more: Any) -> Any:
        self.put(job, kind, options, **more)
        return self.wait(job)

    def status(self) -> Any:
        """Figures are at most a second old: ask until they are those of now."""
        return self.request("GET", "/v2/status")[1]


def _decoded(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body.decode()


def tree(folder: Path) -> dict[str, bytes]:
    """The files below a folder, without the server's own and those that a JuiceFS mount makes up."""
    found = {}
    for path in sorted(folder.rglob("*")):
        inner = path.relative_to(folder)
        if not inner.parts[0].startswith(".") and path.is_file():
            found[str(inner)] = path.read_bytes()
    return found
