"""How the conformance tests talk to the server under test: the project's own client without awaits.

One kept connection serves the whole session. `ScratchNamespace` is the API as seen from the test's own namespace; `Api`
is the rest of it. Requests that no client would send (strange paths, endless bodies) go through `Api.connect`.
"""

from __future__ import annotations

import dataclasses
import http.client
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any, TypeVar, cast

import msgspec

from harness import until
from paddlecloud.kube import errors
from paddlecloud.kube.client import Client, ObjectList, PatchKind, Propagation, WatchEvent
from paddlecloud.kube.config import Config
from paddlecloud.kube.credentials import Credential, Static
from paddlecloud.kube.resource import Object, Resource
from paddlecloud.kube.stdlib import StdlibTransport, drive, drive_iter
from paddlecloud.kube.transport import JSON, Response

T = TypeVar("T")
Names = list[str]

DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"


def eventually(look: Callable[[], T], expected: T | Callable[[T], bool]) -> T:
    """What `look` returns once it is as expected. Looks often: a request on the kept connection costs little.

    A server may ask for patience (429): kube-apiserver does while it takes up a changed CRD. Clients ask again.
    """

    def answered() -> T:
        return until(_unless_busy(look), every=0.05)[0]

    return cast("T", until(answered, expected, every=0.005))


def _unless_busy(look: Callable[[], T]) -> Callable[[], list[T]]:
    def looked() -> list[T]:
        try:
            return [look()]
        except errors.TooManyRequests:
            return []

    return looked


def a(resource: Resource, name: str, **fields: Any) -> Object:
    """An object of a kind: `a(CONFIGMAPS, "x", data={...}, labels={...})`. Labels and the like go to its metadata."""
    meta: Object = {"name": name} if name else {}
    for field in ("labels", "annotations", "finalizers", "ownerReferences", "generateName"):
        if field in fields:
            meta[field] = fields.pop(field)
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, **fields}


def sleeping_pod(name: str, **fields: Any) -> Object:
    """A pod that no scheduler takes, so that its status stays as it was written."""
    containers = [{"name": "main", "image": "registry.example/none:1", "command": ["true"]}]
    spec = {"schedulerName": "nobody", "containers": containers, **fields.pop("spec", {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **fields}, "spec": spec}


class Api:
    """Every verb, cluster-wide. `warnings` gathers the Warning headers since it was last cleared."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.warnings: list[str] = []
        self._transport = StdlibTransport(config, user_agent="conformance/1")
        self.client = Client(self._transport, field_manager="conformance", on_warning=self.warnings.append)

    def close(self) -> None:
        drive(self.client.close())

    def bearing(self, token: str | None) -> Api:
        """The same server for a client with `token`, or without one."""
        credential = Credential(f"Bearer {token}" if token is not None else None)
        return Api(dataclasses.replace(self.config, source=Static(credential)))

    def sending(self, *headers: tuple[str, str]) -> Api:
        """The same server and identity, with its own headers on every request."""
        return Api(dataclasses.replace(self.config, headers=headers))

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = JSON,
        accept: str = JSON,
    ) -> Response:
        """One request, whatever the answer. `bytes` go out as they are."""
        data = body if body is None or isinstance(body, bytes) else msgspec.json.encode(body)
        return drive(
            self._transport.request(method, path, query=query, body=data, content_type=content_type, accept=accept)
        )

    def fetch(self, path: str, *, accept: str = JSON, **query: str) -> Any:
        """The decoded answer to a GET that must succeed."""
        return msgspec.json.decode(drive(self.client.raw("GET", path, query=query, accept=accept)).body)

    def post(self, path: str, body: Any) -> Object:
        """The decoded answer to a POST that must succeed."""
        answer: Object = msgspec.json.decode(drive(self.client.raw("POST", path, body=body)).body)
        return answer

    def refuse(self, method: str, path: str, body: Any = None, **options: Any) -> Object:
        """The Status of a request that must be refused, after a look at its form."""
        response = self.send(method, path, body, **options)
        assert response.status >= 400, f"{method} {path} answered {response.status}: {response.body[:500]!r}"
        status: Object = msgspec.json.decode(response.body)
        assert (status["kind"], status["apiVersion"], status["status"]) == ("Status", "v1", "Failure")
        assert status["code"] == response.status
        assert status["message"]
        return status

    @contextmanager
    def connect(self) -> Iterator[http.client.HTTPConnection]:
        """A bare connection, for requests that the client would refuse to send. Add `headers()` to each."""
        host, _, port = self.config.server.partition("://")[2].partition(":")
        credential = self.config.source.peek() or self.config.source.fetch()
        context = self.config.tls(credential)
        assert context is not None, "conformance is judged over TLS"
        with closing(http.client.HTTPSConnection(host, int(port), timeout=30, context=context)) as connection:
            yield connection

    def headers(self, **more: str) -> dict[str, str]:
        credential = self.config.source.peek() or self.config.source.fetch()
        return {**({"Authorization": credential.authorization} if credential.authorization else {}), **more}

    def watch(self, resource: Resource, namespace: str | None = None, **options: Any) -> Iterator[WatchEvent]:
        """Events until the server ends the watch, which it is asked to do before the test would hang."""
        options.setdefault("timeout", 15)
        return drive_iter(self.client.watch(resource, namespace, **options))


class ScratchNamespace:
    """The API from inside one namespace."""

    def __init__(self, api: Api, namespace: str) -> None:
        self.api = api
        self.namespace = namespace

    def path(self, resource: Resource, name: str | None = None, subresource: str | None = None) -> str:
        return resource.path(self.namespace, name, subresource)

    def make(self, resource: Resource, name: str, **fields: Any) -> Object:
        return self.create(resource, a(resource, name, **fields))

    def create(self, resource: Resource, obj: Object, **options: Any) -> Object:
        return drive(self.api.client.create(resource, obj, namespace=self._space(resource), **options))

    def get(self, resource: Resource, name: str) -> Object:
        return drive(self.api.client.get(resource, name, self._space(resource)))

    def list(self, resource: Resource, **options: Any) -> ObjectList:
        return drive(self.api.client.list(resource, self._space(resource), **options))

    def names(self, resource: Resource, *, labels: str | None = None, fields: str | None = None) -> Names:
        """Names in the order listed, without the default objects of every namespace."""
        found = self.list(resource, label_selector=labels, field_selector=fields).items
        return [name for item in found if (name := item["metadata"]["name"]) not in ("kube-root-ca.crt", "default")]

    def exists(self, resource: Resource, name: str) -> bool:
        try:
            self.get(resource, name)
        except errors.NotFound:
            return False
        return True

    def update(self, resource: Resource, obj: Object, **options: Any) -> Object:
        return drive(self.api.client.update(resource, obj, **options))

    def patch(self, resource: Resource, name: str, patch: Any, *, kind: PatchKind = "merge", **options: Any) -> Object:
        space = self._space(resource)
        return drive(self.api.client.patch(resource, name, patch, namespace=space, kind=kind, **options))

    def apply(self, resource: Resource, name: str, *, by: str, force: bool = False, **fields: Any) -> Object:
        """Server-side apply of an object of these fields."""
        subresource = fields.pop("subresource", None)
        dry_run = fields.pop("dry_run", False)
        return self.patch(
            resource, name, a(resource, name, **fields), kind="apply", field_manager=by, force=force,
            subresource=subresource, dry_run=dry_run,
        )  # fmt: skip

    def delete(
        self, resource: Resource, name: str, *, propagation: Propagation | None = None, **options: Any
    ) -> Object:
        space = self._space(resource)
        return drive(self.api.client.delete(resource, name, namespace=space, propagation=propagation, **options))

    def delete_collection(self, resource: Resource, **options: Any) -> Object:
        return drive(self.api.client.delete_collection(resource, self._space(resource), **options))

    def watch(self, resource: Resource, **options: Any) -> Iterator[WatchEvent]:
        return self.api.watch(resource, self._space(resource), **options)

    def version(self, resource: Resource) -> str:
        """The resourceVersion to watch from in order to see what happens next."""
        return self.list(resource).resource_version

    def _space(self, resource: Resource) -> str | None:
        return self.namespace if resource.namespaced else None
