"""Deletes from the image cache what nobody needs any more, while a platform runs.

A layer goes when no recipe gives it, nobody used it for two weeks and no process works in it. The cache is shared by
all platforms of a user, whose recipes are not known here: what another one uses is seen by its processes and by the
time of its last use.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from pathlib import Path

from paddlecloud.kube.clock import Clock
from paddlecloud.local.images.store import ImageStore

log = logging.getLogger(__name__)

FIRST = 60.0  # not while a platform starts
PERIOD = 3600.0
MAX_AGE = 14 * 86400.0


class ImageGarbageCollector:
    """`run` works until cancelled. It has a thread use the store, which must be nobody else's therefore."""

    def __init__(self, store: ImageStore, *, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def run(self) -> None:
        await self._clock.sleep(FIRST)
        while True:
            for layer in await asyncio.to_thread(self._collect):
                log.info("%s was used by nobody for two weeks and is deleted", layer)
            await self._clock.sleep(PERIOD)

    def _collect(self) -> list[Path]:
        return self._store.collect_garbage(max_age=MAX_AGE, in_use=folders_in_use(self._store.cache))


def folders_in_use(cache: Path, *, proc: str = "/proc") -> list[str]:
    """Layers that processes of this user have in their environment, as every program of an image does."""
    pattern = re.compile(re.escape(os.fsencode(cache)) + rb"/(?:packages|files)/[^/:\0]+")
    found: set[bytes] = set()
    for name in os.listdir(proc):
        if name.isdigit():
            try:
                with open(f"{proc}/{name}/environ", "rb") as handle:
                    found.update(pattern.findall(handle.read()))
            except OSError:
                continue  # it ended, or is somebody else's
    return sorted(map(os.fsdecode, found))
