"""Following the logs of a job whose pods come and go: one thread per pod reads, the main thread prints.

Whenever the job changes, its pods are looked up again, so a rank that was restarted is followed in its new pod, and a
stream that broke is resumed where it stopped, without a repeated line. Pods are watched besides: one that runs for a
moment only may be deleted before anybody looks. The end of the job (or of the one pod) ends the command. Until
something runs, the reason is told on stderr.
"""

from __future__ import annotations

import queue
import shutil
import sys
import threading
import time
from typing import TYPE_CHECKING, NamedTuple, TextIO

from paddlecloud.api.paddlejob.cause import ON_THE_WAY
from paddlecloud.cli.failures import INTERRUPTED, OK
from paddlecloud.cli.objects import members, outcome
from paddlecloud.cli.objects.api import Api
from paddlecloud.cli.objects.members import Member
from paddlecloud.cli.objects.outcome import GONE, Outcome
from paddlecloud.cli.objects.placing import Place
from paddlecloud.cli.objects.serverside import read as read_object
from paddlecloud.cli.session import Session
from paddlecloud.kube.errors import ApiError, BadRequest, NotFound, Unreachable
from paddlecloud.kube.resource import PADDLEJOBS, PODS, Object, Resource
from paddlecloud.sdk.logs import Line, Options, read

if TYPE_CHECKING:
    from paddlecloud.cli.commands.logs import Writer

LOOK_SECONDS = 1.0
"""How long a change may go unnoticed where it cannot be watched."""
GATHER_SECONDS = 0.05
"""Changes come in bursts; a look answers for all within this time."""
WATCH_SECONDS = 60
FIRST_NEWS, NEXT_NEWS, NEXT_LIVE = 2.0, 5.0, 1.0
UNSCHEDULABLE = frozenset(("Unschedulable", "NotEnoughResources"))
"""Reasons of verdicts that `pdc explain` answers with what would help."""
PATIENCE = 10.0
"""How long after the end of the job a log stream may take to end as well."""
BUFFER = 10_000
"""Lines read but not printed: a terminal slower than the job slows the readers, it does not fill the memory."""


class Changed(NamedTuple):
    """In the queue of lines: the followed object is not what it was, or this pod of it is not."""

    pod: Object | None = None


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
        self._known: dict[str, Member] = {}
        self._uid = ""
        self._news = News(session, place)

    def run(self, owner: Object | None) -> int:
        self._watch(owner)
        try:
            while True:
                end = GONE if owner is None else outcome.finished(owner)
                if owner is not None:
                    self._attach(owner)
                if end is not None:
                    self._print_to_the_end()
                    return self._conclude(end, owner)
                if owner is not None and not self._tails:
                    self._news.tell(owner)
                self._print_until_changed()
                owner = read_object(self._session, self._place)
        except KeyboardInterrupt:
            self._news.clear()
            self._session.note(f"detached; it goes on. To come back: pdc logs -f {self._place.display}")
            return INTERRUPTED

    def _watch(self, owner: Object | None) -> None:
        api, place = self._session.api, self._place
        Watch(api, place.resource, place.namespace, self._items, fields=f"metadata.name={place.name}").start()
        labels = members.watch_selector(owner) if owner is not None else None
        if labels is not None:
            Watch(api, PODS, place.namespace, self._items, labels=labels).start()

    def _attach(self, owner: Object) -> None:
        self._uid = str(owner["metadata"].get("uid"))
        self._known = {one.name: one for one in members.members_of(self._session, owner)}
        self._read_started()

    def _consider(self, pod: Object) -> None:
        """A pod as it was a moment ago; pods of an earlier object of this name are none of ours."""
        if any(ref.get("uid") == self._uid for ref in pod["metadata"].get("ownerReferences") or ()):
            self._known[str(pod["metadata"]["name"])] = members.member(pod)
            self._read_started()

    def _read_started(self) -> None:
        """Start a reader for every started pod that has none, or whose reader lost its stream."""
        args = self._session.args
        found = members.in_order(self._known.values())
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
        """True when it was no line but the news that the object has changed."""
        if isinstance(item, Changed):
            if item.pod is not None:
                self._consider(item.pod)
            return item.pod is None
        if isinstance(item, Exception):
            raise item
        self._news.clear()
        self._writer.write(item)
        if self._items.empty():
            sys.stdout.flush()
        return False

    def _conclude(self, end: Outcome, owner: Object | None) -> int:
        self._news.clear()
        if end.exit_code != OK:
            self._session.note(f"{self._place.display} {end.state}: {end.message}")
            if owner is not None and (step := outcome.next_step(owner)):
                self._session.note(f"next:  {step}")
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
    """Tells every change of some objects. Where they cannot be watched, the follower's own looks have to suffice."""

    def __init__(
        self,
        api: Api,
        resource: Resource,
        namespace: str | None,
        items: Items,
        *,
        fields: str | None = None,
        labels: str | None = None,
    ) -> None:
        super().__init__(daemon=True, name=f"watch-{resource.plural}")
        self._api = api
        self._resource = resource
        self._namespace = namespace
        self._items = items
        self._fields = fields
        self._labels = labels

    def run(self) -> None:
        while True:
            changes = self._api.client.watch(
                self._resource,
                self._namespace,
                field_selector=self._fields,
                label_selector=self._labels,
                timeout=WATCH_SECONDS,
            )
            try:
                for event in self._api.each(changes):
                    if event.type != "BOOKMARK":
                        self._items.put(Changed(event.object if self._labels else None))
            except ApiError:
                pass  # out of reach, not allowed, too old: looked at again in a moment
            time.sleep(LOOK_SECONDS)


def is_terminal(stream: TextIO) -> bool:
    return stream.isatty()


class News:
    """While nothing runs, says why, whenever that changes and at most every few seconds.

    On a terminal a reason that passes by itself, such as an image that is built, is one line that is written anew.
    Once the pods are known to fit nowhere, the command that says what would help follows, once.
    """

    def __init__(self, session: Session, place: Place) -> None:
        self._session = session
        self._place = place
        self._said = ""
        self._advised = False
        self._terminal = is_terminal(sys.stderr)
        self._rows = 0
        """Rows of the terminal that hold a text which is written over by the next one."""
        self._quiet_until = time.monotonic() + FIRST_NEWS

    def tell(self, owner: Object) -> None:
        if time.monotonic() < self._quiet_until or self._session.args.output:
            return
        from paddlecloud.cli.commands.describe import examine

        self._quiet_until = time.monotonic() + (NEXT_LIVE if self._terminal else NEXT_NEWS)
        _, _, verdict = examine(self._session, owner)
        if verdict.text == self._said:
            return
        self._said = verdict.text
        self.clear()
        if self._terminal and verdict.reason in ON_THE_WAY:
            sys.stderr.write(verdict.text)
            sys.stderr.flush()
            self._rows = -(-len(verdict.text) // shutil.get_terminal_size().columns)
        else:
            self._session.note(f"{self._place.display}: {verdict.text}")
        if verdict.reason in UNSCHEDULABLE and not self._advised:
            self._advised = True
            kind = "pdj" if self._place.resource == PADDLEJOBS else self._place.resource.kind.lower()
            self._session.note(f"next:  pdc explain {kind}/{self._place.name}")

    def clear(self) -> None:
        """Make room for other output."""
        if self._rows:
            sys.stderr.write("\r\x1b[K" + "\x1b[A\x1b[2K" * (self._rows - 1))
            sys.stderr.flush()
            self._rows = 0
