"""The place of the served model: one at a time, replaced without a dropped request.

A new version is loaded and warmed up beside the old one, then takes its place; the old one answers what it has and
goes. A version that cannot be loaded leaves the old one where it is, and is reported in the log and in the index.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from paddlecloud.serving import artifact
from paddlecloud.serving.errors import ModelError, NotFound, NotReady
from paddlecloud.serving.metrics import Metrics
from paddlecloud.serving.model import Model, Resources, load

log = logging.getLogger(__name__)

LOOK_EVERY = 1.0
"""Seconds between two looks at the folder."""


class Slot:
    def __init__(
        self, folder: Path, *, name: str, resources: Resources, metrics: Metrics, own_code: bool = True
    ) -> None:
        """`own_code` allows what the model's folder brings along to be run."""
        self._folder = folder
        self._own_code = own_code
        self._name = name
        self._resources = resources
        self._metrics = metrics
        self._model: Model | None = None
        self._refused = ""
        self._loading = asyncio.Lock()
        self.problem = ""
        """Why the newest version, or its faster form, is not the one served; empty when it is."""

    @property
    def ready(self) -> bool:
        return self._model is not None

    def model(self, name: str | None = None, version: str | None = None) -> Model:
        if self._model is None:
            raise NotReady("the model is not loaded yet")
        if name is not None and name != self._model.name:
            raise NotFound(f"there is no model {name!r} here; this server has {self._model.name!r}")
        if version and version != self._model.version:
            raise NotFound(f"model {self._model.name!r} has version {self._model.version}, not {version}")
        return self._model

    @contextmanager
    def using(self, name: str | None = None, version: str | None = None) -> Iterator[Model]:
        """The model for the length of a request; a newer one may take its place meanwhile, without ending it."""
        model = self.model(name, version)
        with model.in_use():
            yield model

    async def load(self) -> Model:
        """Have the newest version in its place; does nothing if it is there already."""
        async with self._loading:
            found = artifact.find(self._folder, name=self._name)
            old = self._model
            if old is not None and old.artifact.fingerprint == found.fingerprint:
                return old
            new = await load(found, self._resources, metrics=self._metrics, own_code=self._own_code)
            self._model, self.problem, self._refused = new, new.remark, ""
            if new.remark:
                log.warning("%s", new.remark)
        if old is not None:
            self._metrics.reloads.inc(new.name, "replaced")
            same = new.version == old.version
            log.info("version %s %s", new.version, "was changed" if same else f"takes over from {old.version}")
            await old.close()
        return new

    async def follow(self) -> None:
        """Look for new versions for ever. A change is taken up once it stands still for one look: it may be a copy
        in progress."""
        seen = ""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            try:
                now = artifact.find(self._folder, name=self._name).fingerprint
                if now == seen and now != self._refused and now != self.model().artifact.fingerprint:
                    await self._replace(now)
                seen = now
            except (ModelError, OSError) as error:
                self.problem = str(error)  # half-written, or gone: what is loaded goes on

    async def _replace(self, fingerprint: str) -> None:
        try:
            await self.load()
        except ModelError as error:
            self._refused, self.problem = fingerprint, str(error)
            self._metrics.reloads.inc(self.model().name, "refused")
            log.error("the new version is not served: %s", error)

    async def close(self) -> None:
        if self._model is not None:
            await self._model.close()
