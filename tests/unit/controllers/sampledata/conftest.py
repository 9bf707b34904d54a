"""A cluster on paper for every test of these controllers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from .world import SampleDataCluster, world


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[SampleDataCluster]:
    async with world(tmp_path / "data") as found:
        yield found
