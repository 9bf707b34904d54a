"""The verbs of the Kubernetes API on plain dicts, over any `Transport`.

One `Client` serves long-lived programs and the CLI alike, so this module imports neither asyncio nor an HTTP library:
with a transport whose coroutines never suspend, its methods can be run without an event loop (`stdlib.drive`).

It does not retry, cache or rate-limit. A refusal is raised as the typed error of its Status reason; the caller knows
whether trying again makes sense (`errors.ApiError.retry_after` carries what the server asked for).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from paddlecloud.kube.errors import ApiError, BadRequest, Expired, Gone
from paddlecloud.kube.resource import Object, Resource
from paddlecloud.kube.transport import JSON, Response, Transport, refusal, split_lines

if TYPE_CHECKING:
    from paddlecloud.kube.discovery import Discovery

PatchKind = Literal["merge", "json", "strategic", "apply"]
Propagation = Literal["Foreground", "Background", "Orphan"]
FieldValidation = Literal["Strict", "Warn", "Ignore"]

PATCH_TYPES: Mapping[str, str] = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",  # JSON is YAML, so the body stays JSON
}


class ObjectList(NamedTuple):
    items: list[Object]
    resource_version: str


class WatchEvent(NamedTuple):
    """`type` is ADDED, MODIFIED, DELETED or BOOKMARK. An ERROR event is raised, never yielded."""

    type: str
    object: Object


class Client:
    """`on_warning` receives each `Warning` header's text, such as a field the server does not know."""

    def __init__(
        self,
        transport: Transport,
        *,
        field_manager: str = "paddlecloud",
        on_warning: Callable[[str], None] | None = None,
    ) -> None:
        self.transport = transport
        self.field_manager = field_manager
        self._on_warning = on_warning

    async def close(self) -> None:
        await self.transport.close()

    # Reading

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Object:
        return await self._call("GET", _path(resource, namespace, name))

    async def find(self, resource: Resource, name: str, namespace: str | None = None) -> Object | None:
        """The object of a name, read with the right to list alone, which every watcher of the kind has."""
        found = await self.list(resource, namespace, field_selector=f"metadata.name={name}")
        return found.items[0] if found.items else None

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
        limit: int | None = None,
    ) -> ObjectList:
        """Every object that matches. `limit` is the size of a page, not of the answer: pages are followed to the end.

        When the server compacts the snapshot between two pages, the list starts over in one piece, as client-go does.
        """
        query = _query(labelSelector=label_selector, fieldSelector=field_selector)
        path = _path(resource, namespace)
        if limit:
            try:
                return await self._pages(resource, path, {**query, "limit": str(limit)})
            except (Expired, Gone):
                pass  # the continue token outlived its snapshot; a list without pages needs none
        return await self._pages(resource, path, query)

    async def _pages(self, resource: Resource, path: str, query: dict[str, str]) -> ObjectList:
        items: list[Object] = []
        while True:
            page = await self._call("GET", path, query=query)
            for item in page.get("items") or ():
                # Lists of built-in kinds leave out what every item shares; a cached object must know its own kind.
                item.setdefault("apiVersion", resource.api_version)
                item.setdefault("kind", resource.kind)
                items.append(item)
            meta = page.get("metadata") or {}
            token = meta.get("continue")
            if not token:
                return ObjectList(items, str(meta.get("resourceVersion", "")))
            query = {**query, "continue": token}

    async def watch(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        resource_version: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        bookmarks: bool = True,
        timeout: int | None = None,
    ) -> AsyncGenerator[WatchEvent, None]:
        """Changes after `resource_version`, until the server ends the stream (after `timeout` seconds if given).

        Raises `Expired` when that version is gone; `Unreachable` when the connection breaks. A caller that leaves
        before the end closes it (`aclose`), or the connection stays open until garbage collection.
        """
        query = _query(
            watch="true",
            resourceVersion=resource_version,
            labelSelector=label_selector,
            fieldSelector=field_selector,
            allowWatchBookmarks="true" if bookmarks else None,
            timeoutSeconds=timeout,
        )
        lines = split_lines(self.transport.stream(_path(resource, namespace), query=query))
        try:
            async for line in lines:
                event = _decode(line)
                kind, obj = str(event["type"]), event["object"]
                if kind == "ERROR":
                    raise ApiError.from_status(int(obj.get("code") or 500), obj)
                yield WatchEvent(kind, obj)
        finally:
            await lines.aclose()

    # Writing

    async def create(
        self,
        resource: Resource,
        obj: Object,
        *,
        namespace: str | None = None,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
    ) -> Object:
        query = self._write_query(dry_run=dry_run, field_validation=field_validation)
        path = _path(resource, namespace or obj.get("metadata", {}).get("namespace"))
        return await self._call("POST", path, query=query, body=obj)

    async def update(
        self,
        resource: Resource,
        obj: Object,
        *,
        subresource: str | None = None,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
    ) -> Object:
        """Replace; fails with `Conflict` when `metadata.resourceVersion` is set and no longer the newest."""
        meta = obj["metadata"]
        query = self._write_query(dry_run=dry_run, field_validation=field_validation)
        path = _path(resource, meta.get("namespace"), meta["name"], subresource)
        return await self._call("PUT", path, query=query, body=obj)

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Any,
        *,
        namespace: str | None = None,
        kind: PatchKind = "merge",
        subresource: str | None = None,
        force: bool = False,
        field_manager: str | None = None,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
    ) -> Object:
        """`force` takes over fields owned by another manager and has a meaning for `kind="apply"` only."""
        query = self._write_query(dry_run=dry_run, field_validation=field_validation, field_manager=field_manager)
        if kind == "apply" and force:
            query["force"] = "true"
        path = _path(resource, namespace, name, subresource)
        return await self._call("PATCH", path, query=query, body=patch, content_type=PATCH_TYPES[kind])

    async def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str | None = None,
        propagation: Propagation | None = None,
        grace_period: int | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        dry_run: bool = False,
    ) -> Object:
        """Returns the object while it lingers (finalizers, grace period), else a Status.

        With `uid` only that incarnation is deleted: a newer object of the same name answers `Conflict`.
        """
        options = _delete_options(propagation, grace_period, dry_run)
        preconditions = _query(uid=uid, resourceVersion=resource_version)
        if preconditions:
            options["preconditions"] = preconditions
        return await self._call("DELETE", _path(resource, namespace, name), body=options)

    async def delete_collection(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
        propagation: Propagation | None = None,
        grace_period: int | None = None,
        dry_run: bool = False,
    ) -> Object:
        query = _query(labelSelector=label_selector, fieldSelector=field_selector)
        options = _delete_options(propagation, grace_period, dry_run)
        return await self._call("DELETE", _path(resource, namespace), query=query, body=options)

    # Everything else

    async def discover(self) -> Discovery:
        """What this server serves; ask once and keep it, it costs one to some dozens of requests."""
        from paddlecloud.kube.discovery import fetch

        return await fetch(self)

    async def raw(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = JSON,
        accept: str = JSON,
    ) -> Response:
        """Any request, with the errors and warnings of the other methods. `bytes` go out as they are, else as JSON."""
        data = body if body is None or isinstance(body, bytes) else msgspec.json.encode(body)
        response = await self.transport.request(
            method, path, query=query, body=data, content_type=content_type, accept=accept
        )
        if response.status >= 400:
            raise refusal(response)
        if self._on_warning is not None:
            for text in parse_warnings(response.headers.get("warning", "")):
                self._on_warning(text)
        return response

    def stream(self, path: str, *, query: Mapping[str, str] | None = None, accept: str = JSON) -> AsyncIterator[bytes]:
        """The body of a GET as it arrives, for logs."""
        return self.transport.stream(path, query=query, accept=accept)

    def _write_query(
        self, *, dry_run: bool, field_validation: str | None, field_manager: str | None = None
    ) -> dict[str, str]:
        return _query(
            fieldManager=field_manager or self.field_manager,
            dryRun="All" if dry_run else None,
            fieldValidation=field_validation,
        )

    async def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = JSON,
    ) -> Object:
        response = await self.raw(method, path, query=query, body=body, content_type=content_type)
        return _decode(response.body)


def _path(resource: Resource, namespace: str | None, name: str | None = None, subresource: str | None = None) -> str:
    """Names become path segments, so what could climb out of its segment is refused here, before it is sent."""
    for segment in (namespace, name):
        if segment is not None and (segment in (".", "..") or "/" in segment or "%" in segment):
            raise BadRequest(f'"{segment}" cannot be a name: it may not contain "/" or "%", nor be "." or ".."')
    if name == "":
        raise BadRequest(f"a {resource.kind} without a name cannot be addressed; give metadata.name")
    return resource.path(namespace, name, subresource)


def _query(**parameters: str | int | None) -> dict[str, str]:
    return {name: str(value) for name, value in parameters.items() if value is not None}


def _delete_options(propagation: str | None, grace_period: int | None, dry_run: bool) -> dict[str, Any]:
    options: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1"}
    if propagation is not None:
        options["propagationPolicy"] = propagation
    if grace_period is not None:
        options["gracePeriodSeconds"] = grace_period
    if dry_run:
        options["dryRun"] = ["All"]
    return options


def _decode(data: bytes) -> Object:
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ApiError(
            f"the answer is not JSON ({error}): {data[:80]!r}; does the server address point at a Kubernetes API?",
            code=0,
            reason="NotKubernetes",
        ) from error
    if not isinstance(value, dict):
        raise ApiError(f"the answer is not an object: {data[:80]!r}", code=0, reason="NotKubernetes")
    return value


def parse_warnings(header: str) -> list[str]:
    """The texts of a Warning header: `299 - "unknown field \\"spec.x\\""`, several of them joined by commas."""
    texts: list[str] = []
    text: list[str] | None = None
    escaped = False
    for char in header:
        if text is None:
            text = [] if char == '"' else None
        elif escaped:
            text.append(char)
            escaped = False
        elif char == "\\":
            escaped = True
        elif char == '"':
            texts.append("".join(text))
            text = None
        else:
            text.append(char)
    return texts
