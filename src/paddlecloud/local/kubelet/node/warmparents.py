"""Interpreters that wait with an image's modules imported, so that its pods start by a fork.

An image asks for one by `preload` in its recipe. The first pod of an image starts cold and has the warm parent made;
later ones fork from it. Modules may read variables when they are imported (a rank, a count of threads), so pods that
differ in one of those have parents apart. A parent that cannot import its modules is given up; pods with its variables
stay cold.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from paddlecloud.kube.clock import Clock
from paddlecloud.local.images.environment import Environment
from paddlecloud.local.kubelet.node.zygote_client import ZygoteClient
from paddlecloud.local.kubelet.pod.container_order import image_env
from paddlecloud.local.kubelet.shim import warmprogram

log = logging.getLogger(__name__)

MOST = 4
"""Warm parents kept at a time; each holds the memory of its modules."""

IDLE = 600.0
"""Seconds without a fork after which a parent makes room for another. A job of many ranks would have them replace each
other at every start, and pay for each with the CPU time of a cold one."""

Key = tuple[str, frozenset[tuple[str, str]]]
"""An image, and the variables on which its modules depend."""


class WarmParents:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ready: OrderedDict[Key, tuple[ZygoteClient, float]] = OrderedDict()  # with the time of the last use
        self._warming: dict[str, asyncio.Task[None]] = {}
        self._reads: dict[str, Collection[str]] = {}
        self._broken: set[Key] = set()
        """With all variables of the parent. One pod's must not keep the image cold for others."""

    def find(self, image: Environment, argv: Sequence[str], env: Mapping[str, str]) -> ZygoteClient | None:
        """The warm parent for a program of an image; None while there is none, which is then made for the next pod."""
        name = image.image_id
        if not image.preload or not image.path or warmprogram.parse(argv, env) is None:
            return None
        environment = self._environment(image, env)
        if environment is None or (name, frozenset(environment.items())) in self._broken:
            return None
        key = self._key(image, environment)
        zygote, _ = self._ready.get(key, (None, 0.0))
        if zygote is not None and zygote.pid is not None:
            self._ready[key] = zygote, self._clock.monotonic()
            self._ready.move_to_end(key)
            return zygote
        if name not in self._warming and self._has_room():
            self._warming[name] = asyncio.create_task(self._warm(image, env), name=f"warm parent of {name[:19]}")
        return None

    def _environment(self, image: Environment, env: Mapping[str, str]) -> dict[str, str] | None:
        return warmprogram.parent_environment(image_env(image), env, self._reads.get(image.image_id, ()))

    def _key(self, image: Environment, environment: Mapping[str, str]) -> Key:
        relevant = warmprogram.relevant(environment, self._reads.get(image.image_id, ()))
        return image.image_id, frozenset(relevant.items())

    def _has_room(self) -> bool:
        if len(self._ready) < MOST:
            return True
        _, used = next(iter(self._ready.values()))
        return self._clock.monotonic() - used >= IDLE

    async def _warm(self, image: Environment, env: Mapping[str, str]) -> None:
        """Make the parent for `env`. Which variables matter is known after the first one of an image: if that turns out
        to be another's, one more is made."""
        name = image.image_id
        try:
            known = name in self._reads
            fits = await self._make(image, env)
            if not fits and not known:
                await self._make(image, env)
        finally:
            self._warming.pop(name, None)

    async def _make(self, image: Environment, env: Mapping[str, str]) -> bool:
        """Whether there is a parent for `env` now."""
        name = image.image_id
        environment = self._environment(image, env)
        if environment is None:
            return False
        python = str(Path(image.path[0]) / "python")
        zygote = ZygoteClient(python=python, preload=image.preload, environment=environment)
        if not await zygote.start():
            log.warning("the modules %s cannot be preloaded; pods start cold", ", ".join(image.preload))
            self._broken.add((name, frozenset(environment.items())))
            return False
        self._reads[name] = zygote.reads
        if environment != self._environment(image, env):
            await zygote.stop()
            return False
        self._ready[self._key(image, environment)] = zygote, self._clock.monotonic()
        while len(self._ready) > MOST:
            _, (idle, _) = self._ready.popitem(last=False)
            await idle.stop()
        return True

    async def settled(self) -> None:
        """Until nothing is being made."""
        if self._warming:
            await asyncio.wait(list(self._warming.values()))

    async def stop(self) -> None:
        for task in self._warming.values():
            task.cancel()
        await asyncio.gather(*self._warming.values(), return_exceptions=True)
        for zygote, _ in self._ready.values():
            await zygote.stop()
        self._ready.clear()
