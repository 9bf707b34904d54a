"""A tiny API server behind the `Transport` interface: enough truth to test the runtime, and faults on demand.

It keeps a log of versions, answers lists, watches with bookmarks, optimistic concurrency and 410, and can break
watches, compact its history, repeat and reorder what a watch delivers, refuse, or hang.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from paddlecloud.kube import errors
from paddlecloud.kube.resource import Object
from paddlecloud.kube.transport import JSON, Response

Faults = Callable[[list[tuple[int, bytes]]], list[tuple[int, bytes]]]


class MiniServer:
    def __init__(self) -> None:
        self.version = 1
        self.objects: dict[str, Object] = {}  # by path
        self.log: list[tuple[int, str, str, Object]] = []  # version, type, collection path, object
        self.compacted = 0
        self.requests: list[tuple[str, str, Any]] = []  # method, path, body
        self.refuse: Callable[[str, str], errors.ApiError | None] = lambda method, path: None
        self.mangle: Faults = lambda events: events  # what a watch delivers of a batch it has
        self.watches = 0  # opened so far
        self._uids = itertools.count(1)
        self._generation = 0  # watches opened before the last break end
        self._news = asyncio.Event()

    # What tests do behind the client's back

    def put(self, collection: str, name: str, **fields: Any) -> Object:
        """Create or change an object, keeping its uid."""
        path = f"{collection}/{name}"
        old = self.objects.get(path)
        obj: Object = json.loads(json.dumps({**(old or {}), **fields}))
        self.version += 1
        meta = {**((old or {}).get("metadata") or {}), **(obj.get("metadata") or {}), "name": name}
        meta.setdefault("uid", f"uid-{next(self._uids)}")
        if "/namespaces/" in collection:
            meta["namespace"] = collection.split("/namespaces/")[1].split("/")[0]
        meta["resourceVersion"] = str(self.version)
        obj["metadata"] = meta
        self.objects[path] = obj
        self._publish("MODIFIED" if old else "ADDED", collection, obj)
        return obj

    def drop(self, collection: str, name: str) -> None:
        obj = self.objects.pop(f"{collection}/{name}")
        self.version += 1
        last = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.version)}}
        self._publish("DELETED", collection, last)

    def bookmark(self) -> None:
        """Tell every watch how far it is."""
        self.version += 1
        self._publish("BOOKMARK", "", {"metadata": {"resourceVersion": str(self.version)}})

    def break_watches(self) -> None:
        self._generation += 1
        self._wake()

    def compact(self) -> None:
        self.compacted = self.version

    def names(self, collection: str) -> list[str]:
        return [p.rsplit("/", 1)[1] for p in self.objects if p.rsplit("/", 1)[0] == collection]

    def writes(self) -> list[tuple[str, str, Any]]:
        return [request for request in self.requests if request[0] != "GET"]

    # Transport

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        accept: str = JSON,
    ) -> Response:
        await asyncio.sleep(0)
        sent = json.loads(body) if body else None
        self.requests.append((method, path, sent))
        try:
            refused = self.refuse(method, path)
            if refused is not None:
                raise refused
            answer = self._answer(method, path, sent)
        except errors.Unreachable:
            raise
        except errors.ApiError as error:
            return Response(error.code, json.dumps(error.status()).encode())
        return Response(200, json.dumps(answer).encode())

    async def stream(
        self, path: str, *, query: Mapping[str, str] | None = None, accept: str = JSON
    ) -> AsyncIterator[bytes]:
        query = query or {}
        refused = self.refuse("WATCH", path)
        if refused is not None:
            raise refused
        at = int(query.get("resourceVersion") or 0)
        self.watches += 1
        generation = self._generation
        while True:
            if at < self.compacted:
                gone = errors.Expired("too old resource version")
                yield json.dumps({"type": "ERROR", "object": gone.status()}).encode() + b"\n"
                return
            head, more = self.version, self._news
            events = [
                (version, json.dumps({"type": kind, "object": obj}).encode() + b"\n")
                for version, kind, collection, obj in self.log
                if at < version <= head and (kind == "BOOKMARK" or _within(collection, path))
            ]
            for _, line in self.mangle(events):
                yield line
            at = max(at, head)
            if generation != self._generation:
                raise errors.Unreachable("the connection broke")
            await more.wait()

    async def close(self) -> None:
        """Nothing is open."""

    def _publish(self, kind: str, collection: str, obj: Object) -> None:
        self.log.append((self.version, kind, collection, obj))
        self._wake()

    def _wake(self) -> None:
        """Each watch waits for the event it saw before it read the log, so none misses what came in between."""
        self._news.set()
        self._news = asyncio.Event()

    def _answer(self, method: str, path: str, sent: Any) -> Object:
        path, status = path.removesuffix("/status"), path.endswith("/status")
        collection, name = path.rsplit("/", 1)
        known = self.objects.get(path)
        if method == "POST":
            name = sent["metadata"]["name"]
            if f"{path}/{name}" in self.objects:
                raise errors.already_exists("objects", name)
            return self.put(path, name, **sent)
        if (method == "GET" and known is None and any(True for _ in self._in(path))) or _is_collection(path):
            items = list(self._in(path))
            return {"kind": "List", "metadata": {"resourceVersion": str(self.version)}, "items": items}
        if known is None:
            raise errors.not_found("objects", name)
        if method == "GET":
            return known
        if method == "DELETE":
            uid = ((sent or {}).get("preconditions") or {}).get("uid")
            if uid and uid != known["metadata"]["uid"]:
                raise errors.conflict("objects", name)
            self.drop(collection, name)
            return {"kind": "Status", "status": "Success"}
        if method == "PUT":
            if sent["metadata"].get("resourceVersion", known["metadata"]["resourceVersion"]) != str(
                known["metadata"]["resourceVersion"]
            ):
                raise errors.conflict("objects", name)
            return self.put(collection, name, **sent)
        assert method == "PATCH"
        merged = _merge(known, {"status": sent["status"]} if status else sent)
        if merged == known:
            return known
        self.objects[path] = {"metadata": known["metadata"]}
        return self.put(collection, name, **merged)

    def _in(self, path: str) -> list[Object]:
        return [obj for place, obj in self.objects.items() if _within(place.rsplit("/", 1)[0], path)]


def _is_collection(path: str) -> bool:
    parts = path.strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    return len(parts) == 1 or (parts[0] == "namespaces" and len(parts) == 3)


def _within(collection: str, path: str) -> bool:
    """Whether a watch or list of `path` covers `collection`; all namespaces cover each one."""
    if collection == path:
        return True
    root, _, plural = path.rpartition("/")
    return collection.startswith(f"{root}/namespaces/") and collection.endswith(f"/{plural}")


def _merge(old: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    result = dict(old) if isinstance(old, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _merge(result.get(name), value)
    return result
