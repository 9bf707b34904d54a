"""`client.models`: versions of models, pushed, pulled, tagged and removed. The asynchronous core."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from paddlecloud.api.model import reference as references
from paddlecloud.kube.resource import MODELS, MODELVERSIONS, PADDLESERVICES
from paddlecloud.kube.times import rfc3339
from paddlecloud.modelhub import job_origin, names
from paddlecloud.modelhub import signature as signatures
from paddlecloud.modelhub.manifest import Facts, Manifest
from paddlecloud.sdk import embedded_server, model_aliases, model_objects, model_removal, model_transfer
from paddlecloud.sdk.checking import checked
from paddlecloud.sdk.handles import AsyncHandle, Objects
from paddlecloud.sdk.new_version import AsyncNewVersion, NewVersion
from paddlecloud.sdk.outcome import is_behind, retry_patch
from paddlecloud.sdk.ownership import SERVE_MANAGER
from paddlecloud.sdk.serving import service_of
from paddlecloud.storage.errors import BadUri
from paddlecloud.storage.stores import open_store

if TYPE_CHECKING:
    from paddlecloud.sdk.core import AsyncClient

PathLike = str | os.PathLike[str]


@checked
class AsyncModels:
    """`client.models`. Files are in the store of the embedded platform, in the one that the environment variable
    PADDLECLOUD_MODEL_STORE names, or in `store` (`file:///FOLDER`, `s3://BUCKET/PREFIX`). With PADDLECLOUD_MODEL_HUB
    they pass through the hub's server, with the token of the kubeconfig."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def push(
        self,
        name: str,
        path: PathLike,
        *,
        metrics: Mapping[str, float] | None = None,
        origin: Mapping[str, str] | None = None,
        description: str = "",
        framework: str = "",
        signature: Mapping[str, Any] | None = None,
        alias: str = "",
        reason: str = "",
        namespace: str | None = None,
        store: str = "",
    ) -> AsyncHandle:
        """A folder or a file as a new version `NAME:VERSION`; `NAME` alone takes the next number.

        The same files again are no failure; other files for a version that exists raise `VersionExists`. Inputs and
        outputs are read from Paddle and ONNX files; `signature` declares them, and raises `Refused` where files differ.
        """
        where = await self._place(namespace, store)
        by, at = await model_objects.user_name(where.client), rfc3339(time.time())
        wanted = signatures.declared(msgspec.json.encode(signature)) if signature else None
        facts = Facts(by, at, framework, metrics or {}, origin or {}, description, wanted)
        done = await model_transfer.push(where, name, Path(path), facts, alias=alias, reason=reason)
        stored = done.manifest
        return await self._version(where.namespace, stored.model, stored.version)

    def new(
        self,
        name: str,
        *,
        metrics: Mapping[str, float] | None = None,
        description: str = "",
        framework: str = "",
        alias: str = "",
        reason: str = "",
        folder: PathLike | None = None,
        namespace: str | None = None,
        store: str = "",
    ) -> AsyncNewVersion:
        """For training programs: a folder to save into, `with client.models.new("ocr") as v:`, that is pushed when the
        block ends, as the next version; after an exception nothing is.

        Where it came from is recorded by itself: the PaddleJob with its image and command, the SampleSets, the run of a
        pipeline, the commit; and as metrics what was reported or written with VisualDL, unless `metrics` has it. Of the
        processes of a distributed job the first worker pushes, the others do not.
        """
        version = NewVersion(name, metrics or {}, description)

        async def push(made: NewVersion) -> Manifest:
            where = await self._place(namespace, store)
            known = await job_origin.here(where.client, self._client.namespace)
            for text in known.missing:
                print(f"paddlecloud: not recorded in the origin of {made.name}: {text}", file=sys.stderr, flush=True)
            by = f"paddlejob/{known.job}" if known.job else await model_objects.user_name(where.client)
            origin = {**known.origin, **made.origin}
            found = {**known.metrics, **made.metrics}
            facts = Facts(by, rfc3339(time.time()), framework, found, origin, made.description)
            done = await model_transfer.push(where, made.name, made.folder, facts, alias=alias, reason=reason)
            return done.manifest

        return AsyncNewVersion(push, version, os.fspath(folder) if folder else "")

    async def pull(
        self, reference: str, folder: PathLike | None = None, *, namespace: str | None = None, store: str = ""
    ) -> Path:
        """The files of `NAME:VERSION`, `NAME@ALIAS` or `NAME`, verified, in a folder (by default: the model's name)."""
        where = await self._place(namespace, store)
        found = await model_transfer.find(where, reference)
        return (await model_transfer.pull(where, found, Path(folder or found.model))).folder

    async def get(self, reference: str, *, namespace: str | None = None) -> AsyncHandle:
        """The ModelVersion that is meant. Raises `UnknownVersion`."""
        wanted, where = references.parse(reference), namespace or self._client.namespace
        version = await model_objects.resolve(self._client.api, where, wanted)
        return await self._version(where, wanted.model, version)

    async def list(self, model: str = "", *, namespace: str | None = None) -> Objects[AsyncHandle]:
        """The Models of a namespace, or the versions of one, newest first. Raises `UnknownVersion` where there is no
        such model."""
        where = namespace or self._client.namespace
        if not model:
            return await self._client.list(MODELS.full_name, namespace=where)
        found = await model_objects.versions(self._client.api, where, references.model_name(model))
        if not found:
            await model_objects.find_model(self._client.api, where, model)
        return Objects(AsyncHandle(self._client, MODELVERSIONS, obj) for obj in found)

    async def tag(self, reference: str, alias: str, *, reason: str = "", namespace: str | None = None) -> AsyncHandle:
        """Point an alias to a version; the answer is the Model, with the history of its aliases in `spec.moves`."""
        wanted, where = references.parse(reference), namespace or self._client.namespace
        api = self._client.api
        version = await model_objects.resolve(api, where, wanted)
        by, at = await self._who()
        done = await model_aliases.move_alias(api, where, wanted.model, alias, version, by=by, at=at, reason=reason)
        return AsyncHandle(self._client, MODELS, done.model)

    async def untag(self, reference: str, *, reason: str = "", namespace: str | None = None) -> AsyncHandle:
        """Remove the alias `NAME@ALIAS`; the removal is part of the history. The answer is the Model."""
        wanted, where = references.alias_of(reference), namespace or self._client.namespace
        by, at = await self._who()
        done = await model_aliases.remove_alias(
            self._client.api, where, wanted.model, wanted.alias, by=by, at=at, reason=reason
        )
        return AsyncHandle(self._client, MODELS, done.model)

    async def promote(
        self, reference: str, *, to: str = "production", reason: str = "", namespace: str | None = None
    ) -> AsyncHandle:
        """Point the alias `production`, or another, to `NAME:VERSION` or to what `NAME@ALIAS` points to."""
        return await self.tag(reference, to, reason=reason, namespace=namespace)

    async def rollback(self, reference: str, *, reason: str = "", namespace: str | None = None) -> AsyncHandle:
        """Point `NAME@ALIAS` to the version before, by its history; again: further back. The answer is the Model."""
        wanted, where = references.alias_of(reference), namespace or self._client.namespace
        by, at = await self._who()
        done = await model_aliases.roll_back(
            self._client.api, where, wanted.model, wanted.alias, by=by, at=at, reason=reason
        )
        return AsyncHandle(self._client, MODELS, done.model)

    async def _who(self) -> tuple[str, str]:
        """For the history: who moves an alias, and when."""
        return await model_objects.user_name(self._client.api), rfc3339(time.time())

    async def remove(
        self, name: str, *, force: bool = False, namespace: str | None = None, store: str = ""
    ) -> Sequence[str]:
        """`NAME:VERSION`, or `NAME` with all its versions, which are returned. Raises `InUse` while an alias or a
        PaddleService uses what would go; with `force` a model is removed together with its aliases."""
        return await model_removal.remove(await self._place(namespace, store), name, force=force)

    async def serve(
        self,
        reference: str,
        *,
        name: str = "",
        follow: bool = False,
        min_scale: int | None = None,
        max_scale: int | None = None,
        namespace: str | None = None,
    ) -> AsyncHandle:
        """A PaddleService of `NAME:VERSION` or `NAME@ALIAS`, called as the model unless `name` says otherwise.

        It keeps its version when the alias is moved, unless `follow` is given; the same call again takes up what the
        alias points to then. Raises `UnknownVersion`."""
        wanted, where, api = references.parse(reference), namespace or self._client.namespace, self._client.api
        await model_objects.get_version(api, where, wanted.model, await model_objects.resolve(api, where, wanted))
        scale = {"minScale": min_scale, "maxScale": max_scale}
        body = service_of(str(wanted), name=name or wanted.model, namespace=where, follow=follow, scale=scale)
        made = await api.patch(
            PADDLESERVICES, body["metadata"]["name"], body, namespace=where, kind="apply",
            field_manager=SERVE_MANAGER, force=True,
        )  # fmt: skip
        if not follow and is_behind(made):
            change = retry_patch(made, time.time())
            made = await api.patch(PADDLESERVICES, made["metadata"]["name"], change, namespace=where)
        return AsyncHandle(self._client, PADDLESERVICES, made)

    async def _version(self, namespace: str, model: str, version: str) -> AsyncHandle:
        obj = await model_objects.get_version(self._client.api, namespace, model, version)
        return AsyncHandle(self._client, MODELVERSIONS, obj)

    async def _place(self, namespace: str | None, store: str) -> model_transfer.Place:
        address = (store or os.environ.get(names.STORE_VARIABLE) or "").rstrip("/")
        where = namespace or self._client.namespace
        if not address and (hub := await asyncio.to_thread(model_transfer.find_hub, self._client.config)):
            return model_transfer.Place(self._client.api, where, None, "", _in_a_thread, hub)
        opened = open_store(address or await self._own_store())
        return model_transfer.Place(self._client.api, where, opened, address, _in_a_thread)

    async def _own_store(self) -> str:
        say = BadUri(f"say where the files of models are: {names.VARIABLE}, store=, or {names.STORE_VARIABLE}")
        try:
            from paddlecloud.platform import endpoint
        except ModuleNotFoundError:  # in a pod, which has no platform to look for
            raise say from None
        data = endpoint.find_at_port(embedded_server.local_port(self._client.config.server))
        if data is None or not await self._client.is_embedded():
            raise say
        return f"file://{data / names.STORE_FOLDER}"


async def _in_a_thread(work: Callable[[], Any]) -> Any:
    return await asyncio.to_thread(work)
