"""`pdc port-forward`: bytes both ways over many connections, by names and Services."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from embedded.acts.acting import Pdc, background, pod

ECHO = """
import socketserver
class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while data := self.request.recv(65536):
            self.request.sendall(data)
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
Server(("0.0.0.0", 7777), Echo).serve_forever()
"""


@contextmanager
def forwarding(
    environment: dict[str, str], namespace: str, *arguments: str, cwd: Path
) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    with background(environment, "-n", namespace, "port-forward", *arguments, cwd=cwd) as child:
        assert child.stdout is not None
        line = child.stdout.readline()
        found = re.match(r"Forwarding from 127\.0\.0\.1:(\d+) -> \d+", line)
        assert found, line
        yield int(found[1]), child


def test_bytes_flow_both_ways_over_many_connections(
    run: Pdc, environment: dict[str, str], namespace: str, tmp_path: Path
) -> None:
    serve(run, "echo", 7777, "python3", "-c", ECHO)
    data = os.urandom(2_000_000)
    with forwarding(environment, namespace, "echo", ":7777", cwd=tmp_path) as (port, child):
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", port), timeout=30) as link:
                link.settimeout(30)
                assert echoed(link, data) == data
        child.send_signal(signal.SIGINT)
        assert child.wait(60) == 130


def serve(run: Pdc, name: str, port: int, *command: str, **meta: Any) -> None:
    """A pod that listens on a port, ready when this returns."""
    manifest = json.loads(pod(name, *command))
    manifest["metadata"].update(meta)
    container = manifest["spec"]["containers"][0]
    container["ports"] = [{"name": "main", "containerPort": port}]
    container["readinessProbe"] = {"tcpSocket": {"port": port}, "periodSeconds": 1}
    made = run("apply", "-f", "-", "--wait", "--timeout", "60s", input=json.dumps(manifest))
    assert made.returncode == 0, made.stderr


def echoed(link: socket.socket, data: bytes) -> bytes:
    import threading

    sender = threading.Thread(target=link.sendall, args=(data,))
    sender.start()
    got = bytearray()
    while len(got) < len(data):
        piece = link.recv(65536)
        assert piece, f"ended after {len(got)} bytes"
        got += piece
    sender.join(30)
    return bytes(got)


def test_names_and_services_find_their_port(
    run: Pdc, environment: dict[str, str], namespace: str, tmp_path: Path
) -> None:
    serve(run, "web", 8000, "python3", "-m", "http.server", "8000", labels={"app": "web"})
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "front"},
        "spec": {"selector": {"app": "web"}, "ports": [{"name": "plain", "port": 80, "targetPort": "main"}]},
    }
    assert run("apply", "-f", "-", input=json.dumps(service)).returncode == 0
    for words in (["web", ":main"], ["svc/front", ":80"], ["svc/front", ":plain"]):
        with (
            forwarding(environment, namespace, *words, cwd=tmp_path) as (port, _),
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=30) as answer,
        ):
            assert answer.status == 200


def test_a_port_where_nobody_listens_ends_the_connection_and_not_the_forwarding(
    run: Pdc, environment: dict[str, str], namespace: str, sleeper: str, tmp_path: Path
) -> None:
    with forwarding(environment, namespace, sleeper, ":9", cwd=tmp_path) as (port, child):
        for _ in range(2):
            with socket.create_connection(("127.0.0.1", port), timeout=30) as link:
                link.settimeout(30)
                link.sendall(b"anybody?")
                assert link.recv(10) == b""
        assert child.poll() is None
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=60)
        assert "port 9" in err


def test_a_port_that_is_taken_here_is_a_conflict(run: Pdc, sleeper: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = run("port-forward", sleeper, f"{taken.getsockname()[1]}:80")
    assert done.returncode == 4
    assert "cannot listen" in done.stderr
