"""The progress of a transfer that a controller reports: a bar on terminals, a line every few seconds in pipes."""

from __future__ import annotations

import sys
import time
from typing import Any

from paddlecloud.cli.render.progress import size
from paddlecloud.cli.session import wants_colour
from paddlecloud.kube.resource import Object

EVERY = 3.0
"""Seconds between two lines in a pipe."""


class TransferBar:
    """`show` takes the status of a SampleJob or SampleSet as it comes."""

    def __init__(self, title: str, *, quiet: bool = False) -> None:
        self._title = title
        self._quiet = quiet
        self._said = ("", -EVERY)
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> TransferBar:
        if not self._quiet and wants_colour(sys.stderr):
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
            self._bar = Progress(*columns, console=Console(stderr=True, highlight=False), transient=True)
            self._task = self._bar.add_task(self._title, total=None)
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, status: Object) -> None:
        text = describe(status)
        progress = status.get("progress") or {}
        if self._bar is not None:
            total = progress.get("totalBytes") or None
            self._bar.update(
                self._task, description=f"{self._title}: {text}", total=total, completed=progress.get("bytes") or 0
            )
            return
        now = time.monotonic()
        if self._quiet or text == self._said[0] or now - self._said[1] < EVERY:
            return
        self._said = (text, now)
        print(f"{self._title}: {text}", file=sys.stderr, flush=True)


def describe(status: Object) -> str:
    """`Running, 12 of 40 files, 1.2 MB of 4.0 MB, 300 kB/s, 9 s left`."""
    progress = status.get("progress") or {}
    parts = [str(status.get("phase") or "waiting")]
    if progress.get("totalFiles"):
        parts.append(f"{progress.get('files') or 0:,} of {progress['totalFiles']:,} files")
    if progress.get("totalBytes"):
        parts.append(f"{size(progress.get('bytes') or 0)} of {size(progress['totalBytes'])}")
    if progress.get("bytesPerSecond"):
        parts.append(f"{size(progress['bytesPerSecond'])}/s")
    if progress.get("secondsLeft"):
        parts.append(f"{progress['secondsLeft']} s left")
    if len(parts) == 1 and status.get("message"):
        parts.append(str(status["message"]))
    return ", ".join(parts)
