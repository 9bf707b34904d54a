"""Servers of different pods on one port, without changing the programs."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from harness import PATIENCE, eventually
from paddlecloud.local import loopback, lowports
from paddlecloud.local.kubelet.pod.runtime import PodRuntime
from unit.local.kubelet.conftest import ShimHarness, output

PYTHON = sys.executable

SERVER = """
import socket, sys, time
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
server = socket.socket(family, socket.SOCK_STREAM)
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind((sys.argv[1], int(sys.argv[2])))
server.listen()
print(server.getsockname()[0], flush=True)
while True:
    client, _ = server.accept()
    client.sendall(sys.argv[3].encode())
    client.close()
"""


async def serve(
    shims: ShimHarness,
    name: str,
    ip: str,
    host: str,
    port: int,
    *,
    forbid: str = "",
    python: str = PYTHON,
    **fields: Any,
) -> tuple[Path, PodRuntime]:
    root = shims.pod_dir(name, ip=ip, forbid=forbid)
    runtime = await shims.spawn(root)
    argv = (python, "-c", SERVER, host, str(port), name)
    await runtime.start(shims.container(root, "", argv=argv, bind_ip=ip, **fields))
    await printed(root, runtime)
    return root, runtime


async def printed(root: Path, runtime: PodRuntime) -> None:
    def look() -> str:
        assert runtime.connected
        return output(root)

    await eventually(look)


async def ask(ip: str, port: int) -> str:
    reader, writer = await asyncio.open_connection(ip, port)
    try:
        return (await asyncio.wait_for(reader.read(), PATIENCE)).decode()
    finally:
        writer.close()


@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1", "::", "::1"])
async def test_pods_listen_on_one_port_each_at_its_own_address(
    shims: ShimHarness, host: str, unused_tcp_port: int
) -> None:
    ips = {"first": "127.90.7.1", "second": "127.90.7.2"}
    for name, ip in ips.items():
        root, _ = await serve(shims, name, ip, host, unused_tcp_port)
        assert output(root).strip().removeprefix("::ffff:") == ip
    for name, ip in ips.items():
        assert await ask(ip, unused_tcp_port) == name


@pytest.mark.parametrize("forbid", ["", "root", "root,user"])
async def test_it_works_in_every_sandbox_and_for_other_users(
    shims: ShimHarness, forbid: str, unused_tcp_port: int
) -> None:
    identity = {} if forbid == "root,user" else {"uid": 1234, "gid": 1234}
    python = "/usr/bin/python3"  # an interpreter that other users may run
    if not Path(python).exists():
        python, identity = PYTHON, {}
    for name, ip in (("first", "127.90.7.7"), ("second", "127.90.7.8")):
        await serve(shims, name, ip, "0.0.0.0", unused_tcp_port, forbid=forbid, python=python, **identity)
        assert await ask(ip, unused_tcp_port) == name


async def test_containers_of_a_pod_reach_each_other_at_localhost(shims: ShimHarness, unused_tcp_port: int) -> None:
    await serve(shims, "other", "127.90.7.4", "0.0.0.0", unused_tcp_port)
    root, runtime = await serve(shims, "own", "127.90.7.3", "0.0.0.0", unused_tcp_port)
    client = (
        "import socket; print([socket.create_connection((h, "
        f"{unused_tcp_port})).recv(99).decode() for h in ('127.0.0.1', 'localhost')])"
    )
    spec = shims.container(root, "", name="client", argv=(PYTHON, "-c", client), bind_ip="127.90.7.3")
    await runtime.start(spec)
    await shims.exited(runtime, "client")
    assert output(root, "client").strip() == "['own', 'own']"


async def test_pods_and_services_are_called_from_the_pods_address(shims: ShimHarness) -> None:
    def tell(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(writer.get_extra_info("peername")[0].encode())
        writer.close()

    server = await asyncio.start_server(tell, ("127.90.9.1", "127.0.0.1"), 0)
    (peer, port), (_, local) = sorted((sock.getsockname() for sock in server.sockets), reverse=True)
    script = f"""
import json, socket
from concurrent.futures import ThreadPoolExecutor
def call(host, port, family=socket.AF_INET, source=None, kind=socket.SOCK_STREAM):
    client = socket.socket(family, kind)
    if source:
        client.bind((source, 0))
    client.connect((host, port))
    return client
seen = [
    call("{peer}", {port}).recv(99).decode(),
    call("::ffff:{peer}", {port}, socket.AF_INET6).recv(99).decode(),
    call("{peer}", {port}, source="127.90.8.8").recv(99).decode(),
    call("{peer}", 9, kind=socket.SOCK_DGRAM).getsockname()[0],
    ThreadPoolExecutor().submit(call, "{peer}", {port}).result().recv(99).decode(),
    call("127.0.0.1", {local}).recv(99).decode(),
]
print(json.dumps(seen))
"""
    root = shims.pod_dir("caller", ip="127.90.7.6")
    runtime = await shims.spawn(root)
    async with server:
        await runtime.start(shims.container(root, "", argv=(PYTHON, "-c", script), bind_ip="127.90.7.6"))
        await shims.exited(runtime)
    own = "127.90.7.6"
    assert json.loads(output(root)) == [own, own, "127.90.8.8", own, own, "127.0.0.1"]


async def test_given_a_client_has_a_port_then_a_server_of_the_pod_can_have_it_too(shims: ShimHarness) -> None:
    """Ports of a job's servers lie among those that the kernel gives to clients."""

    def hold(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
        pass

    server = await asyncio.start_server(hold, "127.90.9.2", 0)
    script = f"""
import socket
client = socket.create_connection({server.sockets[0].getsockname()})
own = socket.socket()
own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
own.bind(("0.0.0.0", client.getsockname()[1]))
own.listen()
back = socket.create_connection(own.getsockname())
print(own.getsockname() == client.getsockname(), back.getsockname()[0])
"""
    root = shims.pod_dir("both", ip="127.90.7.5")
    runtime = await shims.spawn(root)
    async with server:
        await runtime.start(shims.container(root, "", argv=(PYTHON, "-c", script), bind_ip="127.90.7.5"))
        await shims.exited(runtime)
    assert output(root).split() == ["True", "127.0.0.1"]


async def test_what_is_no_servers_address_is_left_alone(shims: ShimHarness) -> None:
    """Free ports, other loopback addresses, and servers of the machine at localhost."""

    def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"host")
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    script = f"""
import json, socket
free = socket.socket(); free.bind(("0.0.0.0", 0))
other = socket.socket(); other.bind(("127.90.8.8", 0))
machine = socket.create_connection(("127.0.0.1", {port})).recv(99).decode()
print(json.dumps([free.getsockname()[0], other.getsockname()[0], machine]))
"""
    async with server:
        _, text = await shims.run("", argv=(PYTHON, "-c", script), bind_ip="127.90.7.5")
    assert json.loads(text) == ["0.0.0.0", "127.90.8.8", "host"]


async def test_a_port_taken_at_the_pods_address_is_refused_as_the_kernel_would(
    shims: ShimHarness, unused_tcp_port: int
) -> None:
    script = f"""
import socket
first, second = socket.socket(), socket.socket()
first.bind(("", {unused_tcp_port})); first.listen()
try:
    second.bind(("", {unused_tcp_port}))
except OSError as error:
    print(error.strerror)
"""
    root = shims.pod_dir(ip="127.90.7.6")
    runtime = await shims.spawn(root)
    await runtime.start(shims.container(root, "", argv=(PYTHON, "-c", script), bind_ip="127.90.7.6"))
    await shims.exited(runtime)
    assert output(root).strip() == "Address already in use"


@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1", "own", "::"])
async def test_low_ports_of_ordinary_users_are_listened_on_elsewhere_and_found_there(
    shims: ShimHarness, host: str
) -> None:
    """In a user namespace even root may not have port 80 of the machine: two servers have it all the same."""
    ips = {"first": "127.90.7.9", "second": "127.90.7.10"}
    for name, ip in ips.items():
        await serve(shims, name, ip, ip if host == "own" else host, 80, forbid="root")
        assert await ask(ip, 80 + lowports.SHIFT) == name
    client = (
        "import socket; print([socket.create_connection((h, 80)).recv(99).decode() "
        f"for h in ({ips['first']!r}, {ips['second']!r})])"
    )
    root = shims.pod_dir("client", ip="127.90.7.11", forbid="root")
    runtime = await shims.spawn(root)
    await runtime.start(shims.container(root, "", argv=(PYTHON, "-c", client), bind_ip="127.90.7.11"))
    await shims.exited(runtime)
    assert output(root).strip() == "['first', 'second']"


def test_only_addresses_of_pods_and_services_have_stand_ins() -> None:
    assert set(lowports.NETWORKS) == {*loopback.SERVICES, *loopback.PODS, *loopback.NODES}
    for octets in (loopback.SERVICES, loopback.PODS):
        inside = loopback.network_for("any", octets).network_address.packed
        assert lowports.stand_in(inside, 80, 1024) == 80 + lowports.SHIFT
        assert lowports.stand_in(inside, 8080, 1024) == 8080
        assert lowports.stand_in(inside, 80, 1) == 80, "a program that may listen there does"
    for outside in ("127.0.0.1", "10.32.0.1", "192.168.1.1"):
        assert lowports.stand_in(socket.inet_aton(outside), 80, 1024) == 80
