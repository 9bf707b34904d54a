"""Both HTTP transports against a real server on loopback: bytes, headers, errors, streams, connection reuse."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from paddlecloud.kube.config import Config
from paddlecloud.kube.credentials import Credential, Static, TokenFile
from paddlecloud.kube.errors import ApiError, Forbidden, Unreachable
from paddlecloud.kube.http import HttpTransport
from paddlecloud.kube.stdlib import StdlibTransport, drive, drive_iter
from paddlecloud.kube.transport import Transport

ENDLESS = 256 << 20


class Server(ThreadingHTTPServer):
    """Remembers what it was asked; answers by path."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen: list[tuple[str, str, dict[str, str], bytes]] = []
        self.connections = 0
        self.hung_up = threading.Event()
        self.sent = 0
        self.token = "secret"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def process_request(self, request, client_address) -> None:  # type: ignore[no-untyped-def]
        self.connections += 1
        super().process_request(request, client_address)

    def shutdown_request(self, request) -> None:  # type: ignore[no-untyped-def]
        super().shutdown_request(request)
        self.hung_up.set()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def _any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.seen.append((self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body))
        path = urlsplit(self.path).path
        if self.headers.get("Authorization") != f"Bearer {self.server.token}":
            self._answer(401, b'{"kind":"Status","reason":"Unauthorized","message":"who are you?","code":401}')
        elif path.endswith("/forbidden"):
            self._answer(403, b'{"kind":"Status","reason":"Forbidden","message":"no","code":403}')
        elif path.endswith("/stream"):
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for piece in (b'{"n":', b"1}\n{}\n", b'{"n":3}\n'):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.flush()
            if "break" not in parse_qs(urlsplit(self.path).query):
                self.wfile.write(b"0\r\n\r\n")
            else:
                self.close_connection = True
        elif path.endswith("/endless"):
            self.send_response(500)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            with contextlib.suppress(OSError):
                for _ in range(ENDLESS >> 16):
                    self.wfile.write(b"10000\r\n%s\r\n" % (b"x" * 65536))
                    self.server.sent += 65536
            self.close_connection = True
        elif path.endswith("/hangup"):
            self._answer(200, b"{}")
            self.close_connection = True
        elif path.endswith("/drop"):
            self.close_connection = True
        else:
            self._answer(200, b'{"ok":true}')

    do_GET = do_POST = do_PATCH = do_DELETE = _any

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Warning", '299 - "first"')
        self.send_header("Warning", '299 - "second"')
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Tests stay quiet."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def config_for(server: Server) -> Config:
    return Config(server.url, source=Static(Credential("Bearer secret")))


@contextlib.asynccontextmanager
async def opened(kind: type[HttpTransport] | type[StdlibTransport], config: Config) -> AsyncIterator[Transport]:
    transport = kind(config)
    try:
        yield transport
    finally:
        await transport.close()


both = pytest.mark.parametrize("kind", [HttpTransport, StdlibTransport])


@both
async def test_a_request_arrives_whole_and_the_answer_comes_back(server: Server, kind: type[HttpTransport]) -> None:
    async with opened(kind, config_for(server)) as transport:
        response = await transport.request(
            "PATCH",
            "/api/v1/namespaces/a b/pods/x:y?z",
            query={"labelSelector": "a in (b,c)", "force": "true"},
            body=b'{"x":1}',
            content_type="application/merge-patch+json",
        )
    assert (response.status, response.body) == (200, b'{"ok":true}')
    assert response.headers["warning"] == '299 - "first", 299 - "second"'
    method, path, headers, body = server.seen[0]
    assert (method, body) == ("PATCH", b'{"x":1}')
    assert path.split("?")[0] == "/api/v1/namespaces/a%20b/pods/x:y%3Fz"
    assert parse_qs(urlsplit(path).query) == {"labelSelector": ["a in (b,c)"], "force": ["true"]}
    assert headers["content-type"] == "application/merge-patch+json"
    assert headers["accept"] == "application/json"
    assert headers["user-agent"].startswith("paddlecloud/")


@both
async def test_a_connection_is_reused(server: Server, kind: type[HttpTransport]) -> None:
    async with opened(kind, config_for(server)) as transport:
        for _ in range(5):
            await transport.request("POST", "/x", body=b"{}")
    assert server.connections == 1


@both
async def test_a_connection_the_server_closed_is_not_written_into(server: Server, kind: type[HttpTransport]) -> None:
    async with opened(kind, config_for(server)) as transport:
        await transport.request("GET", "/hangup")
        assert await asyncio.to_thread(server.hung_up.wait, 5)
        assert (await transport.request("POST", "/x", body=b"{}")).status == 200
    assert [seen[0] for seen in server.seen] == ["GET", "POST"]


@both
async def test_a_stream_yields_what_was_sent_and_ends_with_the_server(
    server: Server, kind: type[HttpTransport]
) -> None:
    async with opened(kind, config_for(server)) as transport:
        chunks = [chunk async for chunk in transport.stream("/stream")]
    assert b"".join(chunks) == b'{"n":1}\n{}\n{"n":3}\n'


@both
async def test_a_broken_stream_is_an_error_not_an_end(server: Server, kind: type[HttpTransport]) -> None:
    async with opened(kind, config_for(server)) as transport:
        with pytest.raises(Unreachable):
            async for _ in transport.stream("/stream", query={"break": "1"}):
                pass


@both
async def test_a_refused_stream_raises_the_typed_error(server: Server, kind: type[HttpTransport]) -> None:
    async with opened(kind, config_for(server)) as transport:
        with pytest.raises(Forbidden, match="no"):
            await transport.stream("/forbidden").__anext__()


@both
async def test_a_refused_request_is_an_answer(server: Server, kind: type[HttpTransport]) -> None:
    async with opened(kind, config_for(server)) as transport:
        assert (await transport.request("GET", "/forbidden")).status == 403


@both
async def test_no_answer_names_the_server_and_the_next_step(server: Server, kind: type[HttpTransport]) -> None:
    nobody = Config("http://127.0.0.1:9", context="local")  # the discard port: nothing listens
    async with opened(kind, nobody) as transport:
        with pytest.raises(Unreachable, match=r"127\.0\.0\.1:9.*context 'local'"):
            await transport.request("GET", "/x")
    async with opened(kind, config_for(server)) as transport:
        with pytest.raises(Unreachable):
            await transport.request("POST", "/drop", body=b"{}")


@both
async def test_after_a_401_a_renewed_token_is_tried_once(
    server: Server, kind: type[HttpTransport], tmp_path: Path
) -> None:
    path = tmp_path / "token"
    path.write_text("secret\n")
    config = Config(server.url, source=TokenFile(str(path)))
    async with opened(kind, config) as transport:
        assert (await transport.request("GET", "/x")).status == 200
        server.token = "rotated"
        assert (await transport.request("GET", "/x")).status == 401
        path.write_text("rotated")
        assert (await transport.request("GET", "/x")).status == 200
        server.token = "again"
        path.write_text("again")
        assert [chunk async for chunk in transport.stream("/stream")]


def test_drive_runs_the_stdlib_transport_without_an_event_loop(server: Server) -> None:
    transport = StdlibTransport(config_for(server))
    assert drive(transport.request("GET", "/x")).body == b'{"ok":true}'
    assert b"".join(drive_iter(transport.stream("/stream"))).count(b"\n") == 3
    stream = drive_iter(transport.stream("/stream"))
    next(stream)
    stream.close()
    drive(transport.close())


def test_drive_refuses_what_needs_a_loop() -> None:
    with pytest.raises(RuntimeError, match="event loop"):
        drive(asyncio.sleep(1))


async def test_of_a_refusal_without_end_only_the_beginning_is_read(server: Server) -> None:
    """Behind an API server's proxy is a program of anybody."""
    async with opened(HttpTransport, config_for(server)) as transport:
        with pytest.raises(ApiError) as refused:
            _ = [chunk async for chunk in transport.stream("/endless")]
    assert refused.value.code == 500
    assert server.sent < ENDLESS // 2, "read to the end"
