"""Too much of everything: bodies, nesting, labels, connections, readers that do not read. Memory stays bounded and
the server goes on answering others."""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
import socket
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from embedded.raw import Raw, raw_client
from harness import PATIENCE, eventually, pdc
from paddlecloud.kube import descriptors
from paddlecloud.kube.server import listening
from paddlecloud.local.apiserver.http import bodies, limits, server
from paddlecloud.local.control_plane import ControlPlane
from paddlecloud.platform import endpoint

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
MEGABYTE = 1 << 20
MEDIA = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "x/y")


@pytest.fixture
async def raw(inner: ControlPlane) -> AsyncIterator[Raw]:
    async with raw_client(inner) as found:
        yield found


def config(name: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **fields.pop("metadata", {})}, **fields}


# --- one request that is too much ---


@pytest.mark.parametrize("body", [b"[" * 200_000, b'{"a":' * 100_000, b'{"metadata":' * 5_000 + b"{}" + b"}" * 5_000])
@pytest.mark.parametrize("media", ["application/json", "application/yaml"])
async def test_bottomless_nesting_is_refused(raw: Raw, body: bytes, media: str) -> None:
    reply = await raw("POST", CONFIGMAPS, body, content_type=media)
    assert reply.status == 400, reply.body[:300]
    patch = await raw("PATCH", f"{CONFIGMAPS}/x", body, content_type="application/merge-patch+json")
    assert patch.status in (400, 404), patch.body[:300]


def bomb(levels: int) -> bytes:
    lines = ["a0: &a0 [" + ",".join(["lol"] * 9) + "]"]
    lines += [f"a{level}: &a{level} [" + ",".join([f"*a{level - 1}"] * 9) + "]" for level in range(1, levels)]
    return "\n".join(lines).encode()


async def test_yaml_bombs_do_not_go_off(raw: Raw) -> None:
    began = time.process_time()
    for content_type, method, path in (
        ("application/yaml", "POST", CONFIGMAPS),
        ("application/apply-patch+yaml", "PATCH", f"{CONFIGMAPS}/x?fieldManager=t"),
    ):
        reply = await raw(method, path, bomb(12), content_type=content_type)
        assert reply.status == 400, reply.body[:300]
        assert "alias" in reply.json["message"]
    assert time.process_time() - began < 5


async def test_a_connection_without_a_request_is_closed_and_one_with_a_watch_stays(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(listening, "HEAD_TIMEOUT", 1.0)
    platform = ControlPlane(tmp_path / "data", seed=1)
    await platform.start()
    try:
        trusted = ssl.create_default_context(cafile=str(platform.data / "pki" / "ca.crt"))
        port = int(platform.url.rpartition(":")[2])
        admin = (platform.data / "pki" / "admin.token").read_text().strip()
        watching, first = await asyncio.open_connection("127.0.0.1", port, ssl=trusted)
        asked = f"GET {CONFIGMAPS}?watch=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {admin}\r\n\r\n"
        first.write(asked.encode())
        assert b" 200 " in await asyncio.wait_for(watching.readline(), PATIENCE)
        idle, second = await asyncio.open_connection("127.0.0.1", port, ssl=trusted)
        second.write(b"GET /version HTTP/1.1\r\n")
        assert await asyncio.wait_for(idle.read(), PATIENCE) == b""
        async with raw_client(platform) as raw:
            assert (await raw("POST", CONFIGMAPS, config("seen"))).status == 201
        await asyncio.wait_for(until_seen(watching, "seen"), PATIENCE)
        first.close()
    finally:
        await platform.stop()


async def test_nobody_waits_for_the_body_of_a_stranger_and_a_tenant_has_a_share_of_the_watches(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(descriptors, "share", lambda one_of: 16)
    platform = ControlPlane(tmp_path / "data", seed=1)
    await platform.start()
    try:
        trusted = ssl.create_default_context(cafile=str(platform.data / "pki" / "ca.crt"))
        port = int(platform.url.rpartition(":")[2])
        async with raw_client(platform) as raw:
            grant = {"rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["watch"]}]}
            subjects = [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}]
            role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}
            await raw("POST", f"{RBAC}/roles", {"metadata": {"name": "r"}, **grant})
            binding = {"metadata": {"name": "r"}, "roleRef": role, "subjects": subjects}
            await raw("POST", f"{RBAC}/rolebindings", binding)
            issued = await raw("POST", "/api/v1/namespaces/default/serviceaccounts/default/token", {"spec": {}})
            token = issued.json["status"]["token"]

        async def asked(head: str) -> tuple[str, asyncio.StreamWriter]:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusted)
            writer.write(f"{head}\r\nHost: x\r\n\r\n".encode())
            return (await asyncio.wait_for(reader.readline(), PATIENCE)).decode().split()[1], writer

        stranger, writer = await asked("GET /version HTTP/1.1\r\nContent-Length: 9")
        assert stranger == "200"
        watch = f"GET {CONFIGMAPS}?watch=1 HTTP/1.1\r\nAuthorization: Bearer {token}"
        answers = [await asked(watch) for _ in range(9)]
        assert [status for status, _ in answers] == ["200"] * 8 + ["429"]
        assert (await asked("GET /version HTTP/1.1"))[0] == "200"
        for _, each in (*answers, ("", writer)):
            each.close()
    finally:
        await platform.stop()


async def test_bodies_that_never_end_have_a_share_of_the_memory_and_a_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Of any account, whatever it may do: its bodies are read before that is known."""
    monkeypatch.setattr(server, "MOST_BODIES", 8 * MEGABYTE)
    platform = ControlPlane(tmp_path / "data", seed=1)
    await platform.start()
    try:
        trusted = ssl.create_default_context(cafile=str(platform.data / "pki" / "ca.crt"))
        port = int(platform.url.rpartition(":")[2])
        tokens = []
        async with raw_client(platform) as raw:
            for namespace in ("default", "kube-public"):
                path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default/token"
                tokens.append((await raw("POST", path, {"spec": {}})).json["status"]["token"])

        async def send(token: str, sent: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusted)
            head = f"POST {CONFIGMAPS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Length: "
            writer.write(f"{head}{3 * MEGABYTE}\r\n\r\n".encode() + bytes(sent))
            return reader, writer

        async def status(reader: asyncio.StreamReader) -> str:
            return (await asyncio.wait_for(reader.readline(), PATIENCE)).decode().split()[1]

        first, unfinished = await send(tokens[0], 2 * MEGABYTE)
        await eventually(lambda: sum(platform._https._bodies._held.values()) >= 2 * MEGABYTE - (1 << 17))
        second, refused = await send(tokens[0], 3 * MEGABYTE)
        assert await status(second) == "429"
        other, whole = await send(tokens[1], 3 * MEGABYTE)
        assert await status(other) == "403", "another tenant's body is read, and refused for its rights alone"
        unfinished.write(bytes(MEGABYTE))
        assert await status(first) == "403"
        monkeypatch.setattr(bodies, "BODY_TIMEOUT", 0.2)
        late, unfinished_too = await send(tokens[0], MEGABYTE)
        assert await status(late) == "504"
        assert await asyncio.wait_for(late.read(), PATIENCE) != b"", "the reason, then the end of the connection"
        for each in (unfinished, refused, whole, unfinished_too):
            each.close()
        assert "Traceback" not in caplog.text
    finally:
        await platform.stop()


async def test_long_answers_that_nobody_reads_make_room_for_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(server, "MOST_UNREAD", 20 * MEGABYTE)
    platform = ControlPlane(tmp_path / "data", seed=1)
    await platform.start()
    try:
        trusted = ssl.create_default_context(cafile=str(platform.data / "pki" / "ca.crt"))
        port = int(platform.url.rpartition(":")[2])
        admin = (platform.data / "pki" / "admin.token").read_text().strip()
        async with raw_client(platform) as raw:
            for number in range(12):
                await raw("POST", CONFIGMAPS, config(f"long-{number}", data={"x": "y" * 1_000_000}))
        asked = f"GET {CONFIGMAPS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {admin}\r\n\r\n"

        async def ask() -> tuple[asyncio.StreamReader, asyncio.StreamWriter, int]:
            """With little room on the way, so that what is not read stays with the server."""
            way = socket.socket()
            way.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
            way.setblocking(False)
            await asyncio.get_running_loop().sock_connect(way, ("127.0.0.1", port))
            reader, writer = await asyncio.open_connection(sock=way, ssl=trusted, server_hostname="127.0.0.1")
            writer.write(asked.encode())
            head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE)).decode().lower()
            return reader, writer, int(head.partition("content-length: ")[2].split()[0])

        first, unread, _ = await ask()
        second, writer, length = await ask()
        assert len(await asyncio.wait_for(second.readexactly(length), PATIENCE)) == length
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await asyncio.wait_for(first.readexactly(length), PATIENCE)
        for each in (unread, writer):
            each.close()
    finally:
        await platform.stop()


REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@pytest.mark.parametrize(
    ("method", "path", "body", "media", "code"),
    [
        ("POST", CONFIGMAPS, b"---\n" * 200_000, "application/yaml", 400),
        ("POST", CONFIGMAPS, b"---\n" * 700_000, "application/yaml", 413),
        ("PATCH", f"{CONFIGMAPS}/x?fieldManager=t", b"# a\n" * 700_000, "application/apply-patch+yaml", 413),
        ("POST", CONFIGMAPS, b"a: &a " + b"x" * 100_000 + b"\nb:\n" + b"- *a\n" * 50, "application/yaml", 413),
        ("POST", REVIEWS, b"---\n" * 700_000, "application/yaml", 413),
        ("POST", REVIEWS, b'{"spec":{"resourceAttributes":{"name":"%s"}}}' % (b"x" * 40_000), "application/json", 413),
        ("POST", "/apis/apps/v1/namespaces/default/deployments", b"spec: {replicas: 0%s}" % (b"7" * 5000),
         "application/yaml", 400),
    ],
)  # fmt: skip
async def test_bodies_that_take_long_to_read_are_refused(
    raw: Raw, method: str, path: str, body: bytes, media: str, code: int
) -> None:
    began = time.thread_time()
    reply = await raw(method, path, body, content_type=media)
    assert reply.status == code, reply.body[:300]
    assert time.thread_time() - began < 0.5


async def test_long_yaml_is_read_beside_the_loop(raw: Raw) -> None:
    lines = "".join(f"  k{number}: v\n" for number in range(60_000))
    gc.disable()  # it would count what all tests before this one left behind
    try:
        began = time.thread_time()
        reply = await raw("POST", CONFIGMAPS, f"kind: Pod\ndata:\n{lines}".encode(), content_type="application/yaml")
        held = time.thread_time() - began
    finally:
        gc.enable()
    assert reply.status == 400
    assert "but the URL is for ConfigMap" in reply.json["message"], "it was read as a whole"
    assert held < 0.2


async def test_long_yaml_is_understood(raw: Raw) -> None:
    data = {f"k{number}": str(number) for number in range(2000)}
    lines = "".join(f'  {key}: "{value}"\n' for key, value in data.items())
    body = f"metadata: {{name: long}}\ndata:\n{lines}".encode()
    assert len(body) > limits.SHORT_YAML
    made = await raw("POST", CONFIGMAPS, body, content_type="application/yaml")
    assert made.status == 201, made.body[:300]
    assert made.json["data"] == data


async def test_ten_thousand_labels_are_judged_and_kept(raw: Raw) -> None:
    labels = {f"example.org/label-{number}": f"value-{number}" for number in range(10_000)}
    reply = await raw("POST", CONFIGMAPS, config("labelled", metadata={"labels": labels}))
    assert reply.status == 201, reply.body[:300]
    found = await raw("GET", f"{CONFIGMAPS}?labelSelector=example.org/label-9999=value-9999")
    assert [item["metadata"]["name"] for item in found.json["items"]] == ["labelled"]
    bad = {f"not a label {number}": "x" for number in range(10_000)}
    refused = await raw("POST", CONFIGMAPS, config("bad", metadata={"labels": bad}))
    assert refused.status == 422
    annotations = {"big": "x" * (300 * 1024)}
    refused = await raw("POST", CONFIGMAPS, config("big", metadata={"annotations": annotations}))
    assert refused.status == 422
    assert "Too long" in refused.json["message"]


@pytest.mark.parametrize(
    "body",
    [
        b'{"metadata":{"name":"x"},"data":{"n":1e999}}',
        b'{"metadata":{"name":"x"},"data":{"n":NaN}}',
        b'{"metadata":{"name":"x"},"data":{"n":' + b"9" * 50_000 + b"}}",
        b'{"metadata":{"name":"\\ud800"}}',
        b'{"metadata":{"name":"x"},"data":{"\xff\xfe":"y"}}',
        b"\x00" * 1000,
        b"k8s\x00" + b"\xff" * 1000,
        b'{"metadata":null,"data":[[[[]]]]}',
    ],
    ids=["infinity", "not a number", "a number of 50 kB", "half a surrogate", "not UTF-8", "zeros", "broken protobuf",
         "wrong shapes"],
)  # fmt: skip
@pytest.mark.parametrize(
    "media", ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "x/y"]
)
async def test_bodies_that_are_no_objects_are_refused(raw: Raw, body: bytes, media: str) -> None:
    reply = await raw("POST", CONFIGMAPS, body, content_type=media)
    assert 400 <= reply.status < 500, (reply.status, reply.body[:300])
    assert reply.json["kind"] == "Status"


@pytest.mark.parametrize(
    "head", [b"GET / HTTP/9.9.9", b"GET / HTTP/1.1\r\nno colon", b"GET / HTTP/1.1\r\nA: " + b"x" * 99_999]
)
async def test_requests_that_are_not_http_leave_nothing_in_the_log(
    raw: Raw, caplog: pytest.LogCaptureFixture, head: bytes
) -> None:
    host, _, port = raw.url.removeprefix("https://").partition(":")
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    reader, writer = await asyncio.open_connection(host, int(port), ssl=context)
    writer.write(head + b"\r\n\r\n")
    assert b" 400 " in await asyncio.wait_for(reader.readline(), PATIENCE)
    writer.close()
    assert [record for record in caplog.records if record.exc_info] == []


async def test_patches_that_would_grow_without_end_are_refused(raw: Raw) -> None:
    await raw("POST", CONFIGMAPS, config("p", data={"k": "x" * 1000}))
    copies = [{"op": "copy", "from": "/data", "path": f"/data/n{number}"} for number in range(10_000)]
    reply = await raw("PATCH", f"{CONFIGMAPS}/p", copies, content_type="application/json-patch+json")
    assert 400 <= reply.status < 500, reply.body[:300]
    doubling = [{"op": "copy", "from": "", "path": f"/data/n{number}"} for number in range(30)]
    reply = await raw("PATCH", f"{CONFIGMAPS}/p", doubling, content_type="application/json-patch+json")
    assert 400 <= reply.status < 500, reply.body[:300]


# --- on its own platform process, whose memory can be looked at ---


class Outside:
    def __init__(self, data: Path) -> None:
        found = endpoint.find(data)
        assert found is not None
        self.pid, self.port = found.pid, found.port
        self.tls = ssl.create_default_context(cafile=str(data / "pki" / "ca.crt"))
        self.token = (data / "pki" / "admin.token").read_text().strip()

    def resident(self) -> float:
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * 4096 / MEGABYTE

    def cpu(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100

    async def connect(self, *, limit: int = 1 << 16) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port, ssl=self.tls, limit=limit)

    def head(self, method: str, path: str, *more: str) -> bytes:
        lines = [f"{method} {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {self.token}", *more]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    async def healthy(self) -> float:
        """Seconds that a small request takes now."""
        began = time.monotonic()
        reader, writer = await self.connect()
        writer.write(self.head("GET", "/api/v1/namespaces/default", "Connection: close"))
        answer = await asyncio.wait_for(reader.read(), PATIENCE)
        writer.close()
        assert answer.startswith(b"HTTP/1.1 200"), answer[:200]
        return time.monotonic() - began

    async def create(self, name: str, size: int) -> None:
        body = json.dumps(config(name, data={"filler": "x" * size})).encode()
        reader, writer = await self.connect()
        head = self.head("POST", CONFIGMAPS, "Content-Type: application/json", f"Content-Length: {len(body)}",
                         "Connection: close")  # fmt: skip
        writer.write(head + body)
        answer = await asyncio.wait_for(reader.read(), PATIENCE)
        writer.close()
        assert answer.startswith(b"HTTP/1.1 201"), answer[:300]


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    data = tmp_path_factory.mktemp("limits") / "data"
    pdc("up", "--data", str(data), "--port", "0")
    yield Outside(data)
    log = (data / "platform.log").read_text()
    pdc("down", "--data", str(data))
    assert "Traceback" not in log, log[-4000:]


async def test_a_body_of_100_megabytes_is_refused_unread(outside: Outside) -> None:
    before = outside.resident()
    reader, writer = await outside.connect()
    writer.write(
        outside.head("POST", CONFIGMAPS, "Content-Type: application/json", f"Content-Length: {100 * MEGABYTE}")
    )
    answer = await asyncio.wait_for(reader.readuntil(b"\r\n"), PATIENCE)
    assert b" 413 " in answer
    writer.close()
    assert outside.resident() - before < 20


async def test_a_compressed_body_is_not_inflated(outside: Outside) -> None:
    """kube-apiserver reads none either; this one would become sixteen megabytes."""
    body = gzip.compress(b" " * (16 * MEGABYTE))
    reader, writer = await outside.connect()
    head = outside.head("POST", CONFIGMAPS, "Content-Type: application/json", "Content-Encoding: gzip",
                        f"Content-Length: {len(body)}")  # fmt: skip
    writer.write(head + body)
    status = await asyncio.wait_for(reader.readline(), PATIENCE)
    assert b" 400 " in status
    writer.close()


async def test_a_body_that_does_not_give_its_length_is_cut_off(outside: Outside) -> None:
    before = outside.resident()
    reader, writer = await outside.connect()
    writer.write(outside.head("POST", CONFIGMAPS, "Content-Type: application/json", "Transfer-Encoding: chunked"))
    answering = asyncio.ensure_future(reader.readuntil(b"\r\n"))
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    for _ in range(1600):
        if answering.done():
            break
        try:
            writer.write(chunk)
            await writer.drain()
        except ConnectionError:
            break
    assert b" 413 " in await asyncio.wait_for(answering, PATIENCE)
    writer.close()
    assert outside.resident() - before < 40
    await outside.healthy()


async def test_clients_that_never_finish_their_request_hold_up_nobody(outside: Outside) -> None:
    before = outside.resident()
    writers = []
    for number in range(200):
        _, writer = await outside.connect()
        part = outside.head("POST", CONFIGMAPS, "Content-Length: 1000")
        writer.write(part[: 20 + number % len(part)])
        writers.append(writer)
    assert await outside.healthy() < 20
    assert outside.resident() - before < 60
    for writer in writers:
        writer.close()


async def watch(outside: Outside, *, limit: int = 1 << 16) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await outside.connect(limit=limit)
    writer.write(outside.head("GET", f"{CONFIGMAPS}?watch=1"))
    assert (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE)).startswith(b"HTTP/1.1 200")
    return reader, writer


async def until_seen(reader: asyncio.StreamReader, name: str) -> None:
    seen = b""
    while f'"name":"{name}"'.encode() not in seen:
        piece = await reader.read(1 << 16)
        assert piece, "the watch ended"
        seen = seen[-200:] + piece


async def test_two_hundred_idle_watchers_cost_little_and_all_receive_a_change(outside: Outside) -> None:
    before = outside.resident()
    watchers = [await watch(outside) for _ in range(200)]
    assert outside.resident() - before < 100
    busy = outside.cpu()
    await asyncio.sleep(1.0)
    assert outside.cpu() - busy < 0.5, "idle watchers must not keep the server busy"
    receiving = [asyncio.ensure_future(until_seen(reader, "seen-by-all")) for reader, _ in watchers]
    await outside.create("seen-by-all", 10)
    await asyncio.wait_for(asyncio.gather(*receiving), PATIENCE)
    for _, writer in watchers:
        writer.close()


async def test_a_watcher_that_does_not_read_slows_nobody_and_costs_little(outside: Outside) -> None:
    """What it has missed is not kept for it: when it comes back it resumes, or lists again."""
    stuck = [await watch(outside, limit=1 << 12) for _ in range(10)]
    lively, writer = await watch(outside, limit=1 << 22)
    before = outside.resident()
    receiving = asyncio.ensure_future(until_seen(lively, "slow-299"))
    for number in range(300):
        await outside.create(f"slow-{number}", 50_000)
    await asyncio.wait_for(receiving, 60)
    grown = outside.resident() - before
    assert grown < 15 * 3 + 40, f"{grown:.0f} MB for 15 MB of objects"
    assert await outside.healthy() < 20
    for _, one in (*stuck, (lively, writer)):
        one.close()
