"""The control plane's end of the gateways."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
from pathlib import Path

import pytest

from harness import PATIENCE, eventually
from paddlecloud.local.knative.gateway.sockets import connect_unix
from paddlecloud.local.knative.reservations import Reservations
from paddlecloud.local.knative.supervisor import Gateways

NOBODY = 1 << 23
"""A number that no process has."""


async def test_a_gateway_that_comes_back_gets_everything_at_once(tmp_path: Path) -> None:
    """One that got an empty table would answer 404 until the first route is published again."""
    gateways = supervisor(tmp_path / "gateway")
    published = {"host:a.example.com": [["default/a", 100]]}
    control = tmp_path / "gateway" / "control"

    def fill() -> None:
        assert not control.exists(), "nobody can ask yet"
        gateways.publish(published)

    await gateways.ensure(fill)
    try:
        reader, writer = await connect_unix(str(control))
        hello = {"pid": NOBODY, "number": 7, "port": gateways.port}
        writer.write(json.dumps({"hello": hello}).encode() + b"\n")
        assert json.loads(await reader.readline()) == {"all": published, "version": 1}
        writer.close()
    finally:
        await gateways.stop(processes=True)


def supervisor(folder: Path) -> Gateways:
    return Gateways(folder, changed=lambda: None, report=lambda report: None, wake=lambda name: None, count=1)


async def test_ports_of_routes_stay_theirs_over_a_restart_and_are_free_when_released(tmp_path: Path) -> None:
    first = supervisor(tmp_path / "gateway")
    await first.ensure()
    held = first.hold_ports(["ns/one", "ns/two"])
    one, two = held["ns/one"], held["ns/two"]
    assert first.hold_ports(["ns/one"]) == {"ns/one": one}
    assert one != two
    first.release_ports(["ns/two", "ns/never"])
    await first.stop(processes=True)
    second = supervisor(tmp_path / "gateway")
    await second.ensure()
    assert second.ports == {"ns/one": one}
    await second.stop(processes=True)
    with socket.socket() as squatter:
        squatter.bind(("127.0.0.1", one))
        squatter.listen()
        third = supervisor(tmp_path / "gateway")
        await third.ensure()
        assert third.ports["ns/one"] != one, "somebody else has it now"
        await third.stop(processes=True)


def test_a_port_on_which_no_gateway_listens_yet_cannot_be_taken_by_others(tmp_path: Path) -> None:
    """Linux lets every user bind a port where nobody listens if all who hold it set SO_REUSEADDR."""
    reservations = Reservations(tmp_path)
    shared = reservations.take()
    try:
        for port in (*shared, *reservations.hold(["ns/one"]).values()):
            for address in ("127.0.0.1", "0.0.0.0"):
                with socket.socket() as thief:
                    thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    with pytest.raises(OSError, match="in use"):
                        thief.bind((address, port))
    finally:
        reservations.close()


def test_ports_are_chosen_below_what_the_kernel_gives_to_outgoing_connections(tmp_path: Path) -> None:
    """Another program's connection could otherwise have the port when the platform comes back."""
    held = [Reservations(tmp_path / name) for name in ("one", "other")]
    ports: list[int] = []
    try:
        for number, reservations in enumerate(held):
            (tmp_path / ("one", "other")[number]).mkdir()
            ports += [*reservations.take(), *reservations.hold(["ns/a", "ns/b"]).values()]
    finally:
        for reservations in held:
            reservations.close()
    assert all(port in range(20_000, 30_000) for port in ports), ports
    assert len(set(ports)) == 8, "two platforms of one user share none"


def test_routes_beyond_the_most_ports_have_none_until_one_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paddlecloud.local.knative.reservations.MOST", 4)
    reservations = Reservations(tmp_path)
    reservations.take()
    try:
        assert set(reservations.hold(["ns/a", "ns/b", "ns/c"])) == {"ns/a", "ns/b"}
        assert set(reservations.hold(["other/d", "other/e"])) == {"other/d", "other/e"}, "ns has its half, and no more"
        assert reservations.hold(["third/f"]) == {}, "all are given out"
        reservations.release(["ns/a"])
        assert set(reservations.hold(["third/f"])) == {"third/f"}
    finally:
        reservations.close()


async def test_a_gateway_of_an_earlier_release_is_replaced(tmp_path: Path) -> None:
    """It does not listen on the ports of routes."""
    gateways = supervisor(tmp_path / "gateway")
    await gateways.ensure()
    await eventually(lambda: gateways.ready)
    earlier = await asyncio.create_subprocess_exec("sleep", "600")
    try:
        _, writer = await connect_unix(str(tmp_path / "gateway" / "control"))
        hello = {"pid": earlier.pid, "number": 7, "port": gateways.port, "listening": True}
        writer.write(json.dumps({"hello": hello}).encode() + b"\n")
        assert await asyncio.wait_for(earlier.wait(), PATIENCE) == -signal.SIGTERM
        writer.close()
    finally:
        if earlier.returncode is None:
            earlier.kill()
        await gateways.stop(processes=True)
