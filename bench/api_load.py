"""The embedded API under load over HTTPS: writes, reads, lists, and fan-out to watchers.

Clients are one separate process with eight connections, so its CPU is not counted as the server's; both share the
machine. Goals that name kube-apiserver are checked beside it by `make bench-cluster`; here stand rates, server CPU per
request and latencies.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from paddlecloud.platform import endpoint

from .claim import Claim, cpu_seconds, pdc, resident_megabytes

CREATES = 6000
GETS = 6000


def run() -> Iterator[Claim]:
    for durable in (False, True):
        yield from _one(durable)


def _one(durable: bool) -> Iterator[Claim]:
    mode = "durable (fsync per commit)" if durable else "default"
    with tempfile.TemporaryDirectory() as data:
        pdc("up", "--data", data, "--port", "0", *(["--durable"] if durable else []))
        try:
            found = endpoint.find(Path(data).resolve())
            assert found is not None
            measured = {}
            for name, count in (("create", CREATES), ("get", GETS), ("list", 40)):
                before = cpu_seconds(found.pid)
                result = _client(data, name, count)
                used = cpu_seconds(found.pid) - before
                measured[name] = (result["rate"], used / count * 1e6)
            resident = resident_megabytes(found.pid)
            fan = _client(data, "fanout", 1000)
        finally:
            pdc("down", "--data", data)
    note = f"{mode}, 8 clients, 3 KB ConfigMaps, HTTPS, RBAC, audit"
    # 780-960 creates/s at 1.3-1.5 ms and 0.6 ms CPU per get: kube-apiserver 1.34 + etcd on two cores.
    yield Claim("creates", measured["create"][0], "/s", goal=2700 if durable else None, at_least=True, note=note)
    yield Claim("server CPU per create", measured["create"][1], "µs", goal=340 if durable else None, note=mode)
    yield Claim("gets", measured["get"][0], "/s", note=mode)
    yield Claim("server CPU per get", measured["get"][1], "µs", goal=150 if durable else None, note=mode)
    yield Claim("server CPU per listed object", measured["list"][1] / CREATES, "µs", note=f"{CREATES} objects a list")
    yield Claim("resident after load", resident, "MB", note=f"{CREATES} objects of 3 KB")
    yield Claim("watch fan-out, p99", fan["p99_ms"], "ms", goal=20, note=f"100 watchers, 200 writes/s; {mode}")
    yield Claim("watch events lost", fan["lost"], "", goal=0, note="100 watchers × 1,000 writes")


def _client(data: str, what: str, count: int) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.api_load", data, what, str(count)]
    root = Path(__file__).parent.parent
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300, cwd=root)
    result: dict[str, float] = json.loads(done.stdout)
    return result


# --- the client process ---


async def _load(data: str, what: str, count: int) -> dict[str, float]:
    import asyncio
    import time

    import aiohttp

    from paddlecloud.kube import config

    settings = config.load(kubeconfig=f"{data}/kubeconfig")
    token = Path(data, "pki", "admin.token").read_text().strip()
    import ssl

    tls = ssl.create_default_context(cafile=f"{data}/pki/ca.crt")
    base = f"{settings.server}/api/v1/namespaces/default/configmaps"
    body = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"payload": "x" * 3000}}
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "User-Agent": "bench"}
    connector = aiohttp.TCPConnector(limit=0, ssl=tls)
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:

        async def create(name: str, extra: dict[str, str] | None = None) -> None:
            payload = json.dumps({**body, "metadata": {"name": name, "annotations": extra or {}}})
            async with session.post(base, data=payload) as response:
                await response.read()
                assert response.status == 201, response.status

        async def get(name: str) -> None:
            async with session.get(f"{base}/{name}") as response:
                await response.read()
                assert response.status == 200, response.status

        async def list_all() -> None:
            async with session.get(base) as response:
                await response.read()

        async def worker(number: int) -> None:
            for step in range(count // 8):
                if what == "create":
                    await create(f"c{number}-{step}")
                elif what == "get":
                    await get(f"c{number}-{step % 500}")
                else:
                    await list_all()

        if what != "fanout":
            began = time.perf_counter()
            await asyncio.gather(*(worker(number) for number in range(8)))
            return {"rate": count / (time.perf_counter() - began)}
        return await _fan_out(session, base, create, count)


async def _fan_out(session: object, base: str, create: object, count: int) -> dict[str, float]:
    import asyncio
    import time

    import aiohttp

    assert isinstance(session, aiohttp.ClientSession)
    assert callable(create)
    delays: list[float] = []
    started = asyncio.Event()
    waiting = 0
    async with session.get(f"{base}?limit=1") as response:
        version = json.loads(await response.read())["metadata"]["resourceVersion"]

    async def watcher() -> int:
        nonlocal waiting
        seen = 0
        url = f"{base}?watch=1&resourceVersion={version}&timeoutSeconds=60"
        async with session.get(url, timeout=aiohttp.ClientTimeout(total=90), read_bufsize=1 << 20) as response:
            waiting += 1
            if waiting == 100:
                started.set()
            async for line in response.content:
                sent = json.loads(line)["object"]["metadata"]["annotations"]["sent"]
                delays.append(time.time() - float(sent))
                seen += 1
                if seen == count:
                    break
        return seen

    watchers = [asyncio.ensure_future(watcher()) for _ in range(100)]
    await asyncio.wait_for(started.wait(), 30)
    began = time.perf_counter()
    for number in range(count):
        await create(f"w{number}", {"sent": f"{time.time():.6f}"})
        await asyncio.sleep(max(0.0, (number + 1) / 200 - (time.perf_counter() - began)))
    seen = await asyncio.wait_for(asyncio.gather(*watchers), 60)
    delays.sort()
    return {"p99_ms": delays[int(len(delays) * 0.99)] * 1000, "lost": 100.0 * count - sum(seen)}


if __name__ == "__main__":
    import asyncio

    print(json.dumps(asyncio.run(_load(sys.argv[1], sys.argv[2], int(sys.argv[3])))))
