"""VisualDL's server, started with VisualDL's own flags, for pods whose jobs are still writing.

VisualDL is used as it is but for what fails behind a Service:

- A request without Accept-Language (curl, probes) was answered with 500; it gets English.
- One connection that sends nothing, such as those that browsers open in advance, blocked all others. Requests are read
  by a thread each; VisualDL still answers them one at a time, as it is not made for more.
- A record that is half written when it is read ended the reading of its file; it is read again when it is complete.
- Nothing is sent to VisualDL's authors: no version check, and no code for counting visits in the page.
- Without --host VisualDL listens on loopback alone; here it listens on all addresses of the pod.
- VisualDL has no login: a request that does not come from the pod itself, where port-forwards arrive, needs the key of
  KEY, once as ?key=… and then as a cookie.
- VisualDL keeps what it has read in memory: after IDLE seconds without a request it ends, and this program, which has
  the port and some megabytes, starts it again for the next one.
"""

from __future__ import annotations

import argparse
import hmac
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterable
from http.cookies import CookieError, SimpleCookie
from typing import Any

EVERYWHERE = "0.0.0.0"  # noqa: S104 - of the pod
PORT = 8040
ALIVE = "/alive"
KEY, IDLE = "VISUALDL_KEY", "VISUALDL_IDLE_SECONDS"
LISTENER, CONNECTION = "VISUALDL_LISTENER", "VISUALDL_CONNECTION"
"""Descriptors that the server is started with: of the port, and of the connection that it is started for, or -1."""
COOKIE = "visualdl_key"
PATIENCE = 5.0
"""Seconds for the first bytes of a connection while VisualDL is stopped."""

Application = Callable[[dict[str, Any], Any], Iterable[bytes]]


def main() -> None:
    if LISTENER in os.environ:
        serve()
        return
    flags = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    flags.add_argument("--host", default=EVERYWHERE)
    flags.add_argument("--port", type=int, default=PORT)
    given = flags.parse_known_args()[0]
    family = socket.AF_INET6 if ":" in given.host else socket.AF_INET
    keep_running(socket.create_server((given.host, given.port), family=family, backlog=128))


def keep_running(listener: socket.socket) -> None:
    """The server as a child: now, and whenever it has ended for want of requests and one comes."""
    running: list[subprocess.Popen[bytes]] = []

    def end(*_: object) -> None:  # as the first process of a container nothing else would
        for one in running:
            one.terminate()
        os._exit(0)

    signal.signal(signal.SIGTERM, end)
    connection: socket.socket | None = None
    while True:
        descriptors = {LISTENER: listener.fileno(), CONNECTION: connection.fileno() if connection else -1}
        environment = {**os.environ, **{name: str(number) for name, number in descriptors.items()}}
        kept = [number for number in descriptors.values() if number >= 0]
        running[:] = [subprocess.Popen([sys.executable, *sys.argv], env=environment, pass_fds=kept)]
        if connection:
            connection.close()
        if code := running[0].wait():
            sys.exit(code)
        running.clear()
        print("VisualDL is stopped, as nobody asked for anything; the next request starts it", flush=True)
        connection = asked(listener)


def asked(listener: socket.socket) -> socket.socket:
    """The next connection with a request, of which nothing is read. Probes are answered here."""
    while True:
        connection, _ = listener.accept()
        try:
            if not select.select([connection], [], [], PATIENCE)[0]:
                connection.close()
                continue
            begun = connection.recv(64, socket.MSG_PEEK)
            if begun.split(b" ")[1:2] != [ALIVE.encode()] and begun:
                return connection
            if begun:
                connection.recv(1 << 16)
                connection.sendall(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        except OSError:  # it was closed meanwhile
            pass
        connection.close()


def guarded(application: Application, key: str) -> Application:
    """Without a key of the server everybody may ask."""

    def answer(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if not key or is_local(environ.get("REMOTE_ADDR", "")) or is_key(cookie_of(environ), key):
            return application(environ, start_response)
        query = urllib.parse.parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True)
        if is_key(dict(query).get("key", ""), key):
            rest = urllib.parse.urlencode([pair for pair in query if pair[0] != "key"])
            path = urllib.parse.quote(environ.get("PATH_INFO", "/").encode("latin-1"), safe="/")
            path = "/" + path.lstrip("/")  # never to another server
            cookie = f"{COOKIE}={key}; Path=/; HttpOnly; SameSite=Strict"
            location = f"{path}?{rest}" if rest else path
            start_response("302 Found", [("Location", location), ("Set-Cookie", cookie), ("Content-Length", "0")])
            return [b""]
        text = b"this VisualDL takes requests through port-forwards, or with ?key=UID, the uid of its job\n"
        start_response("403 Forbidden", [("Content-Type", "text/plain"), ("Content-Length", str(len(text)))])
        return [text]

    return answer


def is_local(address: str) -> bool:
    return address == "::1" or address.removeprefix("::ffff:").startswith("127.")


def is_key(given: str, key: str) -> bool:
    return hmac.compare_digest(given.encode(), key.encode())


def cookie_of(environ: dict[str, Any]) -> str:
    try:
        found = SimpleCookie(environ.get("HTTP_COOKIE", "")).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found else ""


class LastRequest:
    """When somebody asked last; probes do not count. A request that is being answered is now."""

    def __init__(self) -> None:
        self._at, self._answering, self._lock = time.monotonic(), 0, threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            self._answering += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._answering -= 1
            self._at = time.monotonic()

    def wait_until_idle(self, seconds: float) -> None:
        while (left := self._left(seconds)) > 0:
            time.sleep(left)

    def _left(self, seconds: float) -> float:
        with self._lock:
            return seconds if self._answering else self._at + seconds - time.monotonic()


def one_at_a_time(application: Application, last: LastRequest) -> Application:
    lock = threading.Lock()

    def answer(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        environ.setdefault("HTTP_ACCEPT_LANGUAGE", "en")
        with last, lock:
            return application(environ, start_response)

    return answer


def serve() -> None:
    """VisualDL itself, which takes seconds and 160 MiB to import."""
    from visualdl.reader import record_reader
    from visualdl.server import app as server
    from visualdl.server import args as flags
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Reader(record_reader._RecordReader):  # type: ignore[misc]
        def get_next(self) -> None:
            file = self.file_handle
            before = (file.buff, file.buff_offset, file.continuation_token)
            header = file.read(8)
            if len(header) == 8:
                length = int.from_bytes(header, "little")
                self._curr_event = file.read(length)
                if len(self._curr_event) == length:
                    return
            file.buff, file.buff_offset, file.continuation_token = before
            self._curr_event = None
            raise EOFError("no complete record yet")

    class Quiet(WSGIRequestHandler):  # type: ignore[misc]
        def log_request(self, *_: object) -> None:
            """Every open page asks for all its curves every few seconds."""

    record_reader._RecordReader = Reader
    given = flags.parse_args()
    given["telemetry"] = False
    given["host"] = given["host"] or EVERYWHERE
    wanted = flags.ParseArgs(**given)
    plain = server.create_app(wanted)
    last = LastRequest()
    shown = guarded(one_at_a_time(plain, last), os.environ.get(KEY, ""))

    def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """A probe neither waits for pages nor keeps VisualDL running."""
        return (plain if environ["PATH_INFO"] == server.check_live_path else shown)(environ, start_response)

    made = make_server(
        wanted.host, wanted.port, application, threaded=True, request_handler=Quiet, fd=int(os.environ[LISTENER])
    )
    print(f"VisualDL listens on {wanted.host}:{wanted.port}{wanted.public_path}", flush=True)
    if (number := int(os.environ[CONNECTION])) >= 0:
        connection = socket.socket(fileno=number)
        made.process_request(connection, connection.getpeername())
    threading.Thread(target=made.serve_forever, daemon=True).start()
    last.wait_until_idle(float(os.environ.get(IDLE) or 1800))
    made.shutdown()
    os._exit(0)  # threads of VisualDL that look for records would keep it


if __name__ == "__main__":
    main()
