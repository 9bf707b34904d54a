"""Following the logs of a job whose pods come and go: one thread per pod reads, the main thread prints.

Pods are looked up again every second, so a rank that was restarted is followed in its new pod, and a stream that broke
is resumed where it stopped, without a repeated line. The end of the job (or of the one pod) ends the command.
"""

from __future__ import annotations

import queue
import sys
import threading
import time
from typing import TYPE_CHECKING

from paddlecloud.cli import members, outcome
from paddlecloud.cli.api import Api
from paddlecloud.cli.failures import INTERRUPTED, OK
from paddlecloud.cli.logstream import Line, Options, container_of, read
from paddlecloud.cli.members import Member
from paddlecloud.cli.outcome import GONE, Outcome
from paddlecloud.cli.placing import Place
from paddlecloud.cli.serverside import read as read_object
from paddlecloud.cli.session import Session
from paddlecloud.kube.errors import BadRequest, NotFound, Unreachable
from paddlecloud.kube.resource import Object

if TYPE_CHECKING:
    from paddlecloud.cli.logs import Writer

LOOK_SECONDS = 1.0
PATIENCE = 10.0
"""How long after the end of the job a log stream may take to end as well."""
BUFFER = 10_000
"""Lines read but not printed: a terminal slower than the job slows the readers, it does not fill the memory."""


class Follower:
    def __init__(self, session: Session, place: Place, writer: Writer, options: Options) -> None:
        self._session = session
        self._place = place
        self._writer = writer
        self._options = options
        self._lines: queue.Queue[Line | Exception] = queue.Queue(maxsize=BUFFER)
        self._tails: dict[str, Tail] = {}  # by uid of the pod: a rank restarted under its old name is a new pod

    def run(self, owner: Object | None) -> int:
        try:
            while True:
                end = GONE if owner is None else outcome.finished(owner)
                if owner is not None:
                    self._attach(owner)
                if end is not None:
                    self._print(seconds=PATIENCE, to_the_end=True)
                    return self._conclude(end)
                self._print(seconds=LOOK_SECONDS, to_the_end=False)
                owner = read_object(self._session, self._place)
        except KeyboardInterrupt:
            self._session.note(f"detached; it goes on. To come back: pdc logs -f {self._place.display}")
            return INTERRUPTED

    def _attach(self, owner: Object) -> None:
        """Start a reader for every started pod that has none, or whose reader lost its stream."""
        args = self._session.args
        found = members.members_of(self._session, owner)
        chosen = members.choose(found, ranks=args.rank, everything=args.all_ranks)
        self._writer.introduce(chosen)
        for member in chosen:
            tail = self._tails.get(member.uid)
            lost = tail is not None and not tail.is_alive() and not _ended(member.pod)
            if (tail is None or lost) and _started(member, self._options.container):
                self._tails[member.uid] = Tail(
                    self._session.api, member, self._options, self._lines, after=tail.last if tail else ""
                )
                self._tails[member.uid].start()

    def _print(self, *, seconds: float, to_the_end: bool) -> None:
        """Print what comes, for so long; `to_the_end` stops earlier when every reader has ended."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            reading = any(tail.is_alive() for tail in self._tails.values())
            try:
                item = self._lines.get(timeout=min(left, 0.1) if to_the_end else left)
            except queue.Empty:
                if to_the_end and not reading:
                    break
                continue
            if isinstance(item, Exception):
                raise item
            self._writer.write(item)
            if self._lines.empty():
                sys.stdout.flush()
        sys.stdout.flush()

    def _conclude(self, end: Outcome) -> int:
        if end.exit_code != OK:
            self._session.note(f"{self._place.display} {end.state}: {end.message}")
        return end.exit_code


class Tail(threading.Thread):
    """Reads one pod's log until the stream ends. `last` is the time of the last line, where to resume."""

    def __init__(
        self, api: Api, member: Member, options: Options, lines: queue.Queue[Line | Exception], *, after: str
    ) -> None:
        super().__init__(daemon=True, name=f"log-{member.name}")
        self._api = api
        self._member = member
        self._options = options
        self._lines = lines
        self.last = after

    def run(self) -> None:
        try:
            for line in read(self._api, self._member, self._options, follow=True, after=self.last):
                self._lines.put(line)
                self.last = line.time
        except (BadRequest, NotFound, Unreachable):
            pass  # not started, gone, or the connection broke: the follower looks again and decides
        except Exception as error:
            self._lines.put(error)


def _ended(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def _started(member: Member, container: str | None) -> bool:
    """Whether there can be a log at all; asking earlier is answered with an error."""
    name = container_of(member, container)
    for entry in (member.pod.get("status") or {}).get("containerStatuses") or ():
        if entry.get("name") == name:
            state = entry.get("state") or {}
            return "running" in state or "terminated" in state or bool(entry.get("lastState"))
    return _ended(member.pod)
