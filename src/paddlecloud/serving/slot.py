"""The place of the served model: one at a time, replaced without a dropped request.

A new version is loaded and warmed up beside the old one, then takes its place; the old one answers what it has and
goes. A version that cannot be loaded leaves the old one where it is, also over a restart: the newest that loads is
served. It is reported in the log and in the index, which `pdc explain` reads.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from paddlecloud.serving import model_folder
from paddlecloud.serving.errors import ModelError, NotFound, NotReady
from paddlecloud.serving.metrics import Metrics
from paddlecloud.serving.model import Model, Resources, load

log = logging.getLogger(__name__)

LOOK_EVERY = 1.0
"""Seconds between two looks at the folder."""


class Slot:
    def __init__(
        self,
        folder: Path,
        *,
        name: str,
        resources: Resources,
        metrics: Metrics,
        own_code: bool = True,
        source: str = "",
    ) -> None:
        """`own_code` allows what the model's folder brings along to be run. `source` is what people call the folder:
        the server may find it elsewhere than they put it."""
        self._folder = folder
        self._source = source or str(folder)
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
    def name(self) -> str:
        """Under which the model is asked for; a model without a name given has its own."""
        return self._model.name if self._model is not None else self._name or "NAME"

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
        """Have the newest version that can be loaded in its place; does nothing if it is there already.

        `ModelError` if none can, or none that is newer than the one that is served.
        """
        async with self._loading:
            old = self._model
            new, failure = await self._newest(old)
            if new is None or (failure and new is old):
                raise ModelError(failure)
            if new is old:
                return new
            skipped = f"the newest version is not served, version {new.version} is: {failure}" if failure else ""
            self._model, self.problem = new, skipped or new.remark
            self._refused = self._fingerprint() if failure else ""
            if self.problem:
                log.warning("%s", self.problem)
        if old is not None:
            self._metrics.reloads.inc(new.name, "replaced")
            same = new.version == old.version
            log.info("version %s %s", new.version, "was changed" if same else f"takes over from {old.version}")
            await old.close()
        return new

    async def _newest(self, old: Model | None) -> tuple[Model | None, str]:
        """The newest version that can be loaded, and why the newest of all is another one. What is served is not given
        up for an older version as long as its folder is there: it may have been written over with a damaged one."""
        failure = ""
        with self._naming_the_source():
            found = model_folder.versions(self._folder)
        for folder in reversed(found):
            try:
                with self._naming_the_source():
                    version = model_folder.read(self._folder, folder, name=self._name)
                    if old is not None and old.files.fingerprint == version.fingerprint:
                        return old, failure
                    return await load(version, self._resources, metrics=self._metrics, own_code=self._own_code), failure
            except ModelError as error:
                failure = failure or str(error)
            if old is not None and folder == old.files.folder:
                break
        return None, failure

    @contextmanager
    def _naming_the_source(self) -> Iterator[None]:
        try:
            yield
        except ModelError as error:
            raise ModelError(str(error).replace(str(self._folder), self._source)) from error

    def _fingerprint(self) -> str:
        """Of the newest version; empty where it is not whole, and so changes once it is."""
        try:
            return model_folder.find(self._folder, name=self._name).fingerprint
        except (ModelError, OSError):
            return ""

    async def follow(self) -> None:
        """Look for new versions for ever. A change is taken up once it stands still for one look: it may be a copy
        in progress."""
        seen = ""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            try:
                with self._naming_the_source():
                    now = model_folder.find(self._folder, name=self._name).fingerprint
                if now == self.model().files.fingerprint:
                    self.problem = self.model().remark
                elif now == seen and now != self._refused:
                    await self._replace(now)
                seen = now
            except (ModelError, OSError) as error:
                self.problem = str(error)  # half-written, or gone: what is loaded goes on

    async def _replace(self, fingerprint: str) -> None:
        try:
            await self.load()
        except ModelError as error:
            self._refused = fingerprint
            self.problem = f"the newest version is not served, version {self.model().version} is: {error}"
            self._metrics.reloads.inc(self.model().name, "refused")
            log.error("%s", self.problem)

    async def close(self) -> None:
        if self._model is not None:
            await self._model.close()
