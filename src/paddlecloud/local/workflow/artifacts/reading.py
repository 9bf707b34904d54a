"""`GET …/workflows/NAME/artifacts`: what the steps of a workflow stored in the built-in repository.

Without a query it answers the list; with `node=ID&name=NAME` the artifact itself, as it is stored (a tar with gzip
unless its archive strategy is another one). `path=…` is a file inside an artifact that is a folder, and `files=true`
lists the paths that it has. A cluster has no such subresource: there an artifact is read from the artifact store.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import BinaryIO

from paddlecloud.api.argo_nodes import COMPRESSED, BadPacking, unpacked
from paddlecloud.kube import errors
from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.api import Handler
from paddlecloud.local.apiserver.http.negotiation import encode
from paddlecloud.local.apiserver.http.request import Request, RequestInfo, Response
from paddlecloud.local.apiserver.objects.large import in_thread, runner
from paddlecloud.local.apiserver.objects.verbs import Verbs
from paddlecloud.local.apiserver.registry import KindInfo
from paddlecloud.local.store.record import Record
from paddlecloud.local.workflow.artifacts.locations import key_of
from paddlecloud.local.workflow.artifacts.repository import Repository
from paddlecloud.local.workflow.executor.trees import Unfit
from paddlecloud.local.workflow.nodes import readable

CHUNK = 1 << 18
MOST_RECORDS = 5_000
_PACKED, _UNPACKED = COMPRESSED.encode(), 100
"""How much larger a status with packed nodes may become."""


def handler(verbs: Verbs, repository: Repository) -> Handler:
    async def read(request: Request, info: RequestInfo, kind: KindInfo) -> Response:
        if info.verb != "get":
            raise errors.MethodNotAllowed(f"{info.verb} is not supported on {info.resource}/artifacts")
        record = verbs.get(kind, info.namespace, info.name)
        run = runner(len(record.value) * (_UNPACKED if _PACKED in record.value else 1))
        node, name = request.query.get("node"), request.query.get("name")
        if not node and not name:
            return Response(body=await in_thread(_list, repository, info.namespace, record))
        found = await run(_found, record, node, name)
        if found is None:
            raise errors.NotFound(f"workflow {info.name} has no artifact {name!r} of a node {node!r} in its repository")
        if request.flag("files"):
            return await _files(repository, info.namespace, found)
        inside = request.query.get("path") or ""
        try:
            content = await asyncio.to_thread(repository.opened, info.namespace, found["key"], inside)
        except IsADirectoryError:
            what = "is a folder: name a file in it with path=…; files=true lists them"
            raise errors.NotFound(f"artifact {name!r} of node {node!r} {what}") from None
        if content is None:
            raise errors.NotFound(f"artifact {name!r} of node {node!r} is no longer stored")
        return Response(stream=_content(content), content_type="application/octet-stream")

    return read


async def _files(repository: Repository, namespace: str, artifact: Object) -> Response:
    shown = f"artifact {artifact['name']!r} of node {artifact['node']!r}"
    try:
        paths = await asyncio.to_thread(repository.files, namespace, artifact["key"])
    except Unfit as why:
        raise errors.Invalid(f"{shown}: {why}") from None
    if paths is None:
        raise errors.NotFound(f"{shown} is no longer stored")
    items = [{"path": path} for path in paths]
    return Response(body=encode({"kind": "ArtifactFileList", "apiVersion": "argoproj.io/v1alpha1", "items": items}))


def _list(repository: Repository, namespace: str, record: Record) -> bytes:
    items = _listed(repository, namespace, _stored(record))
    return encode({"kind": "ArtifactList", "apiVersion": "argoproj.io/v1alpha1", "items": items})


def _found(record: Record, node: str | None, name: str | None) -> Object | None:
    return next((each for each in _stored(record) if each["node"] == node and each["name"] == name), None)


def _stored(record: Record) -> list[Object]:
    workflow = record.object
    try:
        status = unpacked(workflow).get("status")
    except BadPacking as why:
        raise errors.Invalid(f"workflow {workflow['metadata']['name']}: {why}") from why
    nodes = readable(status.get("nodes") if isinstance(status, dict) else None)
    return [
        {"node": node["id"], "name": artifact["name"], "key": key, "deleted": bool(artifact.get("deleted"))}
        for node in nodes.values()
        for artifact in (node.get("outputs") or {}).get("artifacts") or ()
        if (key := key_of(artifact)) is not None
    ]


def _listed(repository: Repository, namespace: str, stored: list[Object]) -> list[Object]:
    """The first `MOST_RECORDS` with digest and size, which take a file each; users choose how many a status names."""
    listed = []
    for each in stored[:MOST_RECORDS]:
        record = repository.record(namespace, each["key"]) or {}
        listed.append({**each, "digest": record.get("digest", ""), "size": record.get("size")})
    return listed + stored[MOST_RECORDS:]


async def _content(file: BinaryIO) -> AsyncIterator[bytes]:
    with file as content:
        while piece := await asyncio.to_thread(content.read, CHUNK):
            yield piece
