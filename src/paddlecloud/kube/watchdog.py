"""Names the callback that holds the event loop: while it runs, nobody else is served and nothing else is logged.

A thread looks at the loop's thread four times a second. A callback counts as holding the loop for as long as it runs or
is blocked in the kernel; time in which the machine ran something else (load, a stopped process, a suspended laptop)
does not count, so a slow machine is never blamed on a task. After `LIMIT` seconds the task and its stack are logged,
once for each callback.

A single call into C that keeps the interpreter's lock cannot be looked at while it lasts: it is reported when it ends,
with what runs then, which is often but not always the task that made the call.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
import traceback
from pathlib import Path
from types import FrameType

log = logging.getLogger(__name__)

LIMIT = 1.0
LOOK_EVERY = 0.25


class LoopWatchdog:
    """Watches the event loop of the thread that makes it, while entered: `with LoopWatchdog(loop): …`."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, *, limit: float = LIMIT, look_every: float = LOOK_EVERY
    ) -> None:
        self._loop = loop
        self._limit = limit
        self._look_every = look_every
        self._watched = threading.get_ident()
        self._times = _ThreadTimes(self._watched, threading.get_native_id())
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="loop-watchdog", daemon=True)

    def __enter__(self) -> LoopWatchdog:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        callback: FrameType | None = None
        held, reported = 0.0, False
        while not self._ended.wait(self._look_every):
            seen = _callback_of(sys._current_frames().get(self._watched))
            ran, blocked = self._times.since_last(longest=2 * self._look_every)
            if seen is None or seen is not callback:
                callback, held, reported = seen, 0.0, False
                if ran >= self._limit:  # without a look in between: the lock was kept all the while
                    self._report("one call into C", ran)
                    reported = True
                continue
            held += ran + blocked
            if held >= self._limit and not reported:
                self._report(self._name(seen), held)
                reported = True

    def _name(self, callback: FrameType) -> str:
        task = asyncio.current_task(self._loop)
        return f"{task.get_name()} ({task.get_coro()})" if task is not None else str(callback.f_locals.get("self"))

    def _report(self, what: str, held: float) -> None:
        stack = "".join(traceback.format_stack(sys._current_frames().get(self._watched)))
        log.warning(
            "%s has held the event loop for %.1f s; nothing else was served meanwhile; it is now at\n%s",
            what,
            held,
            stack,
        )


class _ThreadTimes:
    """How the time of one thread passes."""

    def __init__(self, ident: int, native_id: int) -> None:
        self._clock = time.pthread_getcpuclockid(ident)
        self._statistics = Path(f"/proc/self/task/{native_id}/schedstat")
        self._before = self._now()

    def since_last(self, *, longest: float) -> tuple[float, float]:
        """Seconds the thread ran, and seconds it was blocked, of at most the `longest` that can have passed.

        Being late oneself is a sign of a stopped process or a starved machine, and says nothing about the thread.
        """
        before, self._before = self._before, self._now()
        passed, ran, queued = (after - former for after, former in zip(self._before, before, strict=True))
        return ran, max(0.0, min(passed, longest) - ran - queued)

    def _now(self) -> tuple[float, float, float]:
        """The wall clock, the CPU time used, and the time spent ready to run while the machine ran something else."""
        wall, cpu = time.monotonic(), time.clock_gettime(self._clock)
        try:
            return wall, cpu, int(self._statistics.read_text().split()[1]) / 1e9
        except (OSError, IndexError, ValueError):
            return wall, cpu, wall - cpu  # no such statistics here: only CPU time counts


def _callback_of(frame: FrameType | None) -> FrameType | None:
    """The frame of the callback that the loop runs: a new one for each, and none while the loop waits for events."""
    inner: FrameType | None = None
    while frame is not None:
        if frame.f_code.co_name == "_run_once":
            return inner if inner is not None and inner.f_code.co_name == "_run" else None
        inner, frame = frame, frame.f_back
    return None
