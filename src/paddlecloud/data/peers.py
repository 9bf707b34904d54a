"""Nodes pass samples on to the rank that reads them next, instead of all fetching them from the origin.

Every rank of a shuffled training reads each sample once an epoch, and the plan says who and when. So the node that read
a sample last keeps it until its next reader asks, a window ahead of the step that needs it, and then lets it go. The
origin is asked only for what no node has.

A rank serves its cache over HTTP to those who prove that they have the job's token, the files of its set and nothing
else. It proves the same to them: another program at its address can neither learn the token nor pass on samples.
"""

from __future__ import annotations

import http.server
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import unquote

from paddlecloud.data.cache_folders import CacheFolders
from paddlecloud.data.origin import PROOF, Web, answer_proof, is_same, request_proof

PATIENCE = 5.0
"""Seconds a peer may be silent."""
_REST = 10.0
"""Seconds that a peer which did not answer is left alone."""
_LOOPBACK = ("127.", "localhost", "[::1]")


class Peers:
    """The other ranks' caches, by rank: `host:port` of each."""

    def __init__(self, addresses: Sequence[str], rank: int, token: str) -> None:
        if not token and not all(address.startswith(_LOOPBACK) for address in addresses):
            raise ValueError("peers beyond this machine need a token: nobody else may read the data")
        self._address, self._token = addresses[rank], token
        self._webs = [Web(f"http://{address}", token=token, patience=PATIENCE) for address in addresses]
        self._rested = [0.0] * len(addresses)

    def copy(self, rank: int, path: str, target: str) -> int | None:
        """Take a file over from a rank; its size, or None where it cannot be had."""
        if time.monotonic() < self._rested[rank]:
            return None
        try:
            return self._webs[rank].copy(path, target)
        except FileNotFoundError:
            return None
        except OSError:
            self._rested[rank] = time.monotonic() + _REST
            return None

    def serve(self, place: CacheFolders, paths: Sequence[str], taken: Callable[[int], None]) -> None:
        """Hand files of this rank's cache to others; `taken` is called with each."""
        index = {path: number for number, path in enumerate(paths)}
        token, address = self._token, self._address

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                given = self.headers.get("Authorization", "")
                nonce = given.removeprefix("Signed ").partition(":")[0]
                if token and not is_same(given, request_proof(token, address, self.path, nonce)):
                    return self._answer(401)
                self._nonce = nonce
                path = unquote(self.path.removeprefix("/"))
                content = place.read(path) if path in index else None
                if content is None:
                    return self._answer(404)
                self._answer(200, content)
                taken(index[path])

            def _answer(self, status: int, content: bytes = b"") -> None:
                self.send_response(status)
                if token and status != 401:
                    self.send_header(PROOF, answer_proof(token, self._nonce))
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                """The training's log is the training's."""

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: Any) -> None:
                """A peer that went away asks again, or asks the origin."""

        host, _, port = self._address.rpartition(":")
        server = Server((host.strip("[]"), int(port)), Handler)
        os.set_inheritable(server.fileno(), False)
        threading.Thread(target=server.serve_forever, name="paddlecloud-peers", daemon=True).start()
