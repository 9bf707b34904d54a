"""URLs in requests: fetched within limits, and never from inside."""

from __future__ import annotations

import contextlib
import http.server
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlecloud.serving import remote
from paddlecloud.serving.errors import BadInput, Overloaded, ServingError

MOVED = {"/moved": "/picture", "/moved/inside": "http://localhost/", "/moved/nowhere": "http://["}
INSIDE = ["127.0.0.1", "localhost", "[::1]", "169.254.169.254", "10.0.0.1", "[::ffff:10.0.0.1]", "0.0.0.0"]
STRANGE = ["file:///etc/passwd", "ftp://example.com/x", "picture.jpg", "http://", "data:;base64,!",
           "http://[", "http://a:x/", "http://a:99999/", "data://["]  # fmt: skip


class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path.startswith("/moved"):
            self.send_response(302)
            self.send_header("Location", MOVED.get(self.path, self.path))
            self.end_headers()
        elif self.path == "/endless":
            self.send_response(200)
            self.end_headers()
            for _ in range(40):
                self.wfile.write(b"x" * 1000)
        elif self.path == "/picture?size=1":
            self.send_response(200)
            self.end_headers()
            self.wfile.write(self.headers["Host"].encode())
        else:
            self.picture() if self.path == "/picture" else self.send_error(404)

    def picture(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"picture")

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the test says what matters."""


@pytest.fixture
def site() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(remote.ALLOWED, "files.internal,127.0.0.1")


@pytest.mark.usefixtures("allowed")
def test_what_is_allowed_is_fetched(site: str) -> None:
    assert remote.fetch(f"{site}/picture") == b"picture"
    assert remote.fetch(f"{site}/moved") == b"picture"
    assert remote.fetch(f"{site}/picture?size=1").decode() == site.removeprefix("http://")
    assert remote.fetch("data:image/png;base64,aGk=") == b"hi"


def test_a_known_url_asks_nobody(tmp_path: Path) -> None:
    (tmp_path / "daisy.jpg").write_bytes(b"daisy")
    url = "https://example.invalid/daisy.jpg"
    assert remote.fetch(url, known={url: tmp_path / "daisy.jpg"}) == b"daisy"


@pytest.mark.parametrize(
    "host", [*INSIDE, "[64:ff9b::a9fe:a9fe]", "[64:ff9b:1::1]", "[2002:7f00:1::]", "[::7f00:1]", "[fec0::1]"]
)
def test_addresses_inside_are_refused(host: str) -> None:
    with pytest.raises(BadInput, match="address inside"):
        remote.fetch(f"http://{host}:9/secret")


@pytest.mark.usefixtures("allowed")
@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/absent", "answers 404"),
        ("/endless", "larger than 10000 bytes"),
        ("/moved/for-ever", "redirected more than 3 times"),
        ("/moved/inside", "'localhost' is an address inside"),
        ("/moved/nowhere", "which is no URL"),
    ],
)
def test_limits(site: str, path: str, message: str) -> None:
    with pytest.raises(ServingError, match=message):
        remote.fetch(site + path, largest=10_000)


@pytest.mark.usefixtures("allowed")
def test_only_so_many_are_fetched_at_a_time(site: str) -> None:
    for _ in range(remote.AT_ONCE):
        assert remote._places.acquire(blocking=False)
    try:
        with pytest.raises(Overloaded, match="16 URLs are being fetched already"):
            remote.fetch(f"{site}/picture")
        assert remote.fetch("data:,hi") == b"hi"
    finally:
        for _ in range(remote.AT_ONCE):
            remote._places.release()
    assert remote.fetch(f"{site}/picture") == b"picture"


@pytest.mark.usefixtures("allowed")
def test_who_sends_a_byte_now_and_then_is_given_up_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "PATIENCE", 0.3)
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def drip() -> None:
            connection, _ = listener.accept()
            with connection, contextlib.suppress(OSError):
                connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
                while not over.wait(0.02):
                    connection.sendall(b"x")

        thread = threading.Thread(target=drip)
        thread.start()
        try:
            with pytest.raises(BadInput, match="cannot be fetched"):
                remote.fetch(f"http://127.0.0.1:{listener.getsockname()[1]}/")
        finally:
            over.set()
            thread.join()


@pytest.mark.parametrize("url", STRANGE)
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(BadInput, match="no http, https or data URL|is no URL|damaged"):
        remote.fetch(url)
