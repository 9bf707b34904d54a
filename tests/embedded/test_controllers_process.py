"""Controllers as processes of their own, as a Deployment runs them: they work, tell their health, and hand over."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest
from rendered import CHART

from harness import eventually
from paddlecloud.api import crd
from paddlecloud.controllers.__main__ import CONTROLLERS
from paddlecloud.kube.errors import NotFound
from paddlecloud.kube.resource import LEASES, PADDLEJOBS, PODS, Object
from paddlecloud.local.control_plane import ControlPlane
from paddlecloud.platform import kubeconfig
from tools.ports import free_port

T = TypeVar("T")

MODULE = [sys.executable, "-m", "paddlecloud.controllers"]


@pytest.fixture
async def bare(tmp_path: Path) -> AsyncIterator[ControlPlane]:
    """An API server with our kinds and nothing that works on them."""
    running = ControlPlane(tmp_path / "data")
    await running.start(objects=crd.generate())
    pki = running.data / "pki"
    authority = base64.b64encode((pki / "ca.crt").read_bytes()).decode()
    token = (pki / "admin.token").read_text().strip()
    config = kubeconfig.content(url=f"https://127.0.0.1:{running.port}", ca=authority, token=token)
    (running.data / "kubeconfig").write_text(json.dumps(config))
    yield running
    await running.stop()


@contextmanager
def controller(name: str, platform: ControlPlane, *, pod: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The process, and the port of its health."""
    port = free_port()
    command = [*MODULE, name, "--kubeconfig", str(platform.data / "kubeconfig"), "--health-port", str(port)]
    env = {**os.environ, "POD_NAME": pod}
    log = platform.data / f"{pod}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=env, stderr=output)
    try:
        yield process, port
    finally:
        process.kill()
        process.wait()
    assert "Traceback" not in log.read_text(), log.read_text()


def ask(port: int, path: str) -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return str(answer.read().decode())
    except (urllib.error.URLError, ConnectionError):
        return ""


async def leader(platform: ControlPlane, name: str) -> str:
    try:
        lease = await platform.client().get(LEASES, f"{name}-controller", "default")
    except NotFound:
        return ""
    return str(lease["spec"].get("holderIdentity") or "")


def job() -> Object:
    main = {"name": "main", "image": "busybox", "command": ["sleep", "60"]}
    worker = {"replicas": 2, "template": {"spec": {"containers": [main]}}}
    metadata = {"name": "two", "namespace": "default"}
    return {"apiVersion": PADDLEJOBS.api_version, "kind": "PaddleJob", "metadata": metadata, "spec": {"worker": worker}}


async def test_the_leader_works_and_hands_over_when_it_is_asked_to_end(bare: ControlPlane) -> None:
    client = bare.client()

    async def leads() -> str:
        return (await leader(bare, "paddlejob")).partition("-")[0]

    async def members() -> int:
        return len((await client.list(PODS, "default")).items)

    with controller("paddlejob", bare, pod="first") as (first, port):
        assert await eventually(leads) == "first"
        await client.create(PADDLEJOBS, job())
        await eventually(members, 2)
        assert await asyncio.to_thread(ask, port, "/readyz") == "ok\n"
        assert "\npaddlecloud_leader 1\n" in await asyncio.to_thread(ask, port, "/metrics")
        metrics = await asyncio.to_thread(ask, port, "/metrics")
        assert 'paddlecloud_api_requests_total{method="GET",code="200"}' in metrics
        drawn = set(re.findall(r"paddlecloud_\w+", (CHART / "dashboard.json").read_text()))
        assert len(drawn) >= 4

        async def missing() -> list[str]:
            shown = await asyncio.to_thread(ask, port, "/metrics")
            return [name for name in drawn if f"\n{name}" not in shown]

        # Pods are there before the reconcile that makes them is over and counted.
        await eventually(missing, [], what="metrics that the dashboard draws and the controller lacks")
        with controller("paddlejob", bare, pod="second") as (_, other):
            await eventually(lambda: asyncio.to_thread(ask, other, "/readyz"))
            assert "\npaddlecloud_leader 0\n" in await asyncio.to_thread(ask, other, "/metrics")
            first.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(first.wait, 30) == 0
            assert await eventually(leads, lambda who: who != "first") in ("", "second")
            assert await eventually(leads) == "second"
            assert await members() == 2


@pytest.mark.parametrize("name", sorted(CONTROLLERS))
async def test_every_controller_starts_and_is_ready(bare: ControlPlane, name: str) -> None:
    with controller(name, bare, pod="only") as (process, port):
        await eventually(lambda: asyncio.to_thread(ask, port, "/readyz"))
        await eventually(lambda: leader(bare, name))
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, 30) == 0


def test_without_a_cluster_it_says_what_is_missing(tmp_path: Path) -> None:
    missing = [*MODULE, "paddlejob", "--kubeconfig", str(tmp_path / "none")]
    refused = subprocess.run(missing, capture_output=True, text=True, timeout=30)
    assert refused.returncode == 1
    assert "does not exist" in refused.stderr
    assert "Traceback" not in refused.stderr
