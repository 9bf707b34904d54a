"""Where a set's data really lies: `local` (a folder) or `juicefs` (a mount), behind one interface (`base`)."""

from __future__ import annotations

from paddlecloud.cache.engines.base import Engine, EngineSettings


def make(driver: str, settings: EngineSettings) -> Engine:
    """An engine; only the one that is asked for is imported."""
    if driver == "juicefs":
        from paddlecloud.cache.engines.juicefs import JuiceFsEngine

        return JuiceFsEngine(settings)
    from paddlecloud.cache.engines.local import LocalEngine

    return LocalEngine(settings)
