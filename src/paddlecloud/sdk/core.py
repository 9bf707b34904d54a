"""The SDK's asynchronous core: everything it can do is written here and in `handles`, once.

`sync` offers the same as blocking calls. An `AsyncClient` belongs to the event loop it is first used in.
"""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from paddlecloud.kube.client import Client
from paddlecloud.kube.config import Config, load
from paddlecloud.kube.discovery import Discovery, UnknownKind
from paddlecloud.kube.errors import AlreadyExists
from paddlecloud.kube.resource import PADDLEJOBS, Object, Resource
from paddlecloud.sdk import claims, ownership, place, training
from paddlecloud.sdk.checking import checked, checked_call
from paddlecloud.sdk.handles import AsyncHandle, AsyncJob, AsyncService, Completed, Objects
from paddlecloud.sdk.manifest import Manifest, ManifestError, ManifestSource, is_job, read
from paddlecloud.sdk.members import Member, TooMuchOutput
from paddlecloud.sdk.models import AsyncModels
from paddlecloud.sdk.serving import is_service

if TYPE_CHECKING:
    from paddlecloud.sdk.remote import Remote

NAME_TRIES = 20
KIND_SECONDS = 30.0
"""How long a kind may take to be served after its definition was applied."""

Labels = str | Mapping[str, str] | None


@checked
class AsyncClient:
    """One server, one default namespace. Close it, or use it in `async with`."""

    def __init__(self, config: Config, *, namespace: str | None = None) -> None:
        from paddlecloud.kube.http import HttpTransport

        self.config = config
        self.namespace = namespace or config.namespace
        self.api = Client(HttpTransport(config), field_manager=ownership.FIELD_MANAGER)
        self.jobs = AsyncJobs(self)
        self.models = AsyncModels(self)
        self._discovery: Discovery | None = None
        self._remote: Remote | None = None

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        if self._remote is not None:
            await self._remote.close()
            self._remote = None
        await self.api.close()

    @property
    def context(self) -> str:
        return self.config.context

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.context} {self.config.server} namespace {self.namespace}>"

    # Objects of any kind

    async def apply(self, source: ManifestSource, *, namespace: str | None = None, force: bool = False) -> AsyncHandle:
        """Make the server hold what one object says, by server-side apply: a path, YAML text, a dict, an object.

        `force` takes fields over from other owners instead of raising `kube.errors.Conflict`.
        """
        found = read(source)
        if len(found) != 1:
            raise ManifestError(f"it holds {len(found)} objects; use apply_all")
        return await self._apply(found[0], namespace=namespace, force=force)

    async def apply_all(
        self, source: ManifestSource, *, namespace: str | None = None, force: bool = False
    ) -> Objects[AsyncHandle]:
        """The same for any number of objects; namespaces and definitions go first."""
        return Objects([await self._apply(one, namespace=namespace, force=force) for one in read(source)])

    async def get(self, kind: str, name: str, *, namespace: str | None = None) -> AsyncHandle:
        """`kind` as on the command line: pods, po, Deployment, pdj, paddlejobs.batch.paddlepaddle.org."""
        resource = await self._resource(kind)
        where = namespace or self.namespace if resource.namespaced else None
        return self._handle(resource, await self.api.get(resource, name, where))

    async def list(
        self,
        kind: str,
        *,
        namespace: str | None = None,
        all_namespaces: bool = False,
        labels: Labels = None,
        fields: str | None = None,
    ) -> Objects[AsyncHandle]:
        resource = await self._resource(kind)
        where = None if all_namespaces or not resource.namespaced else namespace or self.namespace
        found = await self.api.list(resource, where, label_selector=_selector(labels), field_selector=fields, limit=500)
        return Objects(self._handle(resource, body) for body in found.items)

    async def delete(
        self,
        kind: str,
        name: str,
        *,
        namespace: str | None = None,
        wait: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Raises `kube.errors.NotFound` when there is none."""
        await (await self.get(kind, name, namespace=namespace)).delete(wait=wait, timeout=timeout)

    async def version(self) -> Object:
        """What the server says of itself."""
        answer: Object = msgspec.json.decode((await self.api.raw("GET", "/version")).body)
        return answer

    async def is_embedded(self) -> bool:
        """Whether its pods are processes of this machine."""
        return place.is_embedded(self.config.server, await self.version())

    # For handles

    async def exec(
        self,
        member: Member,
        command: Sequence[str],
        *,
        container: str | None = None,
        input: bytes = b"",
        most: float = math.inf,
    ) -> Completed:
        """Raises `TooMuchOutput` after `most` bytes of output: the program is somebody else's, and may never end."""
        if self._remote is None:
            from paddlecloud.sdk.remote import Remote

            self._remote = Remote(self.config)
        process = await self._remote.exec(
            str(member.pod["metadata"]["namespace"]),
            member.name,
            command,
            container=member.container(container),
            stdin=bool(input),
        )
        try:
            if input:
                await process.write(input)
                await process.end_input()
            collected: dict[str, list[bytes]] = {"stdout": [], "stderr": []}
            while (piece := await process.read()) is not None:
                collected[piece.stream].append(piece.data)
                most -= len(piece.data)
                if most < 0:
                    raise TooMuchOutput(member.name)
            out, err = (b"".join(collected[name]).decode(errors="replace") for name in ("stdout", "stderr"))
            return Completed(process.exit_code, out, err)
        finally:
            await process.close()

    def _handle(self, resource: Resource, body: Object) -> AsyncHandle:
        kind = AsyncJob if is_job(body) else AsyncService if is_service(body) else AsyncHandle
        return kind(self, resource, body)

    async def _apply(self, manifest: Manifest, *, namespace: str | None, force: bool) -> AsyncHandle:
        resource = await self._known(lambda known: known.for_kind(manifest.api_version, manifest.kind))
        where = manifest.namespace or namespace or self.namespace if resource.namespaced else None
        meta = {key: value for key, value in manifest.metadata.items() if key not in ("managedFields", "uid")}
        if where:
            meta["namespace"] = where
        body = {**manifest.body, "metadata": meta}
        target = place.ObjectRef(resource, manifest.name, where)
        applied = await ownership.apply(self.api, target, body, field_manager=ownership.FIELD_MANAGER, force=force)
        handle = self._handle(resource, applied)
        if manifest.kind == "CustomResourceDefinition":
            await handle.wait_for("Established", timeout=KIND_SECONDS)
        return handle

    async def _resource(self, kind: str) -> Resource:
        return await self._known(lambda known: known.find(kind))

    async def _known(self, find: Any) -> Resource:
        """Discovery is asked once, and again when a kind is not in it: its definition may be a moment old."""
        if self._discovery is not None:
            try:
                return cast(Resource, find(self._discovery))
            except UnknownKind:
                pass  # perhaps it is newer than the answer
        self._discovery = await self.api.discover()
        return cast(Resource, find(self._discovery))


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

        On the embedded platform the program runs in `directory` (the current one); elsewhere it must be in `image`.
        `volumes` are `SRC:PATH[:ro]` with a directory or the name of a PersistentVolumeClaim as source.
        Raises `training.TrainingError` for what makes no job. The name is `<script>-<n>` unless given.
        """
        wanted = training.prepare(
            command_of(program, arguments),
            image=image,
            local=await self._client.is_embedded(),
            directory=str(directory or os.getcwd()),
            volumes=volumes,
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
        found = await self._client.api.list(PADDLEJOBS, where, label_selector=_selector(labels), limit=500)
        return Objects(AsyncJob(self._client, PADDLEJOBS, body) for body in found.items)

    async def delete(
        self, name: str, *, namespace: str | None = None, wait: bool = False, timeout: float | None = None
    ) -> None:
        await (await self.get(name, namespace=namespace)).delete(wait=wait, timeout=timeout)


@checked_call
def connect_async(
    *, context: str | None = None, kubeconfig: str | os.PathLike[str] | None = None, namespace: str | None = None
) -> AsyncClient:
    """Like `connect`, for programs that have an event loop of their own."""
    return AsyncClient(load(os.fspath(kubeconfig) if kubeconfig else None, context), namespace=namespace)


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


def _selector(labels: Labels) -> str | None:
    if labels is None or isinstance(labels, str):
        return labels
    return ",".join(f"{key}={value}" for key, value in labels.items())
