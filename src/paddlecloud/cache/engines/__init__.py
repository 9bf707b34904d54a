"""Where a set's data really lies: `local` (a folder) or `juicefs` (a mount), behind one interface (`base`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from paddlecloud.cache.engines.base import Engine
from paddlecloud.cache.levels import Level
from paddlecloud.storage.sources import Limits


def make(
    driver: str,
    data: str,
    levels: Sequence[Level],
    *,
    state: Path,
    partition: int,
    environment: Mapping[str, str],
    limits: Limits | None = None,
) -> Engine:
    """An engine; only the one that is asked for is imported. `limits` says which `file://` sources it may read."""
    if driver == "juicefs":
        from paddlecloud.cache.engines.juicefs import JuiceFsEngine

        return JuiceFsEngine(data, levels, state=state, partition=partition, environment=environment, limits=limits)
    from paddlecloud.cache.engines.local import LocalEngine

    return LocalEngine(data, levels, state=state, partition=partition, environment=environment, limits=limits)
