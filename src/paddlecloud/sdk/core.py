"""The SDK's asynchronous core: everything it can do is written here and in `handles`, once.

`sync` offers the same as blocking calls. An `AsyncClient` belongs to the event loop it is first used in.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec

from paddlecloud.kube.client import Client
from paddlecloud.kube.config import Config, load
from paddlecloud.kube.discovery import Discovery, UnknownKind
from paddlecloud.kube.resource import Object, Resource
from paddlecloud.sdk import embedded_server, ownership
from paddlecloud.sdk.checking import checked, checked_call
from paddlecloud.sdk.handles import AsyncHandle, AsyncJob, AsyncService, Completed, Objects
from paddlecloud.sdk.jobs import AsyncJobs
from paddlecloud.sdk.labels import Labels, selector_of
from paddlecloud.sdk.manifest import Manifest, ManifestError, ManifestSource, is_job, read
from paddlecloud.sdk.members import Member, TooMuchOutput
from paddlecloud.sdk.models import AsyncModels
from paddlecloud.sdk.object_ref import ObjectRef
from paddlecloud.sdk.serving import is_service

if TYPE_CHECKING:
    from paddlecloud.sdk.remote import Remote

KIND_SECONDS = 30.0
"""How long a kind may take to be served after its definition was applied."""


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
        selector = selector_of(labels)
        found = await self.api.list(resource, where, label_selector=selector, field_selector=fields, limit=500)
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
        return embedded_server.is_embedded(self.config.server, await self.version())

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
        target = ObjectRef(resource, manifest.name, where)
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


@checked_call
def connect_async(
    *, context: str | None = None, kubeconfig: str | os.PathLike[str] | None = None, namespace: str | None = None
) -> AsyncClient:
    """Like `connect`, for programs that have an event loop of their own."""
    return AsyncClient(load(os.fspath(kubeconfig) if kubeconfig else None, context), namespace=namespace)
