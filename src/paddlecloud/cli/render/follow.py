"""`logs -f` on a terminal: prints what `sdk.following` reads; until something runs, the reason is shown on stderr.

The end of the job (or of the one pod) ends the command; Ctrl-C detaches from it.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Sequence
from typing import TextIO

from paddlecloud.api.paddlejob.cause import ON_THE_WAY
from paddlecloud.cli.control_characters import visible
from paddlecloud.cli.failures import INTERRUPTED, OK
from paddlecloud.cli.objects import members, outcome
from paddlecloud.cli.objects.embedded import is_embedded
from paddlecloud.cli.objects.members import Member
from paddlecloud.cli.objects.outcome import GONE
from paddlecloud.cli.objects.placing import ObjectRef
from paddlecloud.cli.objects.thread_tasks import ThreadTasks
from paddlecloud.cli.objects.why import Verdict
from paddlecloud.cli.render.log_lines import Writer
from paddlecloud.cli.session import Session
from paddlecloud.kube.resource import PADDLEJOBS, Object
from paddlecloud.sdk.following import Follower
from paddlecloud.sdk.logs import Line, LogOptions

FIRST_NEWS, NEXT_NEWS, NEXT_LIVE = 2.0, 5.0, 1.0
NEXT_PROGRESS = 30.0
"""Seconds between two lines about a reason that passes by itself, where each stays: in a file or a pipe."""
UNSCHEDULABLE = frozenset(("Unschedulable", "NotEnoughResources"))
"""Reasons of verdicts that `pdc explain` answers with what would help."""

IMAGE_SECONDS, IMAGE_AGAIN_SECONDS = 60, 600
"""How long a PaddleJob waits for an image that has no recipe: one that never ran, one that did. As its controller
(`controllers.paddlejob.decision.startup`), which is not imported for two numbers."""


class Printer:
    """Follows one object to its end and prints the lines of the pods that the flags choose."""

    def __init__(
        self,
        session: Session,
        place: ObjectRef,
        writer: Writer,
        options: LogOptions,
        *,
        only: Callable[[Member], bool] = lambda one: True,
    ) -> None:
        """`only` narrows what the flags choose."""
        self._session = session
        self._only = only
        self._place = place
        self._writer = writer
        self._tasks = ThreadTasks()
        self._follower = Follower(session.api.client, place, self._choose, options, self._tasks)
        self._news = News(session, place)

    def run(self, owner: Object) -> int:
        """The exit code of how the object ended."""
        last: Object | None = owner
        try:
            for item in self._session.api.each(self._follower.lines(owner)):
                if isinstance(item, Line):
                    self._print(item)
                else:
                    last = item.owner
                    if last is not None and item.waiting:
                        self._news.report(last)
        except KeyboardInterrupt:
            self._news.clear()
            name = self._place.name if self._place.resource == PADDLEJOBS else self._place.display
            self._session.note(f"detached; it goes on. To come back: pdc logs -f {name}")
            return INTERRUPTED
        return self._conclude(last)

    def _choose(self, found: Sequence[Member]) -> Sequence[Member]:
        args = self._session.args
        chosen = [one for one in members.choose(found, ranks=args.rank, everything=args.all_ranks) if self._only(one)]
        self._writer.introduce(chosen)
        return chosen

    def _print(self, line: Line) -> None:
        self._news.clear()
        self._writer.write(line)
        if self._tasks.idle:
            sys.stdout.flush()

    def _conclude(self, owner: Object | None) -> int:
        sys.stdout.flush()
        self._news.clear()
        end = (outcome.finished(owner) if owner is not None else None) or GONE
        if end.exit_code != OK:
            self._session.note(f"{self._place.display} {end.state}: {end.message}")
            if owner is not None and (step := outcome.next_step(owner, embedded=is_embedded(self._session))):
                self._session.note(f"next:  {step}")
        return end.exit_code


def is_terminal(stream: TextIO) -> bool:
    return stream.isatty()


class News:
    """While nothing runs, says why, whenever that changes and at most every few seconds.

    On a terminal a reason that passes by itself, such as an image that is built, is one line that is written anew;
    elsewhere it is printed more rarely.
    Once the pods are known to fit nowhere, or their image to have no recipe, the command that helps follows, once.
    """

    def __init__(self, session: Session, place: ObjectRef) -> None:
        self._session = session
        self._place = place
        self._said = ""
        self._advised = False
        self._reason = ""
        self._progress_due = 0.0
        self._terminal = is_terminal(sys.stderr)
        self._rows = 0
        """Rows of the terminal that hold a text which is written over by the next one."""
        self._quiet_until = time.monotonic() + FIRST_NEWS

    def report(self, owner: Object) -> None:
        if time.monotonic() < self._quiet_until or self._session.args.output:
            return
        from paddlecloud.cli.objects.examination import examine

        self._quiet_until = time.monotonic() + (NEXT_LIVE if self._terminal else NEXT_NEWS)
        _, _, verdict = examine(self._session, owner)
        if verdict.text == self._said or self._is_recent_progress(verdict):
            return
        self._said, self._reason = verdict.text, verdict.reason
        self._progress_due = time.monotonic() + NEXT_PROGRESS
        self.clear()
        if self._terminal and verdict.reason in ON_THE_WAY:
            text = visible(verdict.text)
            sys.stderr.write(text)
            sys.stderr.flush()
            self._rows = -(-len(text) // shutil.get_terminal_size().columns)
        else:
            self._session.note(f"{self._place.display}: {verdict.text}")
        if not self._advised and (step := self._next_step(verdict, owner)):
            self._advised = True
            self._session.note(f"next:  {step}")

    def _next_step(self, verdict: Verdict, owner: Object) -> str:
        if verdict.reason in UNSCHEDULABLE:
            kind = "pdj" if self._place.resource == PADDLEJOBS else self._place.resource.kind.lower()
            return f"pdc explain {kind}/{self._place.name}"
        build = outcome.build_command(verdict.text)
        if not build:
            return ""
        if self._place.resource != PADDLEJOBS:
            return f"{build}    (elsewhere; it waits for the image and then starts by itself)"
        seconds = IMAGE_AGAIN_SECONDS if (owner.get("status") or {}).get("startTime") else IMAGE_SECONDS
        return f"{build}    (elsewhere; the job fails after {seconds} seconds unless the image has a recipe by then)"

    def _is_recent_progress(self, verdict: Verdict) -> bool:
        passing = verdict.reason in ON_THE_WAY and verdict.reason == self._reason
        return passing and bool(verdict.reason) and not self._terminal and time.monotonic() < self._progress_due

    def clear(self) -> None:
        """Make room for other output."""
        if self._rows:
            sys.stderr.write("\r\x1b[K" + "\x1b[A\x1b[2K" * (self._rows - 1))
            sys.stderr.flush()
            self._rows = 0
