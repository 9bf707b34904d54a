"""client.models.new: a folder to save a model into, which becomes a version when the block ends without an exception.

A process of a distributed job that is not its first worker saves into its folder as all do, and pushes nothing: one job
makes one version. A push that fails keeps the folder, and the error names it: hours of training went into it.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from paddlecloud.api.model import reference as references
from paddlecloud.modelhub import job_origin
from paddlecloud.modelhub.manifest import Manifest

if TYPE_CHECKING:
    from paddlecloud.sdk.portal import Portal


class NewVersion:
    """What the block gets: a path (`v / "net"`, `os.fspath(v)`), with `metrics`, `origin`, `description` to add to."""

    def __init__(self, name: str, metrics: Mapping[str, float], description: str) -> None:
        self.model = references.model_name(name.partition(":")[0])
        self.name = name
        """`MODEL`, or `MODEL:VERSION`; after the block always the latter."""
        self.version = ""
        """Empty until it was pushed, and in processes that push nothing."""
        self.metrics = dict(metrics)
        self.origin: dict[str, str] = {}
        """What is known besides what is recorded by itself."""
        self.description = description
        self.folder = Path()

    def __fspath__(self) -> str:
        return str(self.folder)

    def __truediv__(self, name: str | os.PathLike[str]) -> Path:
        return self.folder / name

    def __str__(self) -> str:
        return str(self.folder)

    def __repr__(self) -> str:
        return f"<new version {self.name} in {self.folder}>"


Push = Callable[[NewVersion], Awaitable[Manifest]]


class AsyncNewVersion:
    """`async with client.models.new("ocr") as v:`."""

    def __init__(self, push: Push, version: NewVersion, folder: str) -> None:
        self._push = push
        self._version = version
        self._wanted = folder

    async def __aenter__(self) -> NewVersion:
        if self._wanted:
            os.makedirs(self._wanted, exist_ok=True)
            self._version.folder = Path(self._wanted)
        else:
            self._version.folder = Path(tempfile.mkdtemp(prefix=f"{self._version.model}-"))
        return self._version

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        version = self._version
        if error is None and job_origin.is_leader():
            try:
                pushed = await self._push(version)
            except BaseException:
                kept = f"its files are kept in {version.folder.absolute()}"
                print(f"paddlecloud: {version.name} was not pushed; {kept}", file=sys.stderr, flush=True)
                raise
            version.version = pushed.version
            version.name = f"{pushed.model}:{pushed.version}"
        if not self._wanted:
            shutil.rmtree(version.folder, ignore_errors=True)


class BlockingNewVersion:
    """`with client.models.new("ocr") as v:`."""

    def __init__(self, portal: Portal, core: AsyncNewVersion) -> None:
        self._portal = portal
        self._core = core

    def __enter__(self) -> NewVersion:
        return self._portal.run(self._core.__aenter__())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._portal.run(self._core.__aexit__(kind, error, trace))
