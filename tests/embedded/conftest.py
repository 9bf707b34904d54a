"""A platform inside the test's own event loop: every part real, no network, no other process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import FakeClock
from paddlecloud.local.platform import Platform


@pytest.fixture
async def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def inner(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Platform]:
    """Time stands still unless a test moves it."""
    platform = Platform(tmp_path / "data", clock=clock, seed=1)
    await platform.start()
    yield platform
    await platform.stop()


@pytest.fixture
async def client(inner: Platform) -> Client:
    return inner.client(user_agent="test")
