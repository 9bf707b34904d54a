"""A platform inside the test's own event loop: every part real, no network, no other process. And `pdc` beside it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from embedded.dashboard_tabs import address
from harness import Target, need
from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import FakeClock
from paddlecloud.local.control_plane import ControlPlane
from tools import browser, browser_page
from tools.browser_page import Browser, Tab
from unit.local.kubelet.machine import TestMachine, running_machine


@pytest.fixture
async def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def inner(tmp_path: Path, clock: FakeClock) -> AsyncIterator[ControlPlane]:
    """Time stands still unless a test moves it."""
    platform = ControlPlane(tmp_path / "data", clock=clock, seed=1)
    await platform.start()
    yield platform
    await platform.stop()


@pytest.fixture
async def client(inner: ControlPlane) -> Client:
    return inner.client(user_agent="test")


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[TestMachine]:
    """A control plane and a kubelet that runs its pods, and nothing else."""
    async with running_machine(tmp_path) as running:
        yield running


@pytest.fixture
def main_context(server: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`main` of the command line, when the test calls it, reaches the server; its cache and folder are the test's."""
    monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
async def chromium(tmp_path: Path) -> AsyncIterator[Browser]:
    need("browser", have=browser.find() is not None, hint=browser.HINT)
    async with browser_page.running(tmp_path / "browser") as made:
        yield made


@pytest.fixture
async def tab(chromium: Browser, server: Target) -> AsyncIterator[Tab]:
    """Signed in to the dashboard. Nothing that its scripts or the policy complain about is overlooked."""
    async with chromium.tab() as made:
        await made.open(address(server))
        await made.sees("live", "#live")
        yield made
        assert made.errors == []
