"""The embedded API server alone, with every kind and no controller, and real kubectl to talk to it.

Without controllers a status stays as a test writes it, so what is judged is what users see of it. What the controllers
make of the same YAML is shown by their own tests.
"""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from paddlecloud.api import crd
from paddlecloud.platform import kubeconfig

if TYPE_CHECKING:
    from paddlecloud.local.control_plane import ControlPlane

NAMESPACES = ("paddle-system", "kubeflow", "paddlecloud", "paddleservice-system")
"""Those the manual's YAML and commands name."""

Kubectl = Callable[..., subprocess.CompletedProcess[str]]


class Background:
    """A platform on its own event loop, so that tests may block on kubectl."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def start(self) -> ControlPlane:
        return asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(timeout=60)

    async def _start(self) -> ControlPlane:
        from paddlecloud.local.control_plane import ControlPlane  # the pages are checked without a platform too

        self._platform = ControlPlane(self._data)
        await self._platform.start(objects=crd.generate())
        return self._platform

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._platform.stop(), self._loop).result(timeout=60)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=10)
        self._loop.close()


@pytest.fixture(scope="session")
def api_kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    data = tmp_path_factory.mktemp("api")
    background = Background(data)
    platform = background.start()
    config = kubeconfig.content(
        url=f"https://127.0.0.1:{platform.port}",
        ca=base64.b64encode(platform.certs.ca_cert.read_bytes()).decode(),
        token=(data / "pki" / "admin.token").read_text().strip(),
    )
    path = data / "kubeconfig"
    path.write_text(json.dumps(config))
    yield path
    background.stop()


@pytest.fixture(scope="session")
def shell(api_kubeconfig: Path, kubectl_binary: str) -> Kubectl:
    """`shell("get", "pdj")` runs kubectl; a failure raises with what it printed."""

    def run(*args: str, input: Any = None) -> subprocess.CompletedProcess[str]:
        body = input if input is None or isinstance(input, str) else json.dumps(input)
        result = subprocess.run(
            [kubectl_binary, "--kubeconfig", str(api_kubeconfig), *args],
            capture_output=True,
            text=True,
            input=body,
            timeout=60,
        )
        if result.returncode:
            raise AssertionError(f"kubectl {' '.join(args)}: {result.stdout}{result.stderr}")
        return result

    for name in NAMESPACES:
        run("create", "-f", "-", input={"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return run
