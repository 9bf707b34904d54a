"""Experiments, pipelines and versions: create, find, list, archive, delete, with the caller's rights."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from paddlecloud.kube.errors import AlreadyExists
from paddlecloud.kube.resource import CONFIGMAPS, Object
from paddlecloud.pipelines import names
from paddlecloud.pipelines.api import paging, records
from paddlecloud.pipelines.api.caller import Caller
from paddlecloud.pipelines.api.records import Kind, Record
from paddlecloud.pipelines.api.replies import RequestRefused
from paddlecloud.pipelines.runs import package
from paddlecloud.pipelines.runs.package import Package

DEFAULT_EXPERIMENT = "Default"


class RecordPage(NamedTuple):
    records: list[Record]
    total: int
    next_token: str


async def create(
    caller: Caller, kind: Kind, name: str, namespace: str, *, description: str = "", parent: Record | None = None,
    content: str = "",
) -> Record:  # fmt: skip
    _check(kind, name, description)
    made = records.config_map(kind, caller.new_id(), name, namespace, description=description, parent=parent)
    if content:
        made["data"] = {records.PACKAGE: content}
    try:
        return records.of_config_map(await caller.client.create(CONFIGMAPS, made))
    except AlreadyExists as error:
        raise RequestRefused(
            409, f"there is already {_named(kind, name)} in namespace {namespace}; choose another name"
        ) from error


async def find(caller: Caller, kind: Kind, shown_id: str) -> Record:
    """Raises `RequestRefused` with 404 for one that is not there."""
    at = caller.read_id(shown_id, kind)
    found = await caller.metadata(CONFIGMAPS, at.namespace, records.selector(kind, id=at.own))
    if not found:
        raise RequestRefused(404, f"{kind} {shown_id!r} not found in namespace {at.namespace}")
    return records.of_config_map(found[0])


async def named(caller: Caller, kind: Kind, name: str, namespace: str) -> Record:
    """By the name that must be unique in its namespace."""
    wanted = records.object_name(kind, name)
    for obj in await caller.metadata(CONFIGMAPS, namespace, records.selector(kind)):
        if obj["metadata"]["name"] == wanted:
            return records.of_config_map(obj)
    raise RequestRefused(404, f"{kind} {name[:100]!r} not found in namespace {namespace}")


async def listed(caller: Caller, kind: Kind, namespace: str, query: paging.Query, *, parent: str = "") -> RecordPage:
    narrowed = {"parent": parent} if parent else {}
    found = await caller.metadata(CONFIGMAPS, namespace, records.selector(kind, **narrowed))
    by_id = {record.id: record for record in map(records.of_config_map, found)}
    page = await asyncio.to_thread(paging.page, [record.row for record in by_id.values()], query, records.FIELDS)
    return RecordPage([by_id[str(row["id"])] for row in page.rows], page.total, page.next_token)


async def archive(caller: Caller, kind: Kind, shown_id: str, archived: bool) -> None:
    record = await find(caller, kind, shown_id)
    labels = {names.STORAGE_STATE: "ARCHIVED" if archived else None}
    await caller.client.patch(
        CONFIGMAPS, record.object_name, {"metadata": {"labels": labels}}, namespace=record.namespace
    )


async def delete(caller: Caller, kind: Kind, shown_id: str) -> None:
    record = await find(caller, kind, shown_id)
    await caller.client.delete(CONFIGMAPS, record.object_name, namespace=record.namespace, uid=record.uid)


async def default_experiment(caller: Caller, namespace: str) -> Record:
    """Of runs that name none; made when the first one comes."""
    try:
        return await named(caller, "experiment", DEFAULT_EXPERIMENT, namespace)
    except RequestRefused as absent:
        if absent.status != 404:
            raise
        try:
            return await create(caller, "experiment", DEFAULT_EXPERIMENT, namespace)
        except RequestRefused as error:
            if error.status != 409:
                raise
            # another request was first
            return await named(caller, "experiment", DEFAULT_EXPERIMENT, namespace)


# Pipelines


async def upload(caller: Caller, data: bytes, name: str, namespace: str, description: str) -> tuple[Record, Record]:
    """A new pipeline with its first version."""
    content, found = await _readable(data)
    name = name or found.name
    pipeline = await create(caller, "pipeline", name, namespace, description=description or found.description)
    try:
        version = await create(
            caller, "version", name, namespace, description=description, parent=pipeline, content=content
        )
    except BaseException:
        # A pipeline without a version cannot run: what was begun is taken back, also when the caller has gone.
        await asyncio.shield(
            caller.client.delete(CONFIGMAPS, pipeline.object_name, namespace=namespace, uid=pipeline.uid)
        )
        raise
    return pipeline, version


async def upload_version(caller: Caller, data: bytes, name: str, pipeline_id: str, description: str) -> Record:
    content, found = await _readable(data)
    pipeline = await find(caller, "pipeline", pipeline_id)
    return await create(
        caller,
        "version",
        name or found.name,
        pipeline.namespace,
        description=description,
        parent=pipeline,
        content=content,
    )


async def versions(caller: Caller, pipeline: Record) -> list[Record]:
    """Newest first."""
    found = await caller.metadata(CONFIGMAPS, pipeline.namespace, records.selector("version", parent=pipeline.id))
    made = map(records.of_config_map, found)
    return sorted(made, key=lambda version: (version.created_at, version.revision), reverse=True)


async def default_version(caller: Caller, pipeline: Record) -> Record | None:
    found = await versions(caller, pipeline)
    chosen = [version for version in found if version.id == pipeline.default_version]
    return next(iter(chosen or found), None)


async def set_default_version(caller: Caller, pipeline_id: str, version_id: str) -> None:
    pipeline, version = await find(caller, "pipeline", pipeline_id), await find(caller, "version", version_id)
    if version.parent_id != pipeline.id:
        raise RequestRefused(400, f"version {version_id!r} belongs to another pipeline")
    change = {"metadata": {"annotations": {names.DEFAULT_VERSION: version.id}}}
    await caller.client.patch(CONFIGMAPS, pipeline.object_name, change, namespace=pipeline.namespace)


async def content_of(caller: Caller, version: Record) -> str:
    found = await caller.client.get(CONFIGMAPS, version.object_name, version.namespace)
    return str((found.get("data") or {}).get(records.PACKAGE, ""))


async def parsed(text: str) -> Package:
    try:
        return await asyncio.to_thread(package.parse, text)
    except package.PackageError as error:
        raise RequestRefused(400, str(error)) from error


def of_document(document: Object, where: str) -> Package:
    try:
        return package.of_document(document)
    except package.PackageError as error:
        raise RequestRefused(400, f"{where}: {error}") from error


async def _readable(data: bytes) -> tuple[str, Package]:
    """The text of an uploaded file, which is kept, and what it holds. In a thread: parsing may take a second."""
    try:
        text = await asyncio.to_thread(package.text_of, data)
    except package.PackageError as error:
        raise RequestRefused(400, str(error)) from error
    if len(text.encode()) > records.MAX_PACKAGE:
        raise RequestRefused(
            400, f"the pipeline has more than {records.MAX_PACKAGE} bytes of YAML, the most that is stored"
        )
    return text, await parsed(text)


def _check(kind: Kind, name: str, description: str) -> None:
    if not name.strip() or len(name) > records.MAX_NAME:
        raise RequestRefused(400, f"the name of {_named(kind, '')} must have 1 to {records.MAX_NAME} characters")
    if len(description) > records.MAX_DESCRIPTION:
        raise RequestRefused(400, f"description has more than {records.MAX_DESCRIPTION} characters")


def _named(kind: Kind, name: str) -> str:
    article = "an" if kind == "experiment" else "a"
    return f"{article} {kind} {name[:100]!r}" if name else f"{article} {kind}"
