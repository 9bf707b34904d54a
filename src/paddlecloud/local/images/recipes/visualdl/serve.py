"""VisualDL's server, started with VisualDL's own flags, for pods whose jobs are still writing.

VisualDL is used as it is but for what fails behind a Service:

- A request without Accept-Language (curl, probes) was answered with 500; it gets English.
- One connection that sends nothing, such as those that browsers open in advance, blocked all others. Requests are read
  by a thread each; VisualDL still answers them one at a time, as it is not made for more.
- A record that is half written when it is read ended the reading of its file; it is read again when it is complete.
- Nothing is sent to VisualDL's authors: no version check, and no code for counting visits in the page.
- Without --host VisualDL listens on loopback alone; here it listens on all addresses of the pod.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

from visualdl.reader import record_reader
from visualdl.server import app as server
from visualdl.server import args as flags
from werkzeug.serving import WSGIRequestHandler, run_simple

EVERYWHERE = "0.0.0.0"  # noqa: S104 - of the pod


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


Application = Callable[[dict[str, Any], Any], Iterable[bytes]]


def one_at_a_time(application: Application) -> Application:
    lock = threading.Lock()

    def answer(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if environ["PATH_INFO"] == server.check_live_path:  # a probe does not wait for pages
            return application(environ, start_response)
        environ.setdefault("HTTP_ACCEPT_LANGUAGE", "en")
        with lock:
            return application(environ, start_response)

    return answer


def main() -> None:
    record_reader._RecordReader = Reader
    given = flags.parse_args()
    given["telemetry"] = False
    given["host"] = given["host"] or EVERYWHERE
    wanted = flags.ParseArgs(**given)
    application = server.create_app(wanted)
    print(f"VisualDL listens on {wanted.host}:{wanted.port}{wanted.public_path}", flush=True)
    run_simple(wanted.host, wanted.port, one_at_a_time(application), threaded=True, request_handler=Quiet)


if __name__ == "__main__":
    main()
