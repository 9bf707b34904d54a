"""Lines of logs as `pdc logs`, `pdc run` and `pdc apply` print them."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from paddlecloud.cli.objects.members import Member
from paddlecloud.cli.render import output
from paddlecloud.cli.session import SCHEMA, Session
from paddlecloud.local.images import stand_in
from paddlecloud.sdk.logs import Line, LogOptions

PALETTE = ("cyan", "green", "magenta", "yellow", "blue", "red")


class Writer:
    """Prints lines: with the rank before each when there are several, coloured by rank on a terminal.

    Where the lines of another pod of the same rank begin, a note on stderr says so: the job was restarted. Runs are
    counted by pods, so that all ranks count alike; one without a line has its note before the next one, or at the end,
    unless only some lines are asked for (`--tail`, `--since`): then it may have written others.
    """

    def __init__(self, session: Session, *, as_json: bool, options: LogOptions | None = None) -> None:
        self._session = session
        self._json = as_json
        self._all_lines = options is None or (options.tail is None and options.since is None)
        self._stamps = session.args.timestamps
        self._prefixes: dict[str, str] = {}
        self._several = False
        self._notes: set[str] = set()
        self._runs: dict[str, list[str]] = {}
        """By rank: the pods that had it, the oldest first."""
        self._begun: dict[str, int] = {}
        """By rank: how many of its runs have their note."""

    def introduce(self, chosen: Sequence[Member]) -> None:
        """Make room for the longest name before the first line is printed."""
        self._several = self._several or len({one.tag for one in chosen}) > 1
        size = max((len(one.tag) for one in chosen), default=0)
        for one in chosen:
            runs = self._runs.setdefault(one.tag, [])
            if one.uid not in runs:
                runs.append(one.uid)
            if one.name not in self._prefixes:
                colour = PALETTE[len(self._prefixes) % len(PALETTE)]
                self._prefixes[one.name] = self._session.paint(f"{one.tag:<{size}} |", colour) + " "

    def write(self, line: Line) -> None:
        if self._json:
            self._session.print_data(output.to_json_line(_record(line)))
            return
        if stand_in.is_log_line(line.text):  # once for all ranks and restarts that begin with it
            if line.text in self._notes:
                return
            self._notes.add(line.text)
        self._separate(line.member)
        prefix = self._prefixes.get(line.member.name, "") if self._several else ""
        stamp = f"{line.time} " if self._stamps else ""
        sys.stdout.write(f"{prefix}{stamp}{line.text}\n")

    def _separate(self, one: Member) -> None:
        runs = self._runs.setdefault(one.tag, [])
        if one.uid not in runs:
            runs.append(one.uid)
        self._note_runs(one.tag, runs.index(one.uid) + 1, silent=False)

    def _note_runs(self, tag: str, run: int, *, silent: bool) -> None:
        """Notes for the runs of a rank up to this one, which has lines unless it is `silent`."""
        for number in range(self._begun.get(tag, 0) + 1, run + 1):
            self._begun[tag] = number
            without = ", without output" if number < run or silent else ""
            if without and not self._all_lines:
                continue
            sys.stdout.flush()
            if number > 1:
                self._session.note(f"--- {tag}: restarted, run {number}{without} ---")
            elif without:
                self._session.note(f"--- {tag}: run 1{without} ---")

    def close(self) -> None:
        """All lines are written: runs without any have their note."""
        if self._json:
            return
        for tag, runs in self._runs.items():
            if len(runs) > 1:
                self._note_runs(tag, len(runs), silent=True)


def _record(line: Line) -> dict[str, object]:
    one = line.member
    body = {"pod": one.name, "role": one.role, "rank": one.rank, "time": line.time, "message": line.text}
    return {"apiVersion": SCHEMA, "kind": "LogLine", **body}
