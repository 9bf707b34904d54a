"""Requests to cache servers: who gets a secret, and what of an answer is believed."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from paddlecloud.controllers.sampledata.sampleset.case import (
    CacheServer,
    Observed,
    Parsed,
    SampleSetCase,
    SampleSetOptions,
)
from paddlecloud.controllers.sampledata.sampleset.pod_and_volume_views import cache_servers
from paddlecloud.controllers.sampledata.servers import access
from paddlecloud.controllers.sampledata.servers.polling import ServerPoller
from paddlecloud.controllers.sampledata.servers.requests import (
    ServerAddress,
    ServerRefused,
    Servers,
    ServerSilent,
    Work,
)
from paddlecloud.kube.cache import Cache, by_label
from paddlecloud.kube.clock import FakeClock
from paddlecloud.kube.resource import PODS, SAMPLESETS, SECRETS, Key, Object, owner_reference
from unit.controllers.sampledata.world import Played, SampleDataCluster

KEYS = {"access-key": "an-access-key", "secret-key": "a-secret-key"}
WORK = Work("job", "sync", {"source": "s3://bucket/x"}, KEYS)


@dataclass
class Peer:
    """A program at the address of a pod. It uses TLS or not, answers with `reply`, and keeps what it received."""

    reply: bytes
    port: int = 0
    received: bytearray = field(default_factory=bytearray)
    connections: int = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            self.received += await reader.read(1 << 16)
            writer.write(self.reply)
            await writer.drain()
        except (ConnectionError, ssl.SSLError):
            pass  # a client that does not trust this peer goes away
        finally:
            writer.close()


@asynccontextmanager
async def serving(reply: bytes, keys: Mapping[str, str] | None, folder: Path) -> AsyncIterator[Peer]:
    peer = Peer(reply)
    tls = None
    if keys is not None:
        for name in ("tls.crt", "tls.key"):
            (folder / name).write_bytes(base64.b64decode(keys[name]))
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    listener = await asyncio.start_server(peer.handle, "127.0.0.1", 0, ssl=tls)
    peer.port = listener.sockets[0].getsockname()[1]
    try:
        yield peer
    finally:
        listener.close()


def answer(status: str, body: bytes = b"", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


@asynccontextmanager
async def asking(peer: Peer, keys: Mapping[str, str]) -> AsyncIterator[tuple[Servers, ServerAddress]]:
    known = access.read({"data": dict(keys)})
    assert known is not None
    servers = Servers(port=peer.port)
    try:
        yield servers, ServerAddress("s-runtime-0", "127.0.0.1", known)
    finally:
        await servers.close()


CALLS: list[Callable[[Servers, ServerAddress], Awaitable[object]]] = [
    lambda servers, server: servers.figures(server),
    lambda servers, server: servers.submit(server, WORK),
    lambda servers, server: servers.job(server, "job"),
    lambda servers, server: servers.jobs(server),
    lambda servers, server: servers.cancel(server, "job"),
]


@pytest.mark.parametrize("program", ["plain", "another certificate"])
@pytest.mark.parametrize("call", CALLS)
async def test_a_program_that_holds_a_pods_address_is_sent_nothing(
    tmp_path: Path, program: str, call: Callable[[Servers, ServerAddress], Awaitable[object]]
) -> None:
    keys, other = access.fresh(), access.fresh()
    async with (
        serving(answer("200 OK", b"{}"), None if program == "plain" else other, tmp_path) as other_program,
        asking(other_program, keys) as (servers, server),
    ):
        with pytest.raises(
            ServerSilent,
            match="no TLS there" if program == "plain" else f"another program answers.*port {other_program.port} ",
        ):
            await call(servers, server)
    token = base64.b64decode(keys["token"])
    for secret in (token, b"an-access-key", b"a-secret-key", b"Bearer", b"/v2/"):
        assert secret not in other_program.received


async def test_the_sets_own_server_is_asked(tmp_path: Path) -> None:
    keys = access.fresh()
    body = json.dumps({"totalBytes": 7, "error": "one\nline \x1b[31mred" + "x" * 5000}).encode()
    async with serving(answer("200 OK", body), keys, tmp_path) as own, asking(own, keys) as (servers, server):
        found = await servers.figures(server)
    assert found.total_bytes == 7
    assert found.error is not None
    assert found.error.startswith("one line [31mred")
    assert len(found.error) <= 1001
    assert b"Bearer " + base64.b64decode(keys["token"]) in own.received


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"])
async def test_a_redirect_of_a_pod_is_not_followed(tmp_path: Path, status: str) -> None:
    keys = access.fresh()
    folder = tmp_path / "target"
    folder.mkdir()
    async with serving(answer("200 OK", b'{"error": "secret of another service"}'), None, folder) as target:
        location = f"Location: http://127.0.0.1:{target.port}/latest/meta-data"
        async with (
            serving(answer(status, b"", location), keys, tmp_path) as pod,
            asking(pod, keys) as (servers, server),
        ):
            with pytest.raises(ServerSilent, match=f"answered {status[:3]}") as reported:
                await servers.figures(server)
    assert target.connections == 0
    assert "secret" not in str(reported.value)


@pytest.mark.parametrize(
    ("reply", "reported"),
    [
        (answer("200 OK", b"x" * (5 << 20)), "more than 4 MiB"),
        (answer("200 OK", b"<html>root:x:0:0</html>"), "and no JSON"),
        (answer("200 OK", b"[" * 100_000 + b"root:x:0:0"), "and no JSON"),
        (answer("200 OK", b'{"totalBytes": "root:x:0:0"}'), r"^s-runtime-0 .* cannot be read: \$.totalBytes"),
        (answer("500 Oops", b'{"message": "root:x:0:0"}'), "answered 500"),
        (b"root:x:0:0\r\n\r\n", "does not answer"),
    ],
)
async def test_an_answer_of_another_shape_is_not_shown(tmp_path: Path, reply: bytes, reported: str) -> None:
    keys = access.fresh()
    async with serving(reply, keys, tmp_path) as pod, asking(pod, keys) as (servers, server):
        with pytest.raises(ServerSilent, match=reported) as error:
            await servers.figures(server)
    assert "root:x" not in str(error.value)


@pytest.mark.parametrize(
    ("state", "field"),
    [("root:x:0:0", r"\$.state"), ("a - at `root:x:0:0", r"\$.state"), (["root:x:0:0"], r"\$.state")],
)
async def test_a_state_that_no_job_has_is_not_shown(tmp_path: Path, state: object, field: str) -> None:
    keys = access.fresh()
    reply = answer("200 OK", json.dumps({"id": "job", "state": state}).encode())
    async with serving(reply, keys, tmp_path) as pod, asking(pod, keys) as (servers, server):
        with pytest.raises(ServerSilent, match=f"^s-runtime-0 .* cannot be read: {field}") as error:
            await servers.job(server, "job")
    assert "root:x" not in str(error.value)


async def test_a_refusal_is_shown_by_its_message_alone(tmp_path: Path) -> None:
    keys = access.fresh()
    reply = answer("400 Bad Request", b'{"message": "path must\\nnot contain ..", "dump": "root:x:0:0"}')
    async with serving(reply, keys, tmp_path) as pod, asking(pod, keys) as (servers, server):
        with pytest.raises(ServerRefused) as error:
            await servers.submit(server, WORK)
    assert str(error.value) == "s-runtime-0: path must not contain .."


# Which pods are asked

SET = {"apiVersion": SAMPLESETS.api_version, "kind": "SampleSet", "metadata": {"name": "s", "uid": "the-set"}}


def stateful_set(owner: Object | None) -> Object:
    meta = {"name": "s-runtime", "namespace": "team", "uid": "the-stateful-set"}
    references = [owner_reference(owner)] if owner else []
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {**meta, "ownerReferences": references}}


def pod(ordinal: int, owner: Object | None) -> Object:
    meta: Object = {
        "name": f"s-runtime-{ordinal}",
        "namespace": "team",
        "uid": f"pod-{ordinal}",
        "labels": {"paddlepaddle.org/sampleset": "s"},
        "ownerReferences": [owner_reference(owner)] if owner else [],
    }
    status = {"phase": "Running", "podIP": "10.0.0.9", "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {}, "status": status}


def addresses(pods: list[Object], found: Object) -> dict[int, str]:
    cache = Cache({"set": by_label("paddlepaddle.org/sampleset")})
    for each in pods:
        cache.upsert(each)
    return {server.ordinal: server.ip for server in cache_servers(cache, Key("team", "s"), found, "the-set")}


def test_only_pods_of_the_stateful_set_that_the_set_controls_have_an_address() -> None:
    own = stateful_set(SET)
    another = stateful_set(SET)
    another["metadata"] = {**another["metadata"], "uid": "of-somebody-else"}
    assert addresses([pod(0, own), pod(1, None), pod(2, another)], own) == {0: "10.0.0.9", 2: ""}
    foreign = stateful_set({**SET, "metadata": {"name": "s", "uid": "another-set"}})
    assert addresses([pod(0, foreign)], foreign) == {0: ""}
    assert addresses([pod(0, stateful_set(None))], stateful_set(None)) == {0: ""}


# Ready needs the proof


async def test_a_set_whose_server_proves_nothing_is_not_ready_although_its_pod_is(here: SampleDataCluster) -> None:
    """The pod answers its probe; what answers there has not the set's certificate."""
    here.servers.silent.add("imagenet-runtime-0")
    await here.create_set()
    await here.phase("Bound")

    async def pod_is_ready() -> bool:
        status = (await here.get(PODS, "imagenet-runtime-0") or {}).get("status") or {}
        return any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions") or ())

    await here.until(pod_is_ready)
    await here.pass_time(30)
    status = await here.status(SAMPLESETS, "imagenet")
    assert status["phase"] == "Bound"
    assert status["runtimeStatus"]["runtimeReady"] == "0/1"
    assert "does not answer" in status["message"]
    assert not here.servers.orders
    here.servers.silent.clear()
    await here.phase("Ready")


async def test_a_server_that_has_become_ready_is_asked_at_once_and_not_judged_by_its_start() -> None:
    servers, meta = Played(), {"name": "set", "namespace": "team", "uid": "u"}
    obj = {"metadata": meta, "spec": {"source": {"uri": "s3://b.endpoint/p"}}, "status": {"phase": "Bound"}}
    parsed = Parsed.of(obj)
    keys, poller = access.fresh(), ServerPoller(servers, FakeClock())

    async def asked(*, ready: bool) -> CacheServer:
        first = CacheServer(0, "set-runtime-0", "u", instance="1", ip="127.0.0.1", running=True, ready=ready)
        observed = Observed(cache_servers=(first,), secret={"data": keys})
        case = SampleSetCase(obj, parsed.settings, parsed.status, observed, 0.0, SampleSetOptions())
        return (await poller.ask(case, Key("team", "set"))).cache_servers[0]

    servers.silent = {"set-runtime-0"}
    assert not (await asked(ready=False)).ready
    servers.silent = set()
    found = await asked(ready=True)
    assert (found.ready, found.trouble) == (True, "")


async def test_a_ready_server_that_is_silent_for_a_moment_stays_ready(here: SampleDataCluster) -> None:
    await here.create_set()
    await here.phase("Ready")
    here.servers.silent.add("imagenet-runtime-0")
    await here.pass_time(90)
    status = await here.status(SAMPLESETS, "imagenet")
    assert (status["phase"], status["runtimeStatus"]["runtimeReady"]) == ("Ready", "1/1")


async def test_the_secret_of_the_servers_goes_with_the_set(here: SampleDataCluster) -> None:
    await here.create_set()
    await here.phase("Ready")
    assert await here.get(SECRETS, "imagenet-runtime-keys") is not None
    await here.client.delete(SAMPLESETS, "imagenet", namespace="default")
    await here.gone(SECRETS, "imagenet-runtime-keys")
