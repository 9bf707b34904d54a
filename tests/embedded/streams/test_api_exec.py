"""exec and cp as kubectl does them, over WebSockets and over SPDY, and as other clients do."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import pty
import signal
import struct
from pathlib import Path

import aiohttp
import pytest

from embedded.streams.shop import FORMS, Shop, collect, used, websocket
from harness import PATIENCE, eventually
from paddlecloud.kube.resource import PODS
from paddlecloud.local.apiserver.streaming import channels

FOREVER = f"4711.{os.getpid()}"  # unlike the programs of any other test run on the machine


@FORMS
async def test_exec_carries_every_stream_and_the_exit_code(shop: Shop, websockets: str) -> None:
    await shop.pod("sleep 600")
    script = "cat; echo problem >&2; exit 7"
    done = await shop.kubectl("exec", "-i", "pod", "--", "sh", "-c", script, input=b"words", websockets=websockets)
    assert (done.code, done.out) == (7, b"words")
    assert done.err == "problem\ncommand terminated with exit code 7\n"
    plain = await shop.kubectl("exec", "pod", "-c", "main", "--", "hostname", websockets=websockets)
    assert (plain.code, plain.text, plain.err) == (0, "pod\n", "")
    await used(shop, "exec", websockets)


@FORMS
async def test_exec_loses_no_byte_of_large_streams(shop: Shop, websockets: str) -> None:
    await shop.pod("sleep 600")
    data = os.urandom(6 << 20)
    done = await shop.kubectl("exec", "-i", "pod", "--", "cat", input=data, websockets=websockets)
    assert hashlib.sha256(done.out).digest() == hashlib.sha256(data).digest()


@FORMS
async def test_a_terminal_has_the_size_of_the_users(shop: Shop, websockets: str) -> None:
    import fcntl
    import termios

    await shop.pod("sleep 600")
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 101, 0, 0))
    command = "i=0; while [ \"$(stty size)\" != '33 101' ] && [ $i -lt 100 ]; do sleep 0.05; i=$((i+1)); done; "
    command += "stty size; tty; echo oops >&2; exit 5"
    started = await shop.start(
        "exec", "-it", "pod", "--", "sh", "-c", command,
        websockets=websockets, stdin=slave, stdout=slave, stderr=slave,
    )  # fmt: skip
    os.close(slave)
    assert await asyncio.wait_for(started.wait(), PATIENCE) == 5
    shown = os.read(master, 65536).decode()
    os.close(master)
    assert "33 101\r\n/dev/pts/" in shown
    assert "oops" in shown


async def test_exec_that_cannot_be_says_why(shop: Shop) -> None:
    await shop.machine.run("true")
    await shop.machine.phase("pod", "Succeeded")
    ended = await shop.kubectl("exec", "pod", "--", "true")
    assert ended.code == 1
    assert "cannot exec into a container in a completed pod; current phase is Succeeded" in ended.err
    await shop.pod("sleep 600", name="alive")
    unknown = await shop.kubectl("exec", "alive", "-c", "none", "--", "true")
    assert "container none is not valid for pod alive" in unknown.err + unknown.text
    missing = await shop.kubectl("exec", "alive", "--", "no-such-program")
    assert missing.code != 0
    assert "no-such-program" in missing.err
    bare = await shop.raw("GET", "/api/v1/namespaces/default/pods/alive/exec?command=true&stdout=1")
    assert (bare.status, bare.json["message"]) == (400, "Upgrade request required")


async def test_exec_needs_the_right_to(shop: Shop) -> None:
    await shop.pod("sleep 600")
    refused = await shop.kubectl("exec", "pod", "--as=nobody", "--", "true")
    assert refused.code == 1
    assert "cannot" in refused.err
    assert "pods" in refused.err


@FORMS
async def test_a_program_ends_when_its_user_leaves(shop: Shop, websockets: str) -> None:
    await shop.pod("sleep 600")
    started = await shop.start("exec", "pod", "--", "sh", "-c", f"echo $$; exec sleep {FOREVER}", websockets=websockets)
    assert started.stdout is not None
    await asyncio.wait_for(started.stdout.readline(), PATIENCE)
    await eventually(_sleepers)
    started.send_signal(signal.SIGKILL)
    await started.wait()
    await eventually(_sleepers, [])


def _sleepers() -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cmdline").read_bytes() == b"sleep\x00%s\x00" % FOREVER.encode():
                found.append(entry.name)
        except OSError:
            continue  # it ended while we looked
    return found


@FORMS
async def test_files_are_copied_both_ways(shop: Shop, tmp_path: Path, websockets: str) -> None:
    await shop.pod("sleep 600")
    source = tmp_path / "source"
    source.mkdir()
    (source / "data").write_bytes(os.urandom(2 << 20))
    (source / "with space").write_text("words")
    there = await shop.kubectl("cp", str(source), "pod:/tmp/there", websockets=websockets)
    assert there.code == 0, there.err
    back = await shop.kubectl("cp", "pod:/tmp/there", str(tmp_path / "back"), websockets=websockets)
    assert back.code == 0, back.err
    for name in ("data", "with space"):
        assert (tmp_path / "back" / name).read_bytes() == (source / name).read_bytes()


EXEC = "/api/v1/namespaces/default/pods/pod/exec?command=sh&command=-c&command={}&stdout=1&stderr=1"


@pytest.mark.parametrize("protocol", ["v5.channel.k8s.io", "v4.channel.k8s.io", "channel.k8s.io"])
async def test_the_versions_of_the_channel_protocol(shop: Shop, protocol: str) -> None:
    await shop.pod("sleep 600")
    path = EXEC.format("echo%20out;%20echo%20err%20%3E%262;%20exit%203")
    async with websocket(shop, path, protocol) as socket:
        assert socket.protocol == protocol
        found = await collect(socket)
    status = found.pop(3, b"")
    assert found == {1: b"out\n", 2: b"err\n"}
    if protocol == "channel.k8s.io":
        assert status == b""
        return
    assert json.loads(status) == {
        "metadata": {},
        "status": "Failure",
        "message": "command terminated with non-zero exit code: error executing command, exit code 3",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": "3"}]},
    }


async def test_version_five_can_close_stdin_alone(shop: Shop) -> None:
    await shop.pod("sleep 600")
    async with websocket(shop, EXEC.format("cat;%20echo%20done") + "&stdin=1", "v5.channel.k8s.io") as socket:
        await socket.send_bytes(b"\x00some")
        await socket.send_bytes(b"\x00thing\n")
        await socket.send_bytes(b"\xff\x00")
        found = await collect(socket)
    assert found[1] == b"something\ndone\n"
    assert json.loads(found[3])["status"] == "Success"


async def test_output_waits_until_the_client_has_answered_pings(shop: Shop) -> None:
    """kubectl up to 1.32 discards what comes before it has made its streams; it answers pings at that time."""
    await shop.pod("sleep 600")
    async with websocket(shop, EXEC.format("echo%20out"), "v5.channel.k8s.io", autoping=False) as socket:
        for _ in range(2):
            ping = await asyncio.wait_for(socket.receive(), PATIENCE)
            assert ping.type is aiohttp.WSMsgType.PING
            await socket.pong(ping.data)
        assert (await collect(socket))[1] == b"out\n"


async def test_a_client_that_answers_no_ping_gets_its_output_later(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "_PATIENCE", 0.05)
    await shop.pod("sleep 600")
    async with websocket(shop, EXEC.format("echo%20out"), "v5.channel.k8s.io", autoping=False) as socket:
        ping = await asyncio.wait_for(socket.receive(), PATIENCE)
        assert ping.type is aiohttp.WSMsgType.PING
        assert (await collect(socket))[1] == b"out\n"


async def test_a_protocol_that_is_not_supported_is_refused(shop: Shop) -> None:
    await shop.pod("sleep 600")
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        async with websocket(shop, EXEC.format("true"), "v9.channel.k8s.io"):
            raise AssertionError("it was accepted")
    assert refused.value.status == 403


async def test_conversations_are_in_the_audit_log(shop: Shop) -> None:
    await shop.pod("sleep 600")
    await shop.kubectl("exec", "pod", "--", "true")
    await shop.machine.client.get(PODS, "pod", "default")
    shop.machine.platform.audit.flush()
    lines = [json.loads(line) for line in (shop.machine.data / "audit.log").read_text().splitlines()]
    [entry] = [line for line in lines if line.get("objectRef", {}).get("subresource") == "exec"]
    assert (entry["verb"], entry["responseStatus"]["code"]) == ("get", 101)
    assert "command" not in entry["requestURI"]
