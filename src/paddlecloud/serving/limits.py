"""Limits of requests: how they are batched, which a model's folder says of itself, and how many parts they may have."""

from __future__ import annotations

from dataclasses import dataclass

MOST_PARTS = 1 << 20
"""Lists, objects, texts or fields in one request: each costs a hundred bytes, however few it was sent as."""


@dataclass(frozen=True, slots=True)
class BatchLimits:
    rows: int = 32
    """Rows of one batch; 1 runs every request alone."""
    delay: float = 0.0
    """Seconds a runner waits for more once it has something."""
    waiting: int = 256
    """Requests that may wait; the next one is refused."""
