"""Where a set's data really lies: `local` (a folder) or `juicefs` (a mount), behind one interface (`base`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from paddlecloud.cache.engines.base import Engine
from paddlecloud.cache.levels import Level


def make(
    driver: str, data: str, levels: Sequence[Level], *, state: Path, partition: int, environment: Mapping[str, str]
) -> Engine:
    """An engine; only the one that is asked for is imported."""
    if driver == "juicefs":
        from paddlecloud.cache.engines.juicefs import JuiceFsEngine

        return JuiceFsEngine(data, levels, state=state, partition=partition, environment=environment)
    from paddlecloud.cache.engines.local import LocalEngine

    return LocalEngine(data, levels, state=state, partition=partition, environment=environment)
