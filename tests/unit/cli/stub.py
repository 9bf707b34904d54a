"""A loopback API server that answers from a dict: enough of Kubernetes to record what the command line asks for.

It stores what is applied, makes Tables, counts and records requests. It knows no validation, no conflicts and no field
ownership beyond what a test scripts through `refuse`; the embedded platform is where those are proven.
"""

from __future__ import annotations

import copy
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

KINDS: list[tuple[str, str, str, str, bool, list[str]]] = [
    # group, version, plural, kind, namespaced, short names
    ("", "v1", "pods", "Pod", True, ["po"]),
    ("", "v1", "services", "Service", True, ["svc"]),
    ("", "v1", "configmaps", "ConfigMap", True, ["cm"]),
    ("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", True, ["pvc"]),
    ("", "v1", "namespaces", "Namespace", False, ["ns"]),
    ("", "v1", "nodes", "Node", False, ["no"]),
    ("", "v1", "events", "Event", True, ["ev"]),
    ("apps", "v1", "deployments", "Deployment", True, ["deploy"]),
    ("batch", "v1", "jobs", "Job", True, []),
    ("batch.paddlepaddle.org", "v1", "paddlejobs", "PaddleJob", True, ["pdj"]),
    ("batch.paddlepaddle.org", "v1alpha1", "samplesets", "SampleSet", True, []),
    ("batch.paddlepaddle.org", "v1alpha1", "samplejobs", "SampleJob", True, []),
    ("modelhub.paddlepaddle.org", "v1alpha1", "models", "Model", True, []),
    ("modelhub.paddlepaddle.org", "v1alpha1", "modelversions", "ModelVersion", True, []),
    ("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False, ["crd"]),
]

VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]


class Stub:
    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], dict[str, Any]] = {}  # (plural, namespace, name)
        self.kinds = list(KINDS)
        self.requests: list[tuple[str, str, dict[str, str], Any]] = []
        self.logs: dict[str, list[str]] = {}
        self.watch_events: list[dict[str, Any]] = []
        self.refuse: dict[tuple[str, str], tuple[int, dict[str, Any]]] = {}  # (method, path) → (code, Status)
        self.proxied: dict[str, Any] = {}
        """Path of a request that a pod answers behind the API server → its JSON."""
        self.warnings: list[str] = []
        self.openapi: dict[str, Any] = {}
        self.version = "v1.34.0-stub"
        self.endless_watches = True
        self.before: Callable[[str, str], None] = lambda method, path: None
        """Called with every request before it is answered: how a test lets the cluster change meanwhile."""
        self._version = 100
        self._server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def add(self, obj: dict[str, Any], namespace: str = "default") -> dict[str, Any]:
        plural, namespaced = next((k[2], k[4]) for k in self.kinds if k[3] == obj["kind"])
        meta = obj.setdefault("metadata", {})
        if namespaced:
            meta.setdefault("namespace", namespace)
        self._version += 1
        meta.setdefault("uid", f"uid-{self._version}")
        meta.setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
        meta["resourceVersion"] = str(self._version)
        self.objects[(plural, meta.get("namespace", ""), meta["name"])] = obj
        return obj

    def asked(self, method: str) -> list[tuple[str, dict[str, str], Any]]:
        return [(path, query, body) for verb, path, query, body in self.requests if verb == method]

    @contextmanager
    def running(self) -> Iterator[Stub]:
        handler = type("Handler", (_Handler,), {"stub": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join(5)


class _Handler(BaseHTTPRequestHandler):
    stub: Stub
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: Any) -> None:
        """Quiet: tests look at `stub.requests`."""

    def do_GET(self) -> None:
        self._handle("GET")

    def do_POST(self) -> None:
        self._handle("POST")

    def do_PATCH(self) -> None:
        self._handle("PATCH")

    def do_PUT(self) -> None:
        self._handle("PUT")

    def do_DELETE(self) -> None:
        self._handle("DELETE")

    def _handle(self, method: str) -> None:
        parts = urlsplit(self.path)
        query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        self.stub.requests.append((method, parts.path, query, copy.deepcopy(body)))
        self.stub.before(method, parts.path)
        refusal = self.stub.refuse.get((method, parts.path))
        if refusal:
            self._send(refusal[0], {"kind": "Status", "apiVersion": "v1", "status": "Failure", **refusal[1]})
        elif parts.path in self.stub.proxied:
            self._send(200, self.stub.proxied[parts.path])
        elif parts.path in ("/api", "/apis"):
            self._send(200, self._discovery(core=parts.path == "/api"))
        elif parts.path == "/version":
            self._send(200, {"major": "1", "minor": "34", "gitVersion": self.stub.version, "platform": "linux/amd64"})
        elif parts.path.startswith("/openapi/v3"):
            self._openapi(parts.path)
        else:
            self._resource(method, parts.path, query, body)

    def _resource(self, method: str, path: str, query: dict[str, str], body: Any) -> None:
        words = path.strip("/").split("/")
        words = words[2:] if words[0] == "api" else words[3:]
        namespace = ""
        if words[0] == "namespaces" and len(words) > 2:
            namespace, words = words[1], words[2:]
        kind = next((k for k in self.stub.kinds if k[2] == words[0]), None)
        name = words[1] if len(words) > 1 else ""
        if kind is None:
            self._missing("the server could not find the requested resource", {})
        elif words[2:] == ["log"] and words[0] == "pods":
            self._log(name, query)
        elif words[2:] == ["log"]:
            self._missing("the server could not find the requested resource", {})
        elif method == "GET" and query.get("watch"):
            self._watch()
        elif method == "GET" and not name:
            self._list(kind, namespace, query)
        elif method == "POST":
            self._create(kind, namespace, body)
        else:
            self._object(method, kind, namespace, name, query, body)

    def _create(self, kind: tuple[Any, ...], namespace: str, body: Any) -> None:
        name = body["metadata"]["name"]
        if (kind[2], namespace, name) in self.stub.objects:
            status = {"kind": "Status", "status": "Failure", "reason": "AlreadyExists", "code": 409}
            self._send(409, {**status, "message": f'{kind[2]} "{name}" already exists'})
        else:
            self._send(201, self.stub.add(body, namespace))

    def _object(
        self, method: str, kind: tuple[Any, ...], namespace: str, name: str, query: dict[str, str], body: Any
    ) -> None:
        key = (kind[2], namespace, name)
        live = self.stub.objects.get(key)
        if live is None and not (method == "PATCH" and "apply" in self.headers["Content-Type"]):
            full = f"{kind[2]}.{kind[0]}" if kind[0] else kind[2]
            self._missing(f'{full} "{name}" not found', {"name": name, "kind": kind[2], "group": kind[0]})
        elif method == "GET":
            self._send(200, self._table(kind, [live]) if self._wants_table() else live)
        elif method == "DELETE":
            if not (body or {}).get("dryRun"):
                del self.stub.objects[key]
            self._send(200, {"kind": "Status", "apiVersion": "v1", "status": "Success"})
        else:
            dry = query.get("dryRun") == "All"
            merged = _merge(live or {}, body)
            if merged == live or dry:
                self._send(200 if live else 201, merged)
            else:
                merged.setdefault("metadata", {}).setdefault("name", name)
                self._send(200 if live else 201, self.stub.add(merged, namespace))

    def _list(self, kind: tuple[Any, ...], namespace: str, query: dict[str, str]) -> None:
        items = [
            obj
            for (plural, ns, _), obj in sorted(self.stub.objects.items())
            if plural == kind[2] and namespace in ("", ns) and _selected(obj, query)
        ]
        if self._wants_table():
            self._send(200, self._table(kind, items))
            return
        version = f"{kind[0]}/{kind[1]}" if kind[0] else kind[1]
        body = {"kind": f"{kind[3]}List", "apiVersion": version, "metadata": {"resourceVersion": "100"}, "items": items}
        self._send(200, body)

    def _wants_table(self) -> bool:
        return "as=Table" in (self.headers.get("Accept") or "")

    def _table(self, kind: tuple[Any, ...], items: list[Any]) -> dict[str, Any]:
        columns = [
            {"name": "Name", "type": "string", "priority": 0},
            {"name": "Status", "type": "string", "priority": 0},
            {"name": "Node", "type": "string", "priority": 1},
        ]
        rows = [
            {
                "cells": [
                    item["metadata"]["name"],
                    (item.get("status") or {}).get("phase", ""),
                    (item.get("spec") or {}).get("nodeName"),
                ],
                "object": item,
            }
            for item in items
        ]
        meta = {"resourceVersion": "100"}
        return {
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": meta,
            "columnDefinitions": columns,
            "rows": rows,
        }

    def _watch(self) -> None:
        """The scripted events once; then the stream ends, or stays open and silent as a quiet cluster's would."""
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Connection", "close")
        self.end_headers()
        # An event belongs to the watch of its kind, whichever of several watches asks first.
        plural = urlsplit(self.path).path.rpartition("/")[2]
        plurals = {kind[3]: kind[2] for kind in self.stub.kinds}
        events = [event for event in self.stub.watch_events if plurals.get(event["object"]["kind"], plural) == plural]
        self.stub.watch_events = [event for event in self.stub.watch_events if event not in events]
        for event in events:
            if self._wants_table():
                kind = next(k for k in self.stub.kinds if k[3] == event["object"]["kind"])
                event = {**event, "object": self._table(kind, [event["object"]])}
            self.wfile.write(json.dumps(event).encode() + b"\n")
        self.wfile.flush()
        self.close_connection = True
        if not self.stub.endless_watches:
            return
        deadline = time.monotonic() + 30
        self.connection.settimeout(max(0.0, deadline - time.monotonic()))
        try:
            self.connection.recv(1)  # returns when the client hangs up
        except OSError:
            pass  # thirty seconds of silence end the stub's patience

    def _log(self, pod: str, query: dict[str, str]) -> None:
        lines = self.stub.logs.get(pod, [])
        if "sinceTime" in query:
            lines = [line for line in lines if line[:19] >= query["sinceTime"][:19]]
        if "tailLines" in query:
            lines = lines[-int(query["tailLines"]) :]
        if query.get("timestamps") != "true":
            lines = [line.partition(" ")[2] for line in lines]
        data = "".join(f"{line}\n" for line in lines).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _openapi(self, path: str) -> None:
        if path == "/openapi/v3":
            paths = {key: {"serverRelativeURL": f"/openapi/v3/{key}"} for key in self.stub.openapi}
            self._send(200, {"paths": paths})
        else:
            self._send(200, self.stub.openapi[path.removeprefix("/openapi/v3/")])

    def _discovery(self, *, core: bool) -> dict[str, Any]:
        groups: dict[str, dict[str, list[Any]]] = {}
        for group, version, plural, kind, namespaced, short in self.stub.kinds:
            if (group == "") == core:
                item = {
                    "resource": plural,
                    "responseKind": {"kind": kind},
                    "scope": "Namespaced" if namespaced else "Cluster",
                    "singularResource": kind.lower(),
                    "shortNames": short,
                    "categories": ["all"] if kind in ("Pod", "Service", "PaddleJob") else [],
                    "verbs": VERBS,
                }
                groups.setdefault(group, {}).setdefault(version, []).append(item)
        items = [
            {
                "metadata": {"name": group} if group else {},
                "versions": [{"version": version, "resources": found} for version, found in versions.items()],
            }
            for group, versions in groups.items()
        ]
        return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items}

    def _missing(self, message: str, details: dict[str, Any]) -> None:
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
        self._send(404, {**status, "message": message, "details": details})

    def _send(self, code: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for warning in self.stub.warnings:
            self.send_header("Warning", f'299 - "{warning}"')
        self.end_headers()
        self.wfile.write(data)


def _merge(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict) or not isinstance(target, dict):
        return patch
    merged = dict(target)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merge(merged.get(key), value) if isinstance(value, dict) else value
    return merged


def _selected(obj: dict[str, Any], query: dict[str, str]) -> bool:
    labels = obj["metadata"].get("labels") or {}
    for pair in filter(None, query.get("labelSelector", "").split(",")):
        key, equals, value = pair.partition("=")
        if key not in labels or (equals and labels[key] != value):
            return False
    for pair in filter(None, query.get("fieldSelector", "").split(",")):
        path, _, value = pair.partition("=")
        found: Any = obj
        for word in path.split("."):
            found = found.get(word) if isinstance(found, dict) else None
        if found != value:
            return False
    return True
