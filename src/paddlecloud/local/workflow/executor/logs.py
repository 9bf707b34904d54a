"""`archiveLogs`: what a container wrote is kept as an artifact.

The log is a file of the outputs volume under the number of its order. For the built-in repository the controller takes
it over when the pod is over, also of a container that was killed; for an S3 store it has its number once it is stored.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import sys
from collections.abc import Iterator
from typing import Any

from paddlecloud.local.workflow.executor.orders import OUTPUTS, ExecutorError


class Log:
    def __init__(self, path: str) -> None:
        self._file = open(path, "wb", buffering=0)  # noqa: SIM115 - `opened` closes it
        self._digest = hashlib.sha256()
        self._size = 0

    def write(self, chunk: bytes) -> None:
        self._file.write(chunk)
        self._digest.update(chunk)
        self._size += len(chunk)

    def close(self) -> dict[str, Any]:
        self._file.close()
        return {"digest": f"sha256:{self._digest.hexdigest()}", "size": self._size}


@contextlib.contextmanager
def opened(order: dict[str, Any] | None) -> Iterator[Log | None]:
    """`order` has the number and, where the log goes to an S3 store, the place there."""
    if order is None:
        yield None
        return
    place = os.path.join(OUTPUTS, str(order["number"]))
    path = f"{place}.part" if "s3" in order else place
    log = Log(path)
    try:
        yield log
    finally:
        about = log.close()
        if "s3" in order:
            _store(order, path)
            os.replace(path, place)
        with open(f"{place}.json", "w") as file:
            json.dump(about, file)


def _store(order: dict[str, Any], path: str) -> None:
    from paddlecloud.local.workflow.executor import s3

    try:
        s3.store(order["s3"], path)
    except (ExecutorError, OSError) as why:
        raise ExecutorError(f"failed to save the log: {why}") from None


class _Tee(io.TextIOBase):
    def __init__(self, target: Any, log: Log) -> None:
        self._target, self._log = target, log

    def write(self, text: str) -> int:
        self._log.write(text.encode(errors="replace"))
        return int(self._target.write(text))

    def flush(self) -> None:
        self._target.flush()


@contextlib.contextmanager
def of_executor(log: Log | None) -> Iterator[None]:
    """What the executor itself prints goes to the log, too: of templates without a program."""
    if log is None:
        yield
        return
    with contextlib.redirect_stdout(_Tee(sys.stdout, log)), contextlib.redirect_stderr(_Tee(sys.stderr, log)):
        yield
