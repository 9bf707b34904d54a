"""Programs that forward ports until they are stopped, and requests through them."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator

from harness import Target


def answer(url: str, **headers: str) -> tuple[int, str]:
    request = urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(errors="replace")


@contextlib.contextmanager
def streaming(command: list[str], server: Target, found: Callable[[str], str | None]) -> Iterator[str]:
    """What `found` reads from a line of a program that goes on; Ctrl-C ends it."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=server.env)
    assert process.stdout is not None
    try:
        said = []
        for line in process.stdout:
            said.append(line)
            if (hit := found(line)) is not None:
                yield hit
                break
        else:
            raise AssertionError("".join(said))
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


def forwarded(
    kubectl_binary: str, server: Target, namespace: str, subject: str, port: int
) -> contextlib.AbstractContextManager[str]:
    """The address here that `kubectl port-forward` leads from, while it does."""

    def address(line: str) -> str | None:
        found = re.search(r"127\.0\.0\.1:\d+", line)
        return found[0] if found else None

    return streaming([kubectl_binary, "-n", namespace, "port-forward", subject, f":{port}"], server, address)
