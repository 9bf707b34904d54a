"""A shop for every test: see `shop`."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from embedded.raw import raw_client
from embedded.streams.shop import Shop
from paddlecloud.platform import kubeconfig
from unit.local.kubelet.machine import running_machine


@pytest.fixture
async def shop(tmp_path: Path, kubectl_binary: str) -> AsyncIterator[Shop]:
    async with running_machine(tmp_path / "data") as machine, raw_client(machine.platform) as raw:
        platform = machine.platform
        platform.serve_streams(machine.streams)
        ca = base64.b64encode(platform.certs.ca_cert.read_bytes()).decode()
        config = tmp_path / "kubeconfig"
        config.write_text(json.dumps(kubeconfig.content(url=platform.url, ca=ca, token=raw.admin)))
        env = {**os.environ, "KUBECONFIG": str(config), "HOME": str(tmp_path)}
        yield Shop(machine, raw, env, kubectl_binary)
