"""Progress of work that takes longer than a second, on stderr: a live line on terminals, plain lines in pipes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from paddlecloud.cli.session import wants_colour
from paddlecloud.kube.sizes import size as size

ShowLine = Callable[[str], None]


@contextmanager
def working(title: str, *, quiet: bool = False) -> Iterator[ShowLine]:
    """While the block runs, `show(line)` shows what it is doing. On a terminal the title and the time stay below."""
    if quiet:
        yield lambda line: None
    elif wants_colour(sys.stderr):
        with _live(title) as show:
            yield show
    else:
        yield lambda line: print(line, file=sys.stderr, flush=True)


@contextmanager
def _live(title: str) -> Iterator[ShowLine]:
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True, highlight=False)
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        progress.add_task(title, total=None)
        yield lambda line: console.print(line, style="dim", markup=False, soft_wrap=True)


class Meter:
    """Bytes that move, printed at most every few seconds in a pipe and ten times a second on a terminal."""

    def __init__(self, title: str, *, total: int | None = None, quiet: bool = False) -> None:
        self._title = title
        self._total = total
        self.done = 0
        self._began = time.monotonic()
        self._terminal = wants_colour(sys.stderr)
        self._every = 0.1 if self._terminal else 3.0
        self._next = self._began + max(1.0, self._every)
        self._shown = False
        self._quiet = quiet

    def add(self, count: int) -> None:
        self.done += count
        now = time.monotonic()
        if self._quiet or now < self._next:
            return
        self._next = now + self._every
        self._shown = True
        text = f"{self._title}: {self.text(now)}"
        sys.stderr.write(f"\r\x1b[K{text}" if self._terminal else f"{text}\n")
        sys.stderr.flush()

    def text(self, now: float) -> str:
        rate = self.done / max(0.001, now - self._began)
        parts = [size(self.done) + (f" of {size(self._total)}" if self._total else ""), f"{size(int(rate))}/s"]
        if self._total and rate > 0:
            parts.append(f"{max(0, self._total - self.done) / rate:.0f} s left")
        return ", ".join(parts)

    def end(self) -> None:
        if self._shown and self._terminal:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
