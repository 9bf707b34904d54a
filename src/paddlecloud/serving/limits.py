"""How requests may be batched: part of what a model's folder says about itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BatchLimits:
    rows: int = 32
    """Rows of one batch; 1 runs every request alone."""
    delay: float = 0.0
    """Seconds a runner waits for more once it has something."""
    waiting: int = 256
    """Requests that may wait; the next one is refused."""
