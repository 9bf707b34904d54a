"""The pipelines' API as the process that the chart's Deployment runs: no account of its own, the caller's rights."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from harness import until
from paddlecloud.platform import endpoint
from tools.ports import free_port


@pytest.fixture
def url(platform_data: Path) -> Iterator[str]:
    found = endpoint.find(platform_data)
    assert found is not None
    port = free_port()
    env = {**os.environ, "KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(found.port)}
    command = [sys.executable, "-m", "paddlecloud.pipelines.api", "--host=127.0.0.1", f"--port={port}"]
    process = subprocess.Popen([*command, f"--ca={platform_data / 'pki' / 'ca.crt'}"], env=env)
    try:
        until(lambda: ask(f"http://127.0.0.1:{port}/healthz")[0], 200)
        yield f"http://127.0.0.1:{port}/apis/v2beta1"
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0


def ask(address: str, token: str = "", body: bytes | None = None, **headers: str) -> tuple[int, Any]:
    given = {**({"Authorization": f"Bearer {token}"} if token else {}), **headers}
    request = urllib.request.Request(address, data=body, headers=given)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)
    except OSError:
        return 0, None


def test_it_acts_with_the_callers_token_and_refuses_what_is_too_much(url: str, platform_data: Path) -> None:
    admin = (platform_data / "pki" / "admin.token").read_text().strip()
    assert ask(f"{url}/experiments", admin)[0] == 200
    assert ask(f"{url}/experiments")[0] == 401
    assert ask(f"{url}/experiments", "wrong")[0] == 401
    code, body = ask(f"{url}/experiments", admin, b"{" * 100_000)
    assert (code, body["code"], body["message"].startswith("the body is not JSON")) == (400, 3, True)
    code, body = ask(f"{url}/experiments", admin, b" " * (9 << 20))
    assert (code, "more than" in body["message"]) == (413, True)
    code, body = ask(f"{url}/nothing", admin)
    assert (code, body["code"], "is not offered here" in body["message"]) == (501, 12, True)
    upload = b'--x\r\nContent-Disposition: form-data; name="uploadfile"; filename="a"\r\n\r\n'
    big = upload + b" " * (5 << 20) + b"\r\n--x--\r\n"
    code, body = ask(
        f"{url}/pipelines/upload?name=big", admin, big, **{"Content-Type": "multipart/form-data; boundary=x"}
    )
    assert (code, "the file has more than" in body["message"]) == (413, True)
    many = b"--x\r\n" + b"".join(b"A%d: b\r\n" % number for number in range(5000)) + upload[5:] + b"a\r\n--x--\r\n"
    code, body = ask(
        f"{url}/pipelines/upload?name=many", admin, many, **{"Content-Type": "multipart/form-data; boundary=x"}
    )
    assert (code, "the upload cannot be read" in body["message"]) == (400, True)
    code, body = ask(
        f"{url}/pipelines/upload?name=bad", admin, upload + b"kind: Pod\r\n--x--\r\n",
        **{"Content-Type": "multipart/form-data; boundary=x"},
    )  # fmt: skip
    assert (code, "the kind is Pod" in body["message"]) == (400, True)


def test_bodies_that_never_end_hold_up_nobody_else(url: str, platform_data: Path) -> None:
    """More of them than requests that are carried out at once, without a token that counts and with one."""
    admin = (platform_data / "pki" / "admin.token").read_text().strip()
    place = urlsplit(url)
    held = []
    try:
        for token in ("wrong", admin):
            for number in range(20):
                name = f"{token}{number}" if token == "wrong" else token
                held.append(socket.create_connection((place.hostname or "", place.port or 0)))
                held[-1].sendall(
                    f"POST {place.path}/experiments HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {name}\r\n"
                    "Content-Length: 1000\r\n\r\n{".encode()
                )
            assert ask(f"{url}/experiments", "another")[0] == 401
            assert ask(f"{url}/experiments", "another", b"{}")[0] == 401
        first = held[0].recv(100)
        assert first.startswith(b"HTTP/1.1 401")
    finally:
        for connection in held:
            connection.close()
    assert ask(f"{url}/experiments", admin)[0] == 200
