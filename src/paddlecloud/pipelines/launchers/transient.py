"""Requests that are worth repeating: the API server restarts, is busy or out of reach for a moment."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from paddlecloud.kube.backoff import Backoff
from paddlecloud.kube.errors import (
    ApiError,
    InternalError,
    ServiceUnavailable,
    Timeout,
    TooManyRequests,
    Unreachable,
)

T = TypeVar("T")

TRANSIENT = (Unreachable, TooManyRequests, ServiceUnavailable, Timeout, InternalError)
PATIENCE = 300.0
"""Seconds for which one request is repeated. A step that fails for a restart of the control plane wastes a training."""


async def retrying(call: Callable[[], Awaitable[T]], *, report: Callable[[str], None], patience: float = PATIENCE) -> T:
    """The answer of `call`, which is made again while it fails for a transient reason."""
    backoff = Backoff(random.Random(), base=0.2, cap=15.0)  # noqa: S311 - it spreads clients, it keeps no secret
    deadline = time.monotonic() + patience
    while True:
        try:
            return await call()
        except TRANSIENT as error:
            pause = max(backoff.next(), float(error.retry_after or 0))
            if time.monotonic() + pause > deadline:
                raise
            report(f"trying again in {pause:.1f} s: {_first_line(error)}")
            await asyncio.sleep(pause)


def _first_line(error: ApiError) -> str:
    return error.message.partition("\n")[0]
