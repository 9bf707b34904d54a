"""An S3 server for tests: SeaweedFS from its wheel, on ports of its own, gone with the test session.

Its first bucket is made by the first object that is put there.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from harness import until
from tools.ports import free_ports

ACCESS_KEY, SECRET_KEY = "AKIDFORTESTS", "the-secret-key-of-the-tests"


def find() -> str | None:
    """The program, beside the interpreter that runs the tests or on PATH."""
    beside = Path(sys.executable).with_name("weed")
    return str(beside) if beside.exists() else shutil.which("weed")


class S3Server:
    def __init__(self, folder: Path, host: str = "127.0.0.1") -> None:
        self.folder = folder
        self.host = host

    def start(self) -> S3Server:
        self.folder.mkdir(parents=True, exist_ok=True)
        program = find()
        assert program is not None
        identity = {
            "name": "tests",
            "credentials": [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        }
        open_to_all = [f"{verb}:{bucket}" for verb in ("Read", "List") for bucket in ("public", "suites")]
        anonymous = {"name": "anonymous", "actions": open_to_all}
        config = self.folder / "s3.json"
        config.write_text(json.dumps({"identities": [identity, anonymous]}))
        self.port, master, volume, filer, *grpc = free_ports(self.host, 8)
        command = [
            program, "server", "-s3", f"-dir={self.folder}", f"-ip={self.host}", f"-ip.bind={self.host}",
            f"-s3.config={config}", f"-s3.port={self.port}", f"-master.port={master}", f"-volume.port={volume}",
            f"-filer.port={filer}", f"-s3.port.grpc={grpc[0]}", f"-master.port.grpc={grpc[1]}",
            f"-volume.port.grpc={grpc[2]}", f"-filer.port.grpc={grpc[3]}", "-s3.port.iceberg=0", "-s3.port.lance=0",
            "-volume.max=400", "-master.volumeSizeLimitMB=256", "-master.telemetry=false",
        ]  # fmt: skip
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
        from obstore.store import S3Store

        return S3Store(
            bucket,
            endpoint=self.endpoint,
            region="us-east-1",
            access_key_id=ACCESS_KEY,
            secret_access_key=SECRET_KEY,
            client_options={"allow_http": True},
            retry_config={"max_retries": 0},
        )
