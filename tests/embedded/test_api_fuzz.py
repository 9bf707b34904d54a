"""The HTTP surface under requests nobody would send: never a 5xx, always a Status, the server alive and its memory
bounded. The generator starts from what is really served and bends it, so that it gets past the first check.

A revision from the future is answered with 504 Timeout, as by Kubernetes: clients wait and retry. It is the one
exception.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from embedded.raw import raw_client
from harness import PATIENCE, need
from paddlecloud.api import crd
from paddlecloud.local.apiserver.auth.authentication import ADMIN
from paddlecloud.local.apiserver.http.request import Request, Response
from paddlecloud.local.control_plane import ControlPlane
from tools import schemathesis


def examples(few: int, many: int) -> pytest.MarkDecorator:
    """Few each time, the same ones; many, and others, in a soak: there each example has a limit, all together none."""
    soak = pytest.param(many, marks=[pytest.mark.soak, pytest.mark.timeout(0)])
    return pytest.mark.parametrize("count", [pytest.param(few, marks=pytest.mark.timeout(900)), soak])


def searching(count: int, *, few: int) -> settings:
    return settings(max_examples=count, suppress_health_check=list(HealthCheck), derandomize=count == few)


class Fuzzed:
    """A platform in its own loop, so that generated examples can be plain functions."""

    def __init__(self, data: Path) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        self.platform: ControlPlane = self.run(self._start(data))
        self.resources = [kind.resource for kind in self.platform.registry]

    async def _start(self, data: Path) -> ControlPlane:
        platform = ControlPlane(data, seed=1)
        await platform.start(objects=crd.generate())
        return platform

    def run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(30)

    def handle(self, request: Request) -> Response:
        async def answered() -> Response:
            answer = await self.platform.api.handle(request)
            if answer.stream is not None:  # a watch: its first frame will do
                close = getattr(answer.stream, "aclose", None)
                await asyncio.wait_for(anext(aiter(answer.stream), b""), PATIENCE)
                if close is not None:
                    await close()
            return answer

        answer: Response = self.run(answered())
        return answer

    def close(self) -> None:
        self.run(self.platform.stop())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(10)
        self.loop.close()


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fuzzed]:
    target = Fuzzed(tmp_path_factory.mktemp("fuzz") / "data")
    yield target
    target.close()


# --- what is sent ---

METHODS = st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "BREW", ""])
NAMES = st.one_of(
    st.sampled_from(["default", "kube-system", "x", "kubernetes", "admin", "cluster-admin", "pods.example.org"]),
    st.text(max_size=12),
    st.just("a" * 300),
)
SUBRESOURCES = st.sampled_from(
    ["", "status", "scale", "log", "exec", "attach", "portforward", "binding", "eviction", "token", "finalize", "proxy"]
)
QUERIES = st.dictionaries(
    st.sampled_from(
        ["watch", "limit", "continue", "labelSelector", "fieldSelector", "resourceVersion", "resourceVersionMatch",
         "timeoutSeconds", "dryRun", "fieldManager", "fieldValidation", "force", "sendInitialEvents",
         "allowWatchBookmarks", "gracePeriodSeconds", "propagationPolicy", "orphanDependents", "includeObject",
         "pretty", "command", "container", "tailLines", "sinceTime"]
    ),
    st.one_of(
        st.sampled_from(["", "1", "0", "-1", "true", "false", "All", "None", "Strict", "a=b", "a in (b", "!", "=,=",
                         "metadata.name=x", "9" * 40, "1.5", "Foreground", "bnVsbA==", "2024-01-01T00:00:00Z"]),
        st.text(max_size=20),
    ),
    max_size=4,
)  # fmt: skip
MEDIA = st.sampled_from(
    ["application/json", "application/yaml", "application/merge-patch+json", "application/json-patch+json",
     "application/strategic-merge-patch+json", "application/apply-patch+yaml", "application/vnd.kubernetes.protobuf",
     "text/plain", "", ";;;", "application/json; charset=utf-7"]
)  # fmt: skip
ACCEPTS = st.sampled_from(
    ["*/*", "application/json", "application/json;as=Table;v=v1;g=meta.k8s.io", "text/html", "", ",;=",
     "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", "application/json;as=Nothing;g=x;v=y"]
)  # fmt: skip
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=10)
)
KEYS = st.sampled_from(
    ["metadata", "spec", "status", "data", "name", "namespace", "labels", "annotations", "ownerReferences", "kind",
     "finalizers", "managedFields", "containers", "template", "selector", "rules", "roleRef", "subjects", "versions",
     "names", "group", "schema", "openAPIV3Schema", "properties", "type", "items", "$patch", "$retainKeys", "op",
     "path", "from", "value", "replicas", "hard", "limits", "uid", "resourceVersion", "generateName", "volumes",
     "ports"]
)  # fmt: skip
JSON = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.one_of(KEYS, st.text(max_size=5)), inner)),
    max_leaves=12,
)
METADATA = st.fixed_dictionaries(
    {},
    optional={
        "name": st.one_of(NAMES, SCALARS),
        "generateName": st.text(max_size=5),
        "labels": JSON,
        "annotations": JSON,
        "finalizers": JSON,
        "ownerReferences": JSON,
        "managedFields": JSON,
        "resourceVersion": st.one_of(st.text(max_size=5), SCALARS),
        "deletionTimestamp": SCALARS,
    },
)


@st.composite
def bodies(draw: st.DrawFn, api_version: str, kind: str) -> bytes:
    """Bytes, JSON, or an object of the right kind with anything in it."""
    shape = draw(st.sampled_from(["object", "object", "object", "json", "bytes", "empty"]))
    if shape == "empty":
        return b""
    if shape == "bytes":
        return draw(st.one_of(st.binary(max_size=60), st.binary(max_size=60).map(lambda data: b"k8s\x00" + data)))
    if shape == "json":
        return json.dumps(draw(JSON)).encode()
    fields = draw(st.dictionaries(st.one_of(KEYS, st.text(max_size=4)), JSON, max_size=4))
    return json.dumps({**fields, "apiVersion": api_version, "kind": kind, "metadata": draw(METADATA)}).encode()


@st.composite
def requests(draw: st.DrawFn, resources: list[Any]) -> Request:
    resource = draw(st.sampled_from(resources))
    base = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    parts = [base]
    if draw(st.booleans()):
        parts += ["namespaces", draw(NAMES)]
    parts.append(draw(st.one_of(st.just(resource.plural), st.just(resource.plural), st.text(max_size=8))))
    if draw(st.booleans()):
        parts.append(draw(NAMES))
        parts.append(draw(SUBRESOURCES))
    strange = st.sampled_from(["/", "", "//", "/%00", "/%ff/../x", "/openapi/v3/x", "/healthz/%2e%2e", "/apis///"])
    path = draw(strange) if draw(st.integers(0, 15)) == 0 else "/".join(part for part in parts if part)
    query = draw(QUERIES)
    if query.get("timeoutSeconds", "") == "" and "watch" in query:
        query["timeoutSeconds"] = "1"
    headers = {"content-type": draw(MEDIA), "accept": draw(ACCEPTS), "user-agent": draw(st.text(max_size=6))}
    if draw(st.integers(0, 20)) == 0:
        headers["impersonate-user"] = draw(NAMES)
    body = draw(bodies(resource.api_version, resource.kind))
    repeated = {"command": [query["command"]]} if "command" in query else {}
    return Request(draw(METHODS), path, query, headers, body, ADMIN, repeated)


def check(request: Request, answer: Response) -> None:
    shown = (request.method, request.path, dict(request.query), dict(request.headers.items()), request.body[:400])
    if answer.status == 504:
        assert json.loads(answer.body)["message"].startswith("Too large resource version"), shown
        return
    assert answer.status < 500, (shown, answer.body[:400])
    if answer.status >= 400:
        body = json.loads(answer.body)
        assert (body["kind"], body["status"], body["code"]) == ("Status", "Failure", answer.status), shown
        assert body["message"], shown


@examples(few=600, many=20_000)
def test_no_request_makes_the_server_fail(fuzzed: Fuzzed, count: int) -> None:
    before = _resident()

    @searching(count, few=600)
    @given(requests(fuzzed.resources))
    def send(request: Request) -> None:
        check(request, fuzzed.handle(request))

    send()
    assert fuzzed.handle(Request("GET", "/healthz", {}, {}, b"", ADMIN)).status == 200
    assert fuzzed.handle(Request("GET", "/api/v1/namespaces/default", {}, {}, b"", ADMIN)).status == 200
    assert _resident() - before < (300 + count / 16), "the generator itself takes most of this"


def _resident() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / (1 << 20)


# --- below HTTP ---

LINES = st.one_of(
    st.binary(max_size=200),
    st.sampled_from(
        [b"GET / HTTP/1.1", b"GET / HTTP/9.9", b"GET  / HTTP/1.1", b"GET /", b"POST /api/v1/pods HTTP/1.1",
         b"Host: x", b"Content-Length: -1", b"Content-Length: 99999999999999999999", b"Content-Length: 5",
         b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked, chunked", b"Expect: 100-continue",
         b"Connection: Upgrade", b"Upgrade: websocket", b"Upgrade: SPDY/3.1", b"Sec-WebSocket-Key: x", b": no name",
         b"Authorization: Bearer \xff", b"X: " + b"y" * 40_000, b"PRI * HTTP/2.0", b"\x16\x03\x01\x02"]
    ),
)  # fmt: skip


@examples(few=60, many=2000)
def test_no_bytes_on_a_connection_end_the_server(fuzzed: Fuzzed, count: int) -> None:
    platform = fuzzed.platform
    tls = ssl.create_default_context(cafile=str(platform.certs.ca_cert))

    async def converse(data: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", platform.port, ssl=tls)
        writer.write(data)
        try:
            return await asyncio.wait_for(reader.read(4096), 0.3)
        except (asyncio.TimeoutError, ConnectionError):
            return b""  # it waits for the rest of the request, or has closed the connection
        finally:
            writer.close()

    @searching(count, few=60)
    @given(st.lists(LINES, max_size=8), st.binary(max_size=40))
    def send(lines: list[bytes], rest: bytes) -> None:
        answer = fuzzed.run(converse(b"\r\n".join(lines) + b"\r\n\r\n" + rest))
        assert not answer.startswith(b"HTTP/1.1 5"), answer[:300]
        assert not answer.startswith(b"HTTP/1.1 2") or b'"items"' not in answer, answer[:300]

    send()

    async def alive() -> int:
        async with raw_client(platform) as raw:
            return (await raw("GET", "/api/v1/namespaces/default")).status

    assert fuzzed.run(alive()) == 200


# --- as the OpenAPI documents have it ---

ENDLESS = ("watch", "resourceVersion")
"""Parameters that are left out: a stream without end, and versions of the future, which are answered with 504."""
DOCUMENTS = [
    "api/v1", "apis/apps/v1", "apis/batch/v1", "apis/rbac.authorization.k8s.io/v1", "apis/apiextensions.k8s.io/v1",
    "apis/authentication.k8s.io/v1", "apis/authorization.k8s.io/v1", "apis/batch.paddlepaddle.org/v1",
    "apis/serving.paddlepaddle.org/v1", "apis/scheduling.volcano.sh/v1beta1",
]  # fmt: skip


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Fuzzed]:
    """With all its kinds: what is deleted in one test may be a definition that another needs."""
    target = Fuzzed(tmp_path / "data")
    yield target
    target.close()


@pytest.mark.soak
@pytest.mark.timeout(0)  # Schemathesis keeps its own
@pytest.mark.parametrize("name", DOCUMENTS)
def test_what_the_openapi_documents_offer_is_safe_and_needs_credentials(
    fresh: Fuzzed, name: str, tmp_path: Path
) -> None:
    """A second opinion: requests that Schemathesis makes out of our documents, with and without credentials."""
    program = schemathesis.find_or_make()
    need("schemathesis", have=program is not None, hint=f"it is fetched once: {schemathesis.WHEEL}")
    answer = fresh.handle(Request("GET", f"/openapi/v3/{name}", {}, {}, b"", ADMIN))
    document = json.loads(answer.body)
    for path in document["paths"].values():
        for operation in path.values():
            if isinstance(operation, dict):
                offered = operation.get("parameters", [])
                operation["parameters"] = [one for one in offered if one.get("name") not in ENDLESS]
    document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{"token": []}]
    (tmp_path / "openapi.json").write_text(json.dumps(document))
    platform = fresh.platform
    token = (platform.data / "pki" / "admin.token").read_text().strip()
    done = subprocess.run(
        [str(program), "run", "openapi.json", "--url", f"https://127.0.0.1:{platform.port}",
         "--header", f"Authorization: Bearer {token}", "--tls-verify", str(platform.certs.ca_cert),
         "--checks", "not_a_server_error,ignored_auth", "--phases", "fuzzing", "--max-time", "300",
         "--request-timeout", "60", "--suppress-health-check", "all", "--warnings", "off", "--no-color"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
