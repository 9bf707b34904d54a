"""Logs, exec, cp, attach and port-forward as kubectl does them, over WebSockets and over SPDY."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
import pty
import re
import signal
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from embedded.raw import Raw, raw_client
from harness import PATIENCE, eventually
from paddlecloud.cli import machine as local
from paddlecloud.kube.resource import PODS
from unit.kubelet.machine import TestMachine, is_ready, running_machine, shell_pod, waiting_reason

FOREVER = f"4711.{os.getpid()}"  # unlike the programs of any other test run on the machine
FORMS = pytest.mark.parametrize("websockets", ["true", "false"], ids=["websocket", "spdy"])


@dataclass(frozen=True)
class Done:
    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode()


@dataclass
class Shop:
    """A machine with real pods, and kubectl pointed at it."""

    machine: TestMachine
    raw: Raw
    env: dict[str, str]
    binary: str

    async def start(self, *args: str, websockets: str = "true", **options: Any) -> asyncio.subprocess.Process:
        env = {
            **self.env,
            "KUBECTL_REMOTE_COMMAND_WEBSOCKETS": websockets,
            "KUBECTL_PORT_FORWARD_WEBSOCKETS": websockets,
        }
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(
            self.binary, *args, env=env, **{"stdin": pipe, "stdout": pipe, "stderr": pipe, **options}
        )

    async def kubectl(self, *args: str, input: bytes = b"", websockets: str = "true") -> Done:
        process = await self.start(*args, websockets=websockets)
        out, err = await asyncio.wait_for(process.communicate(input), PATIENCE)
        return Done(int(process.returncode or 0), out, err.decode())

    async def pod(self, script: str, **fields: Any) -> None:
        await self.machine.run(script, **fields)
        await self.machine.until(fields.get("name", "pod"), is_ready)


@pytest.fixture
async def shop(tmp_path: Path, kubectl_binary: str) -> AsyncIterator[Shop]:
    async with running_machine(tmp_path / "data") as machine, raw_client(machine.platform) as raw:
        platform = machine.platform
        platform.serve_streams(machine.streams)
        ca = base64.b64encode(platform.certs.ca_cert.read_bytes()).decode()
        config = tmp_path / "kubeconfig"
        config.write_text(json.dumps(local.kubeconfig(url=platform.url, ca=ca, token=raw.admin)))
        env = {**os.environ, "KUBECONFIG": str(config), "HOME": str(tmp_path)}
        yield Shop(machine, raw, env, kubectl_binary)


# --- logs ---


async def test_every_option_of_logs(shop: Shop) -> None:
    await shop.machine.run("for i in 1 2 3 4; do echo line $i; done; echo oops >&2")
    await shop.machine.phase("pod", "Succeeded")
    whole = "line 1\nline 2\nline 3\nline 4\noops\n"
    table = [
        ([], whole),
        (["-c", "main"], whole),
        (["--tail=2"], "line 4\noops\n"),
        (["--tail=0"], ""),
        (["--limit-bytes=9"], whole[:9]),
        (["--since=1h"], whole),
        (["--since-time=2099-01-01T00:00:00Z"], ""),
        (["-f"], whole),
        (["-l", "!none"], whole),
    ]
    for options, wanted in table:
        target = [] if options[:1] == ["-l"] else ["pod"]
        assert (await shop.kubectl("logs", *target, *options)).text == wanted, options
    stamped = (await shop.kubectl("logs", "pod", "--timestamps", "--tail=1")).text
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z oops\n", stamped)
    only = await shop.raw("GET", "/api/v1/namespaces/default/pods/pod/log?stream=Stderr")
    assert (only.body, only.headers["Content-Type"]) == (b"oops\n", "text/plain")


async def test_followed_logs_come_as_they_are_printed_and_end_with_the_container(shop: Shop) -> None:
    await shop.pod("echo first; read line < /shared/go; echo last", **_gate(shop))
    following = await shop.start("logs", "-f", "pod")
    assert following.stdout is not None
    assert await asyncio.wait_for(following.stdout.readline(), PATIENCE) == b"first\n"
    (shop.machine.data / "gate" / "go").write_text("now\n")
    out, _ = await asyncio.wait_for(following.communicate(), PATIENCE)
    assert (following.returncode, out) == (0, b"last\n")


def _gate(shop: Shop) -> dict[str, Any]:
    """A named pipe that a container waits on until the test writes to it."""
    folder = shop.machine.data / "gate"
    folder.mkdir()
    os.mkfifo(folder / "go")
    return {
        "volumes": [{"name": "gate", "hostPath": {"path": str(folder)}}],
        "container": {"volumeMounts": [{"name": "gate", "mountPath": "/shared"}]},
    }


async def test_a_reader_that_leaves_is_not_waited_for(shop: Shop) -> None:
    await shop.pod("echo first; sleep 600")
    before = len(asyncio.all_tasks())
    following = await shop.start("logs", "-f", "pod")
    assert following.stdout is not None
    await asyncio.wait_for(following.stdout.readline(), PATIENCE)
    assert len(asyncio.all_tasks()) > before
    following.kill()
    await following.wait()
    await eventually(lambda: len(asyncio.all_tasks()), lambda left: left <= before)


async def test_previous_logs(shop: Shop) -> None:
    await shop.machine.run("echo run; exit 1", policy="OnFailure")
    await shop.machine.until("pod", lambda pod: waiting_reason(pod) == "CrashLoopBackOff")
    assert (await shop.kubectl("logs", "pod", "--previous")).text == "run\n"


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        ("tailLines=-1", 422, "tailLines: Invalid value: -1: must be greater than or equal to 0"),
        ("limitBytes=0", 422, "limitBytes: Invalid value: 0: must be greater than or equal to 1"),
        ("sinceSeconds=5&sinceTime=2024-01-01T00:00:00Z", 422, "at most one of `sinceTime` or `sinceSeconds`"),
        ("sinceTime=yesterday", 400, "is not a time"),
        ("tailLines=some", 400, "expected a whole number"),
        ("follow=maybe", 400, "expected true or false"),
        ("container=none", 400, "container none is not valid for pod pod"),
        ("previous=true", 400, 'previous terminated container "main" in pod "pod" not found'),
    ],
)
async def test_logs_that_cannot_be_read_say_why(shop: Shop, query: str, code: int, message: str) -> None:
    await shop.pod("sleep 600")
    reply = await shop.raw("GET", f"/api/v1/namespaces/default/pods/pod/log?{query}")
    assert reply.status == code
    assert message in reply.json["message"]


async def test_pods_that_are_nowhere_have_no_logs(shop: Shop) -> None:
    missing = await shop.raw("GET", "/api/v1/namespaces/default/pods/none/log")
    assert (missing.status, missing.json["reason"]) == (404, "NotFound")
    unplaced = shell_pod("true", name="unplaced")
    del unplaced["spec"]["nodeName"]
    await shop.machine.create(unplaced)
    reply = await shop.raw("GET", "/api/v1/namespaces/default/pods/unplaced/log")
    assert (reply.status, reply.json["message"]) == (400, "pod unplaced does not have a host assigned")


# --- exec ---


@FORMS
async def test_exec_carries_every_stream_and_the_exit_code(shop: Shop, websockets: str) -> None:
    await shop.pod("sleep 600")
    script = "cat; echo problem >&2; exit 7"
    done = await shop.kubectl("exec", "-i", "pod", "--", "sh", "-c", script, input=b"words", websockets=websockets)
    assert (done.code, done.out) == (7, b"words")
    assert done.err == "problem\ncommand terminated with exit code 7\n"
    plain = await shop.kubectl("exec", "pod", "-c", "main", "--", "hostname", websockets=websockets)
    assert (plain.code, plain.text, plain.err) == (0, "pod\n", "")
    await _used(shop, "exec", websockets)


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


async def test_attach_shows_what_is_printed_from_now_on(shop: Shop) -> None:
    await shop.pod("echo before; read line < /shared/go; echo after; echo wrong >&2", **_gate(shop))
    await shop.machine.printed("pod", "before")
    attached = await shop.start("attach", "pod")
    await _answered(shop, 'subresource="attach",code="101"')
    (shop.machine.data / "gate" / "go").write_text("now\n")
    out, err = await asyncio.wait_for(attached.communicate(), PATIENCE)
    assert (attached.returncode, out) == (0, b"after\n")
    assert b"wrong" in err


@pytest.mark.parametrize("websockets", ["true", "false"])
async def test_a_container_with_an_input_reads_what_a_client_types(shop: Shop, websockets: str) -> None:
    reads = "while read line; do echo got $line; done; echo over"
    await shop.pod(reads, container={"stdin": True, "stdinOnce": True})
    done = await shop.kubectl("attach", "-i", "pod", input=b"one\ntwo\n", websockets=websockets)
    assert (done.code, done.text) == (0, "got one\ngot two\nover\n"), done.err
    await shop.machine.phase("pod", "Succeeded")


async def test_an_input_that_may_be_joined_again_outlives_a_client(shop: Shop) -> None:
    await shop.pod("while read line; do echo got $line; done", container={"stdin": True})
    for word in (b"one", b"two"):
        attached = await shop.start("attach", "-i", "pod")
        assert attached.stdin is not None
        assert attached.stdout is not None
        attached.stdin.write(word + b"\n")
        assert await asyncio.wait_for(attached.stdout.readline(), PATIENCE) == b"got " + word + b"\n"
        attached.kill()
        await attached.communicate()
    assert (await shop.kubectl("logs", "pod")).text == "got one\ngot two\n"


async def test_a_container_with_a_terminal_has_one(shop: Shop) -> None:
    script = "test -t 0 && test -t 1 && echo terminal $(stty size); read line; echo got $line"
    await shop.pod("read go; " + script, container={"stdin": True, "tty": True})
    attached = await shop.start("attach", "-i", "pod")
    assert attached.stdin is not None
    attached.stdin.write(b"go\nword\n")
    out, _ = await asyncio.wait_for(attached.communicate(), PATIENCE)
    assert b"terminal 0 0\r\n" in out
    assert b"got word\r\n" in out


async def test_a_container_without_an_input_reads_nothing(shop: Shop) -> None:
    await shop.pod("cat; echo over; sleep 600")
    await shop.machine.printed("pod", "over")
    attached = await shop.start("attach", "-i", "pod")
    await _answered(shop, 'subresource="attach",code="101"')
    attached.kill()
    await attached.communicate()


async def test_run_gives_a_program_its_input_and_takes_its_output(shop: Shop) -> None:
    """What `kubectl run -i --rm` users type; the node is named because nobody schedules here."""
    overrides = json.dumps({"spec": {"nodeName": "node-1"}})
    command = ("run", "one", "-i", "--rm", "--quiet", "--restart=Never", "--image=busybox", f"--overrides={overrides}")
    done = await shop.kubectl(*command, "--command", "--", "sort", input=b"b\na\n")
    assert (done.code, done.text) == (0, "a\nb\n"), done.err


async def _used(shop: Shop, subresource: str, websockets: str) -> None:
    """A WebSocket is asked for by GET, SPDY by POST."""
    verb = "GET" if websockets == "true" else "POST"
    labels = f'verb="{verb}",group="",version="v1",resource="pods",subresource="{subresource}"'
    await _answered(shop, f'{labels},code="101"')


async def _answered(shop: Shop, labels: str) -> None:
    await eventually(shop.machine.platform.metrics.registry.render, lambda text: labels in text)


# --- other clients of exec ---


@asynccontextmanager
async def websocket(shop: Shop, path: str, *protocols: str) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    headers = {"Authorization": f"Bearer {shop.raw.admin}"}
    async with shop.raw.session.ws_connect(shop.raw.url + path, protocols=protocols, headers=headers) as socket:
        yield socket


async def collect(socket: aiohttp.ClientWebSocketResponse) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    while True:
        message = await asyncio.wait_for(socket.receive(), PATIENCE)
        if message.type is not aiohttp.WSMsgType.BINARY:
            return found
        found[message.data[0]] = found.get(message.data[0], b"") + message.data[1:]


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


async def test_a_protocol_nobody_speaks_is_refused(shop: Shop) -> None:
    await shop.pod("sleep 600")
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        async with websocket(shop, EXEC.format("true"), "v9.channel.k8s.io"):
            raise AssertionError("it was accepted")
    assert refused.value.status == 403


# --- port-forward ---

SERVER = """
import http.server, os
class Echo(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers()
        self.wfile.write(body[::-1])
    def log_message(self, *args): pass
http.server.ThreadingHTTPServer(("0.0.0.0", 8080), Echo).serve_forever()
"""


@asynccontextmanager
async def forwarded(shop: Shop, port: int, websockets: str) -> AsyncIterator[tuple[int, asyncio.subprocess.Process]]:
    """A local port that leads to a port of the pod."""
    process = await shop.start("port-forward", "pod/pod", f":{port}", "--address=127.0.0.1", websockets=websockets)
    assert process.stdout is not None
    line = (await asyncio.wait_for(process.stdout.readline(), PATIENCE)).decode()
    found = re.match(r"Forwarding from 127\.0\.0\.1:(\d+) -> ", line)
    assert found, line
    try:
        yield int(found[1]), process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@FORMS
async def test_forwarded_ports_carry_many_connections_at_once(shop: Shop, websockets: str) -> None:
    await shop.pod("", container={"image": "python", "command": ["python3", "-c", SERVER], **_ready(8080)})
    async with forwarded(shop, 8080, websockets) as (port, _), aiohttp.ClientSession() as session:

        async def reverse(body: bytes) -> bool:
            async with session.post(f"http://127.0.0.1:{port}/", data=body) as response:
                return await response.read() == body[::-1]

        bodies = [os.urandom(1 << size) for size in range(4, 22, 2)]
        assert all(await asyncio.wait_for(asyncio.gather(*map(reverse, bodies)), PATIENCE))
    await _used(shop, "portforward", websockets)


def _ready(port: int) -> dict[str, Any]:
    return {"readinessProbe": {"tcpSocket": {"port": port}, "periodSeconds": 1}}


@FORMS
async def test_a_port_nobody_listens_on_is_told(shop: Shop, websockets: str) -> None:
    await shop.pod("sleep 600")
    async with forwarded(shop, 9, websockets) as (port, process):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await asyncio.wait_for(reader.read(), PATIENCE) == b""
        writer.close()
        _, err = await asyncio.wait_for(process.communicate(), PATIENCE)
    assert b"error forwarding port 9 to pod default/pod" in err


async def test_the_channel_form_of_port_forward(shop: Shop) -> None:
    await shop.pod("", container={"image": "python", "command": ["python3", "-c", SERVER], **_ready(8080)})
    path = "/api/v1/namespaces/default/pods/pod/portforward?ports=8080"
    async with websocket(shop, path, "v4.channel.k8s.io") as socket:
        for channel in (0, 1):
            message = await asyncio.wait_for(socket.receive(), PATIENCE)
            assert message.data == bytes([channel]) + struct.pack("<H", 8080)
        request = b"POST / HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc"
        await socket.send_bytes(b"\x00" + request)
        found = await collect(socket)
    assert found[0].endswith(b"\r\n\r\ncba")


GREETING = """
import socket
listening = socket.create_server(("0.0.0.0", 8080))
while True:
    connection, _ = listening.accept()
    connection.sendall(b"220 ready\\r\\n")
"""
"""A server that speaks first, as those of mail and many databases do."""


@FORMS
async def test_a_forwarded_server_may_speak_first(shop: Shop, websockets: str) -> None:
    await shop.pod("", container={"image": "python", "command": ["python3", "-c", GREETING], **_ready(8080)})
    async with forwarded(shop, 8080, websockets) as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await asyncio.wait_for(reader.readline(), PATIENCE) == b"220 ready\r\n"
        writer.close()


async def test_a_server_may_speak_first_in_the_channel_form(shop: Shop) -> None:
    await shop.pod("", container={"image": "python", "command": ["python3", "-c", GREETING], **_ready(8080)})
    path = "/api/v1/namespaces/default/pods/pod/portforward?ports=8080"
    async with websocket(shop, path, "v4.channel.k8s.io") as socket:
        messages = [(await asyncio.wait_for(socket.receive(), PATIENCE)).data for _ in range(3)]
    assert messages[2] == b"\x00220 ready\r\n"


async def test_ports_of_a_pod_that_does_not_run_are_not_forwarded(shop: Shop) -> None:
    await shop.machine.run("true")
    await shop.machine.phase("pod", "Succeeded")
    refused = await shop.kubectl("port-forward", "pod/pod", ":80")
    assert refused.code == 1
    assert "pod is not running" in refused.err


async def test_conversations_are_in_the_audit_log(shop: Shop) -> None:
    await shop.pod("sleep 600")
    await shop.kubectl("exec", "pod", "--", "true")
    await shop.machine.client.get(PODS, "pod", "default")
    shop.machine.platform.audit.flush()
    lines = [json.loads(line) for line in (shop.machine.data / "audit.log").read_text().splitlines()]
    [entry] = [line for line in lines if line.get("objectRef", {}).get("subresource") == "exec"]
    assert (entry["verb"], entry["responseStatus"]["code"]) == ("get", 101)
    assert "command" not in entry["requestURI"]
