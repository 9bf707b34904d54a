"""`client.jobs`: PaddleJobs, made of a command or of a manifest. The asynchronous core."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from paddlecloud.kube.errors import AlreadyExists
from paddlecloud.kube.resource import PADDLEJOBS
from paddlecloud.sdk import claims, training
from paddlecloud.sdk.checking import checked
from paddlecloud.sdk.handles import AsyncJob, Objects
from paddlecloud.sdk.labels import Labels, selector_of
from paddlecloud.sdk.manifest import ManifestError, ManifestSource

if TYPE_CHECKING:
    from paddlecloud.sdk.core import AsyncClient

NAME_TRIES = 20


@checked
class AsyncJobs:
    """`client.jobs`: PaddleJobs."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def run(
        self,
        program: str | Path | Sequence[str | Path],
        *arguments: str | float | Path,
        name: str | None = None,
        workers: int | None = None,
        ps: int = 0,
        elastic: tuple[int, int] | None = None,
        image: str | None = None,
        gpus: int = 0,
        cpu: str | float = "",
        memory: str = "",
        env: Mapping[str, str | float] | None = None,
        volumes: Iterable[str] = (),
        retries: int = 0,
        directory: str | Path | None = None,
        namespace: str | None = None,
    ) -> AsyncJob:
        """Train without YAML: `run("train.py", workers=4)`, `run(["python", "-m", "pkg.fit"])`.

        On the embedded platform and in notebooks the program runs in `directory` (the current one); elsewhere it must
        be in `image`.
        `volumes` are `SRC:PATH[:ro]` with a directory or the name of a PersistentVolumeClaim as source.
        Raises `training.TrainingError` for what makes no job. The name is `<script>-<n>` unless given.
        """
        wanted = training.prepare(
            command_of(program, arguments),
            image=image,
            local=await self._client.is_embedded(),
            directory=str(directory or os.getcwd()),
            volumes=volumes,
            home=training.home_mount(os.environ),
            workers=workers,
            servers=ps,
            elastic=elastic,
            gpus=gpus,
            cpu=str(cpu),
            memory=memory,
            env={name: str(value) for name, value in (env or {}).items()},
            retries=retries,
        )
        where = namespace or self._client.namespace
        if (claim := await claims.missing(self._client.api, wanted.mounts, where)) is not None:
            raise training.TrainingError(f"{claims.refusal(claim, where)}; a directory is written ./NAME:PATH")
        if leaving := await claims.leaving(self._client.api, wanted.mounts, where):
            raise training.TrainingError(leaving)
        for last in range(NAME_TRIES):
            body = training.job(wanted, name=name or await self._free_name(wanted, where), namespace=where)
            try:
                created = await self._client.api.create(PADDLEJOBS, body, field_validation="Strict")
                return AsyncJob(self._client, PADDLEJOBS, created)
            except AlreadyExists:
                if name or last == NAME_TRIES - 1:
                    raise
        raise AssertionError("the last turn returns or raises")

    async def _free_name(self, wanted: training.Training, namespace: str) -> str:
        jobs = await self._client.api.list(PADDLEJOBS, namespace, limit=500)
        return training.next_name(training.stem(wanted.command), (str(one["metadata"]["name"]) for one in jobs.items))

    async def apply(self, source: ManifestSource, *, namespace: str | None = None, force: bool = False) -> AsyncJob:
        """Like the client's `apply`, for a source that is a PaddleJob."""
        applied = await self._client.apply(source, namespace=namespace, force=force)
        if not isinstance(applied, AsyncJob):
            raise ManifestError(f"it is a {applied.kind}, not a PaddleJob of batch.paddlepaddle.org")
        return applied

    async def get(self, name: str, *, namespace: str | None = None) -> AsyncJob:
        body = await self._client.api.get(PADDLEJOBS, name, namespace or self._client.namespace)
        return AsyncJob(self._client, PADDLEJOBS, body)

    async def list(
        self, *, namespace: str | None = None, all_namespaces: bool = False, labels: Labels = None
    ) -> Objects[AsyncJob]:
        where = None if all_namespaces else namespace or self._client.namespace
        found = await self._client.api.list(PADDLEJOBS, where, label_selector=selector_of(labels), limit=500)
        return Objects(AsyncJob(self._client, PADDLEJOBS, body) for body in found.items)

    async def delete(
        self, name: str, *, namespace: str | None = None, wait: bool = False, timeout: float | None = None
    ) -> None:
        await (await self.get(name, namespace=namespace)).delete(wait=wait, timeout=timeout)


def command_of(program: str | Path | Sequence[str | Path], given: Sequence[str | float | Path]) -> list[str]:
    """`train.py` is run by python; any other text is a command line, any other path a program."""
    arguments = [str(one) for one in given]
    if isinstance(program, Path):
        return [*(["python"] if program.suffix == ".py" else []), str(program), *arguments]
    if not isinstance(program, str):
        return [*map(str, program), *arguments]
    if program.endswith(".py") and " " not in program:
        return ["python", program, *arguments]
    if " " in program and program.split()[0].endswith(".py"):
        words = ", ".join(f'"{word}"' for word in shlex.split(program))
        raise training.TrainingError(
            f'"{program}" names a script together with its arguments: write run({words}) or run("python {program}")'
        )
    return [*shlex.split(program), *arguments]
