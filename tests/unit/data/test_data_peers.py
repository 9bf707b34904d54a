"""Samples that come over the network: from a server that is the origin, and from other nodes."""

from __future__ import annotations

import http.server
import multiprocessing
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from harness import until
from paddlecloud.data import Files
from paddlecloud.data.cache_folders import CacheFolders
from paddlecloud.data.peers import Peers
from tools.ports import free_ports
from unit.data.samples import COUNT, SIZE, Sampler, content, fork, paths, train

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")


class _Server(http.server.ThreadingHTTPServer):
    asked = 0


@pytest.fixture
def server(data: Path) -> Iterator[_Server]:
    class Handler(http.server.SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments, directory=str(data))

        def do_GET(self) -> None:
            server.asked += 1
            if server.asked % 5 == 0:
                self.close_connection = True  # as servers do with connections they tire of
            super().do_GET()

        def log_message(self, *_: Any) -> None:
            """Tests are quiet."""

    server = _Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_a_server_can_be_the_origin(server: _Server, data: Path, cache: Path) -> None:
    (data / "images" / "with space.jpg").write_bytes(b"spaced")
    url = f"http://127.0.0.1:{server.server_address[1]}"
    sampler = Sampler()
    files = Files([*paths()[:-1], "images/with space.jpg"], data=url, cache=str(cache))
    assert files.read(COUNT - 1) == b"spaced"
    files.follow(sampler, epochs=2)
    train(files, sampler, cache, epochs=2)
    assert server.asked == COUNT + 1, "each file crossed the link once, and one a second time"
    with pytest.raises(OSError, match="404"):
        Files(["none"], data=url).read(0)


# Nodes that pass samples on


def test_nodes_hand_samples_over_and_the_origin_is_asked_once(
    server: _Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither of the two caches holds the set, both together do; every sample crosses the link once.

    The environment is that of a job whose controller has seen it.
    """
    url = f"http://127.0.0.1:{server.server_address[1]}"
    monkeypatch.setenv("PADDLE_TRAINER_ENDPOINTS", "127.0.0.1:36000,127.0.0.2:36000")
    (port,) = free_ports("127.0.0.1", 1)
    monkeypatch.setenv("PADDLECLOUD_PEER_PORT", str(port))
    step = multiprocessing.get_context("fork").Barrier(2)

    def rank(number: int) -> bool:
        sampler, cache = Sampler(nranks=2, local_rank=number), tmp_path / f"node-{number}"
        files = Files(paths(), data=url, cache=str(cache), quota=(COUNT - 8) * (SIZE + COUNT // 2))
        files.follow(sampler, epochs=5, threads=2)

        def loader() -> Iterator[list[bytes]]:
            for batch in sampler:
                there = lambda batch=batch: all((cache / files[index]).exists() for index in batch)  # noqa: E731
                until(there, every=0.005)
                step.wait(20)
                yield [files.read(index) for index in batch]

        for _ in range(5):
            for batch in files.watch(loader()):
                assert all(len(part) >= SIZE for part in batch)
        step.wait(20)
        return sum(figures.misses for figures in files.figures().values()) == 0

    child = fork(lambda: rank(1))
    assert rank(0)
    assert os.waitpid(child, 0)[1] == 0
    assert server.asked <= COUNT + 4, f"{server.asked} requests for {COUNT} samples in five epochs"


def test_a_cache_is_served_to_those_who_have_the_token_and_nothing_else_is(data: Path, tmp_path: Path) -> None:
    (port,) = free_ports("127.0.0.1", 1)
    (tmp_path / "secret").write_text("not of the set")
    peers = Peers([f"127.0.0.1:{port}"], 0, "s3cret")
    taken: list[int] = []
    peers.serve(CacheFolders(str(data)), paths(), taken.append)
    copy = str(tmp_path / "copy")
    assert peers.copy(0, "images/007.jpg", copy) == len(content(7))
    assert Path(copy).read_bytes() == content(7)
    for other in ("../secret", "images/../../secret", ".paddlecloud/keeper", "images/none.jpg"):
        assert peers.copy(0, other, copy) is None
    assert Peers([f"127.0.0.1:{port}"], 0, "guess").copy(0, "images/008.jpg", copy) is None
    until(lambda: taken == [7], every=0.01)


class _Impostor(http.server.BaseHTTPRequestHandler):
    """Holds a rank's address: answers every request with its own samples, and keeps what it was sent."""

    received: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.received.append(str(self.headers))
        self.send_response(200)
        self.send_header("Content-Length", "6")
        self.end_headers()
        self.wfile.write(b"poison")

    def log_message(self, *_: Any) -> None:
        """Tests are quiet."""


def test_a_program_at_a_ranks_address_learns_no_token_and_passes_on_no_sample(tmp_path: Path) -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Impostor)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    peers = Peers([f"127.0.0.1:{server.server_address[1]}"], 0, "s3cret")
    assert peers.copy(0, "images/007.jpg", str(tmp_path / "copy")) is None
    server.shutdown()
    server.server_close()
    assert _Impostor.received
    assert not any("s3cret" in headers for headers in _Impostor.received)


def test_peers_beyond_the_machine_need_a_token() -> None:
    with pytest.raises(ValueError, match="token"):
        Peers(["10.0.0.1:36000", "10.0.0.2:36000"], 0, "")


def test_a_peer_that_does_not_answer_is_left_alone_for_a_while(data: Path, tmp_path: Path) -> None:
    (port,) = free_ports("127.0.0.1", 1)
    peers = Peers([f"127.0.0.1:{port}"], 0, "")
    assert peers.copy(0, "images/001.jpg", str(tmp_path / "copy")) is None
    peers.serve(CacheFolders(str(data)), paths(), lambda _: None)
    assert peers.copy(0, "images/001.jpg", str(tmp_path / "copy")) is None, "it is not asked before it had a rest"
