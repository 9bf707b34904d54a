"""The client: each verb's request on the wire, paging, watching, and errors a program can match."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from paddlecloud.kube import errors
from paddlecloud.kube.client import Client, WatchEvent, parse_warnings
from paddlecloud.kube.resource import NODES, PADDLEJOBS, PODS, Resource, guess_plural, resource_of
from paddlecloud.kube.transport import JSON, Response


class Wire:
    """A transport that answers from a list and remembers what was sent."""

    def __init__(self, *answers: Response | dict[str, Any], chunks: list[bytes] | None = None) -> None:
        self.answers = list(answers)
        self.chunks = chunks or []
        self.sent: list[dict[str, Any]] = []
        self.closed = False

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
        self.sent.append(
            {"request": f"{method} {path}", "query": dict(query or {}), "body": json.loads(body) if body else None}
            | ({} if content_type == JSON else {"type": content_type})
        )
        answer = self.answers.pop(0) if self.answers else {}
        return answer if isinstance(answer, Response) else Response(200, json.dumps(answer).encode())

    async def stream(
        self, path: str, *, query: Mapping[str, str] | None = None, accept: str = JSON
    ) -> AsyncIterator[bytes]:
        self.sent.append({"request": f"STREAM {path}", "query": dict(query or {})})
        try:
            for chunk in self.chunks:
                yield chunk
        finally:
            self.closed = True

    async def close(self) -> None:
        self.closed = True


POD = {"metadata": {"name": "p", "namespace": "ns"}}
FM = {"fieldManager": "paddlecloud"}
OPTIONS = {"kind": "DeleteOptions", "apiVersion": "v1"}

VERBS: dict[str, tuple[Any, dict[str, Any]]] = {
    "get": (
        lambda c: c.get(PODS, "p", "ns"),
        {"request": "GET /api/v1/namespaces/ns/pods/p", "query": {}, "body": None},
    ),
    "get of a cluster-wide kind": (
        lambda c: c.get(NODES, "n"),
        {"request": "GET /api/v1/nodes/n", "query": {}, "body": None},
    ),
    "list in all namespaces with selectors": (
        lambda c: c.list(PADDLEJOBS, label_selector="a=b", field_selector="metadata.name=x"),
        {
            "request": "GET /apis/batch.paddlepaddle.org/v1/paddlejobs",
            "query": {"labelSelector": "a=b", "fieldSelector": "metadata.name=x"},
            "body": None,
        },
    ),
    "create in the object's own namespace": (
        lambda c: c.create(PODS, POD),
        {"request": "POST /api/v1/namespaces/ns/pods", "query": FM, "body": POD},
    ),
    "dry-run create with strict fields": (
        lambda c: c.create(PODS, POD, namespace="other", dry_run=True, field_validation="Strict"),
        {
            "request": "POST /api/v1/namespaces/other/pods",
            "query": {**FM, "dryRun": "All", "fieldValidation": "Strict"},
            "body": POD,
        },
    ),
    "update of the status": (
        lambda c: c.update(PODS, POD, subresource="status"),
        {"request": "PUT /api/v1/namespaces/ns/pods/p/status", "query": FM, "body": POD},
    ),
    "merge patch": (
        lambda c: c.patch(PODS, "p", {"a": 1}, namespace="ns"),
        {
            "request": "PATCH /api/v1/namespaces/ns/pods/p",
            "query": FM,
            "body": {"a": 1},
            "type": "application/merge-patch+json",
        },
    ),
    "json patch of a subresource": (
        lambda c: c.patch(PODS, "p", [{"op": "remove", "path": "/a"}], namespace="ns", kind="json", subresource="x"),
        {
            "request": "PATCH /api/v1/namespaces/ns/pods/p/x",
            "query": FM,
            "body": [{"op": "remove", "path": "/a"}],
            "type": "application/json-patch+json",
        },
    ),
    "server-side apply": (
        lambda c: c.patch(PODS, "p", POD, namespace="ns", kind="apply", force=True, field_manager="me"),
        {
            "request": "PATCH /api/v1/namespaces/ns/pods/p",
            "query": {"fieldManager": "me", "force": "true"},
            "body": POD,
            "type": "application/apply-patch+yaml",
        },
    ),
    "delete": (
        lambda c: c.delete(PODS, "p", namespace="ns"),
        {"request": "DELETE /api/v1/namespaces/ns/pods/p", "query": {}, "body": OPTIONS},
    ),
    "delete with everything": (
        lambda c: c.delete(
            PODS,
            "p",
            namespace="ns",
            propagation="Foreground",
            grace_period=0,
            uid="u",
            resource_version="7",
            dry_run=True,
        ),
        {
            "request": "DELETE /api/v1/namespaces/ns/pods/p",
            "query": {},
            "body": {
                **OPTIONS,
                "propagationPolicy": "Foreground",
                "gracePeriodSeconds": 0,
                "dryRun": ["All"],
                "preconditions": {"uid": "u", "resourceVersion": "7"},
            },
        },
    ),
    "delete many": (
        lambda c: c.delete_collection(PODS, "ns", label_selector="a=b", propagation="Orphan"),
        {
            "request": "DELETE /api/v1/namespaces/ns/pods",
            "query": {"labelSelector": "a=b"},
            "body": {**OPTIONS, "propagationPolicy": "Orphan"},
        },
    ),
}


@pytest.mark.parametrize("verb", VERBS)
async def test_a_verb_becomes_this_request(verb: str) -> None:
    call, expected = VERBS[verb]
    wire = Wire()
    await call(Client(wire))
    assert wire.sent == [expected]


async def test_a_list_follows_its_pages_and_items_know_their_kind() -> None:
    wire = Wire(
        {"metadata": {"resourceVersion": "7", "continue": "next"}, "items": [{"metadata": {"name": "a"}}]},
        {"metadata": {"resourceVersion": "7"}, "items": [{"metadata": {"name": "b"}, "kind": "Special"}]},
    )
    items, version = await Client(wire).list(PODS, "ns", limit=1)
    assert [(i["metadata"]["name"], i["apiVersion"], i["kind"]) for i in items] == [
        ("a", "v1", "Pod"),
        ("b", "v1", "Special"),
    ]
    assert version == "7"
    assert [s["query"] for s in wire.sent] == [{"limit": "1"}, {"limit": "1", "continue": "next"}]


async def test_pages_that_expired_are_replaced_by_one_whole_list() -> None:
    wire = Wire(
        {"metadata": {"resourceVersion": "7", "continue": "next"}, "items": [{"metadata": {"name": "a"}}]},
        Response(410, json.dumps(errors.Expired("compacted").status()).encode()),
        {"metadata": {"resourceVersion": "9"}, "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}]},
    )
    items, version = await Client(wire).list(PODS, limit=1)
    assert ([i["metadata"]["name"] for i in items], version) == (["a", "b"], "9")
    assert wire.sent[-1]["query"] == {}


async def test_a_watch_yields_events_however_the_bytes_are_cut() -> None:
    lines = b"".join(
        json.dumps({"type": kind, "object": {"metadata": {"name": name}}}).encode() + b"\n"
        for kind, name in [("ADDED", "a"), ("MODIFIED", "a"), ("BOOKMARK", ""), ("DELETED", "a")]
    )
    for size in (1, 7, len(lines)):
        wire = Wire(chunks=[lines[i : i + size] for i in range(0, len(lines), size)])
        events = [e async for e in Client(wire).watch(PODS, "ns", resource_version="5", timeout=60)]
        assert events[0] == WatchEvent("ADDED", {"metadata": {"name": "a"}})
        assert [e.type for e in events] == ["ADDED", "MODIFIED", "BOOKMARK", "DELETED"]
        assert wire.sent[0] == {
            "request": "STREAM /api/v1/namespaces/ns/pods",
            "query": {
                "watch": "true",
                "resourceVersion": "5",
                "allowWatchBookmarks": "true",
                "timeoutSeconds": "60",
            },
        }


async def test_an_error_event_is_raised_and_the_connection_closed() -> None:
    gone = json.dumps({"type": "ERROR", "object": errors.Expired("too old").status()}).encode()
    wire = Wire(chunks=[gone + b"\n"])
    with pytest.raises(errors.Expired, match="too old"):
        async for _ in Client(wire).watch(PODS):
            pass
    assert wire.closed


async def test_leaving_a_watch_closes_the_connection() -> None:
    wire = Wire(chunks=[b'{"type":"ADDED","object":{}}\n'] * 3)
    watch = Client(wire).watch(PODS)
    async for _ in watch:
        break
    await watch.aclose()
    assert wire.closed


ANSWERS = [
    (Response(404, json.dumps(errors.not_found("pods", "x").status()).encode()), errors.NotFound, 'pods "x" not found'),
    (Response(409, json.dumps(errors.conflict("pods", "x").status()).encode()), errors.Conflict, "modified"),
    (Response(409, json.dumps(errors.already_exists("pods", "x").status()).encode()), errors.AlreadyExists, "exists"),
    (Response(502, b"<html>bad gateway</html>"), errors.ApiError, "bad gateway"),
    (Response(401, b"", {}), errors.Unauthorized, "401"),
    (Response(200, b"<html>login</html>"), errors.ApiError, "does the server address point at a Kubernetes API"),
    (Response(200, b"[]"), errors.ApiError, "not an object"),
]


@pytest.mark.parametrize(("answer", "error", "message"), ANSWERS)
async def test_a_refusal_is_raised_by_its_type(answer: Response, error: type[errors.ApiError], message: str) -> None:
    with pytest.raises(error, match=message):
        await Client(Wire(answer)).get(PODS, "x", "ns")


async def test_a_server_that_asks_for_time_is_quoted() -> None:
    busy = Response(429, b"slow down", {"retry-after": "7"})
    with pytest.raises(errors.TooManyRequests) as caught:
        await Client(Wire(busy)).get(PODS, "x", "ns")
    assert caught.value.retry_after == 7


@pytest.mark.parametrize("name", ["..", ".", "a/b", "a%2Fb", ""])
async def test_a_name_that_would_leave_its_place_in_the_path_is_never_sent(name: str) -> None:
    wire = Wire()
    with pytest.raises(errors.BadRequest):
        await Client(wire).delete(PODS, name, namespace="ns")
    assert wire.sent == []


async def test_warnings_reach_the_caller() -> None:
    warnings: list[str] = []
    header = '299 - "unknown field \\"spec.x\\"", 299 - "deprecated, use v2"'
    await Client(Wire(Response(200, b"{}", {"warning": header})), on_warning=warnings.append).get(PODS, "x", "ns")
    assert warnings == ['unknown field "spec.x"', "deprecated, use v2"]
    assert parse_warnings("") == []


@pytest.mark.parametrize(
    ("kind", "plural"),
    [
        ("PaddleJob", "paddlejobs"),
        ("Ingress", "ingresses"),
        ("NetworkPolicy", "networkpolicies"),
        ("Endpoints", "endpoints"),
    ],
)
def test_plurals_are_guessed_as_kubernetes_does(kind: str, plural: str) -> None:
    assert guess_plural(kind) == plural


def test_the_collection_of_an_object_is_known_or_derived() -> None:
    assert resource_of({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}) is NODES
    derived = resource_of({"apiVersion": "serving.knative.dev/v1", "kind": "Service", "metadata": {"namespace": "a"}})
    assert derived == Resource("serving.knative.dev", "v1", "services", "Service")


def test_the_read_path_of_the_cli_imports_neither_asyncio_nor_aiohttp() -> None:
    code = (
        "import sys, msgspec\n"  # what it brings along by itself differs between releases of Python
        "before = set(sys.modules)\n"
        "import paddlecloud.kube.client, paddlecloud.kube.stdlib, paddlecloud.kube.config\n"
        "import paddlecloud.kube.discovery\n"
        "print(sorted({'asyncio', 'aiohttp', 'yaml', 'subprocess', 'cryptography'} & set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
