"""The program of a step: started, signalled, and its output passed on, kept as a result and as a log."""

from __future__ import annotations

import contextlib
import selectors
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import IO, Any

from paddlecloud.local.workflow.executor.logs import Log
from paddlecloud.local.workflow.executor.orders import MOST_VALUE, ExecutorError

PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def started(command: list[str], **options: Any) -> subprocess.Popen[bytes]:
    """A program that cannot be started is an error of the executor, as for Argo's emissary (cmd/argoexec)."""
    try:
        child = subprocess.Popen(command, **options)
    except OSError as why:
        missing = isinstance(why, FileNotFoundError) and "/" not in command[0]
        reason = "executable file not found in $PATH" if missing else str(why.strerror).lower()
        raise ExecutorError(f'failed to find name in PATH: exec: "{command[0][:200]}": {reason}') from None
    for number in PASSED_ON:
        signal.signal(number, lambda received, _: child.send_signal(received))
    return child


def run(command: list[str], *, capture: bool, log: Log | None) -> tuple[int, str]:
    """Its exit code and, where it is asked for, what it wrote to standard output."""
    kept = bytearray()
    pipe = subprocess.PIPE
    child = started(command, stdout=pipe if capture or log else None, stderr=pipe if log else None)
    for source, chunk in _chunks(child):
        target = sys.stdout if source is child.stdout else sys.stderr
        target.buffer.write(chunk)
        target.buffer.flush()
        if log is not None:
            log.write(chunk)
        if capture and source is child.stdout and len(kept) < MOST_VALUE:  # Argo cuts a longer result as well
            kept += chunk[: MOST_VALUE - len(kept)]
    code = child.wait()
    return (code if code >= 0 else 128 - code), kept.decode(errors="replace").removesuffix("\n")


def _chunks(child: subprocess.Popen[bytes]) -> Iterator[tuple[IO[bytes], bytes]]:
    with selectors.DefaultSelector() as ready, contextlib.ExitStack() as opened:
        for stream in (child.stdout, child.stderr):
            if stream is not None:
                ready.register(opened.enter_context(stream), selectors.EVENT_READ)
        while ready.get_map():
            for key, _ in ready.select():
                source: Any = key.fileobj
                if chunk := source.read1(65536):
                    yield source, chunk
                else:
                    ready.unregister(source)
