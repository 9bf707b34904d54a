"""The life of a SampleSet on a cluster on paper: every arrow between its phases, and what users see on the way."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from paddlecloud.kube.resource import SAMPLESETS

from .world import World, world


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path / "data") as found:
        yield found


async def test_a_set_is_bound_mounted_synced_and_ready(here: World) -> None:
    await here.create_set()
    status = await here.phase("Ready")
    assert status["driver"] == "local"
    assert status["runtimeStatus"] == {"runtimeReady": "1/1", "specReplicas": 1, "readyReplicas": 1}
    assert status["cacheStatus"]["totalSize"] == "4.0 GiB"
    assert status["cacheStatus"]["totalFiles"] == "128,660"
    assert SAMPLESETS
