"""Following the logs of a job whose pods come and go: one thread per pod reads, the main thread prints.

Whenever the job or its pods change, the pods are looked up again, so a rank that was restarted is followed in its new
pod, and a stream that broke is resumed where it stopped, without a repeated line. The end of the job (or of the one
pod) ends the command. Until something runs, the reason is told on stderr.
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
from paddlecloud.cli.members import Member
from paddlecloud.cli.outcome import GONE, Outcome
from paddlecloud.cli.placing import Place
from paddlecloud.cli.serverside import read as read_object
from paddlecloud.cli.session import Session
from paddlecloud.kube.errors import ApiError, BadRequest, NotFound, Unreachable
from paddlecloud.kube.resource import Object
from paddlecloud.sdk.logs import Line, Options, read

if TYPE_CHECKING:
    from paddlecloud.cli.logs import Writer

LOOK_SECONDS = 1.0
"""How long a change may go unnoticed where it cannot be watched."""
GATHER_SECONDS = 0.05
"""Changes come in bursts; a look answers for all within this time."""
WATCH_SECONDS = 60
FIRST_NEWS, NEXT_NEWS = 2.0, 5.0
PATIENCE = 10.0
"""How long after the end of the job a log stream may take to end as well."""
BUFFER = 10_000
"""Lines read but not printed: a terminal slower than the job slows the readers, it does not fill the memory."""


class Changed:
    """In the queue of lines: the followed object is not what it was."""


Item = Line | Exception | Changed
Items = queue.Queue[Item]


class Follower:
    def __init__(self, session: Session, place: Place, writer: Writer, options: Options) -> None:
        self._session = session
        self._place = place
        self._writer = writer
        self._options = options
        self._items: Items = queue.Queue(maxsize=BUFFER)
        self._tails: dict[str, Tail] = {}  # by uid of the pod: a rank restarted under its old name is a new pod
        self._news = News(session, place)

    def run(self, owner: Object | None) -> int:
        Watch(self._session.api, self._place, self._items).start()
        try:
            while True:
                end = GONE if owner is None else outcome.finished(owner)
                if owner is not None:
                    self._attach(owner)
                if end is not None:
                    self._print_to_the_end()
                    return self._conclude(end)
                if owner is not None and not self._tails:
                    self._news.tell(owner)
                self._print_until_changed()
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
            lost = tail is not None and not tail.is_alive() and not member.ended
            if (tail is None or lost) and member.started(self._options.container):
                after = tail.last if tail else ""
                self._tails[member.uid] = Tail(self._session.api, member, self._options, self._items, after=after)
                self._tails[member.uid].start()

    def _print_until_changed(self) -> None:
        deadline = time.monotonic() + LOOK_SECONDS
        while (left := deadline - time.monotonic()) > 0:
            try:
                if self._print(self._items.get(timeout=left)):
                    deadline = min(deadline, time.monotonic() + GATHER_SECONDS)
            except queue.Empty:
                break
        sys.stdout.flush()

    def _print_to_the_end(self) -> None:
        """Until every reader has ended, for a while."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            reading = any(tail.is_alive() for tail in self._tails.values())
            try:
                self._print(self._items.get(timeout=0.05 if reading else 0))
            except queue.Empty:
                if not reading:
                    break
        sys.stdout.flush()

    def _print(self, item: Item) -> bool:
        """True when it was no line but the news of a change."""
        if isinstance(item, Changed):
            return True
        if isinstance(item, Exception):
            raise item
        self._writer.write(item)
        if self._items.empty():
            sys.stdout.flush()
        return False

    def _conclude(self, end: Outcome) -> int:
        if end.exit_code != OK:
            self._session.note(f"{self._place.display} {end.state}: {end.message}")
        return end.exit_code


class Tail(threading.Thread):
    """Reads one pod's log until the stream ends. `last` is the time of the last line, where to resume."""

    def __init__(self, api: Api, member: Member, options: Options, items: Items, *, after: str) -> None:
        super().__init__(daemon=True, name=f"log-{member.name}")
        self._api = api
        self._member = member
        self._options = options
        self._items = items
        self.last = after

    def run(self) -> None:
        lines = read(self._api.client, self._member, self._options, follow=True, after=self.last)
        try:
            for line in self._api.each(lines):
                self._items.put(line)
                self.last = line.time
        except (BadRequest, NotFound, Unreachable):
            pass  # not started, gone, or the connection broke: the follower looks again and decides
        except Exception as error:
            self._items.put(error)


class Watch(threading.Thread):
    """Says `Changed` whenever the object does. Where it cannot be watched, the follower's own looks suffice."""

    def __init__(self, api: Api, place: Place, items: Items) -> None:
        super().__init__(daemon=True, name=f"watch-{place.name}")
        self._api = api
        self._place = place
        self._items = items

    def run(self) -> None:
        resource, namespace = self._place.resource, self._place.namespace
        while True:
            changes = self._api.client.watch(
                resource, namespace, field_selector=f"metadata.name={self._place.name}", timeout=WATCH_SECONDS
            )
            try:
                for event in self._api.each(changes):
                    if event.type != "BOOKMARK":
                        self._items.put(Changed())
            except ApiError:
                pass  # out of reach, not allowed, too old: looked at again in a moment
            time.sleep(LOOK_SECONDS)


class News:
    """While nothing runs, says why, whenever that changes and at most every few seconds."""

    def __init__(self, session: Session, place: Place) -> None:
        self._session = session
        self._place = place
        self._said = ""
        self._quiet_until = time.monotonic() + FIRST_NEWS

    def tell(self, owner: Object) -> None:
        if time.monotonic() < self._quiet_until or self._session.args.output:
            return
        from paddlecloud.cli.describe import examine

        self._quiet_until = time.monotonic() + NEXT_NEWS
        _, _, verdict = examine(self._session, owner)
        if verdict.text != self._said:
            self._said = verdict.text
            self._session.note(f"{self._place.display}: {verdict.text}")
