"""Interpreters that wait with an image's modules imported, so that its pods start by a fork.

An image asks for one by `preload` in its recipe. The first pod of an image starts cold and has the warm parent made;
later ones fork from it. A parent that cannot import its modules is given up, and its image stays cold.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from pathlib import Path

from paddlecloud.local.images.environment import Environment
from paddlecloud.local.kubelet.launcher import Launcher

log = logging.getLogger(__name__)

MOST = 4
"""Warm parents kept at a time; each holds the memory of its modules."""


class WarmParents:
    def __init__(self) -> None:
        self._ready: OrderedDict[str, Launcher] = OrderedDict()
        self._warming: dict[str, asyncio.Task[None]] = {}
        self._broken: set[str] = set()

    def find(self, image: Environment) -> Launcher | None:
        """The warm parent of an image; None while there is none, which is then made for the next pod."""
        key = image.image_id
        if not image.preload or not image.path or key in self._broken:
            return None
        launcher = self._ready.get(key)
        if launcher is not None and launcher.pid is not None:
            self._ready.move_to_end(key)
            return launcher
        if key not in self._warming:
            self._warming[key] = asyncio.create_task(self._warm(image), name=f"warm parent of {key[:19]}")
        return None

    async def _warm(self, image: Environment) -> None:
        key = image.image_id
        python = str(Path(image.path[0]) / "python")
        launcher = Launcher(python=python, preload=image.preload, library=image.library)
        try:
            if await launcher.start():
                self._ready[key] = launcher
            else:
                log.warning("the modules %s cannot be preloaded; pods start cold", ", ".join(image.preload))
                self._broken.add(key)
        finally:
            self._warming.pop(key, None)
        while len(self._ready) > MOST:
            _, idle = self._ready.popitem(last=False)
            await idle.stop()

    async def settled(self) -> None:
        """Until nothing is being made."""
        if self._warming:
            await asyncio.wait(list(self._warming.values()))

    async def stop(self) -> None:
        for task in self._warming.values():
            task.cancel()
        await asyncio.gather(*self._warming.values(), return_exceptions=True)
        for launcher in self._ready.values():
            await launcher.stop()
        self._ready.clear()
