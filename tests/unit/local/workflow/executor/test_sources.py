"""Stores and servers that artifacts come from: what they answer writes nothing outside, and no other one is given
credentials."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from paddlecloud.local.workflow.executor import loading, s3, sources
from paddlecloud.local.workflow.executor.orders import ExecutorError


class Server(ThreadingHTTPServer):
    """Answers what `answers` has for a path, `text` else; a text that begins with `http` or `ftp` is a redirect."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: dict[str, str | None] = {}
        self.seen: dict[str, dict[str, str]] = {}

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        self.server.seen[path] = {name.lower(): value for name, value in self.headers.items()}
        answer = self.server.answers.get("list" if "list-type" in query else path, "text")
        redirect = answer is not None and answer.startswith(("http", "ftp"))
        self.send_response(404 if answer is None else 302 if redirect else 200)
        if redirect:
            self.send_header("Location", str(answer))
        body = b"" if answer is None or redirect else answer.encode()
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def servers() -> Iterator[tuple[Server, Server]]:
    made = (Server(), Server())
    threads = [threading.Thread(target=each.serve_forever, kwargs={"poll_interval": 0.01}) for each in made]
    for thread in threads:
        thread.start()
    yield made
    for each, thread in zip(made, threads, strict=True):
        each.shutdown()
        thread.join()
        each.server_close()


def fetch_folder(server: Server, target: Path, *names: str) -> None:
    keys = "".join(f"<Contents><Key>{name}</Key></Contents>" for name in names)
    server.answers |= {"/b/k": None, "list": f"<R>{keys}</R>"}
    s3.fetch({"endpoint": server.place, "insecure": True, "bucket": "b", "key": "k"}, str(target))


def test_objects_below_a_key_become_a_folder(servers: tuple[Server, Server], tmp_path: Path) -> None:
    fetch_folder(servers[0], tmp_path / "target", "k/a", "k/deep/b", "k/deep/")
    assert (tmp_path / "target" / "a").read_text() == (tmp_path / "target" / "deep" / "b").read_text() == "text"


@pytest.mark.parametrize(
    "name",
    ["k/{place}", "{place}", "other/{place}", "k/../outside", "k/./outside", "k//outside", "../outside", "outside"],
)
def test_a_store_writes_nothing_outside(name: str, servers: tuple[Server, Server], tmp_path: Path) -> None:
    with pytest.raises(ExecutorError, match="lists an object"):
        fetch_folder(servers[0], tmp_path / "in" / "target", name.format(place=tmp_path / "outside"))
    assert not list(tmp_path.rglob("outside"))


ORDER = {"user": "U", "password": "P", "headers": [{"name": "X-Token", "value": "secret"}]}


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("U", "user")
    monkeypatch.setenv("P", "secret")


def test_credentials_follow_a_redirect_to_the_same_server(servers: tuple[Server, Server], tmp_path: Path) -> None:
    one = servers[0]
    one.answers["/from"] = f"http://{one.place}/to"
    sources.fetch({"http": {**ORDER, "url": f"http://{one.place}/from"}}, str(tmp_path / "target"))
    assert (tmp_path / "target").read_text() == "text"
    assert {"authorization", "x-token"} <= set(one.seen["/to"])


def test_credentials_go_to_no_other_server(servers: tuple[Server, Server], tmp_path: Path) -> None:
    one, other = servers
    one.answers["/from"] = f"http://{other.place}/to"
    sources.fetch({"http": {**ORDER, "url": f"http://{one.place}/from"}}, str(tmp_path / "target"))
    assert (tmp_path / "target").read_text() == "text"
    assert {"authorization", "x-token"}.isdisjoint(other.seen["/to"])


def test_a_redirect_leads_to_no_other_protocol(servers: tuple[Server, Server], tmp_path: Path) -> None:
    one, other = servers
    one.answers["/from"] = f"ftp://{other.place}/to"
    with pytest.raises(ExecutorError, match="no http or https address"):
        sources.fetch({"http": {"url": f"http://{one.place}/from"}}, str(tmp_path / "target"))


def test_the_mode_of_what_a_link_leads_to_stays(tmp_path: Path) -> None:
    (tmp_path / "outside").touch(mode=0o600)
    (tmp_path / "target").symlink_to("outside")
    loading._set_mode(str(tmp_path / "target"), 0o666, False)
    assert (tmp_path / "outside").stat().st_mode & 0o777 == 0o600
