"""What a training program reports: how far it is, which checkpoint is whole, that it is alive.

    from paddlecloud.data import report

    report.progress(step=step, total=steps, loss=loss)
    report.checkpoint("/checkpoint/last.pdparams", step=step)

In a pod of a PaddleJob this reaches the job's status (`kubectl get pdj -o wide`, `pdc ps`); anywhere else it does
nothing. It never raises and never waits: calls only note what is new, a separate thread sends it, every two seconds
at most, and gives up quietly when nobody answers.

Where the job asks for heartbeats (`hangDetection.heartbeatSeconds`) every call counts as one. A program that stops
calling writes the stacks of all its threads to its log, shortly before the job is restarted for it.

Standard library only: training images hold this file and nothing else of the project.
"""

from __future__ import annotations

import atexit
import faulthandler
import json
import math
import os
import tempfile
import threading
import time
from typing import Any

__all__ = ["cache", "checkpoint", "enabled", "flush", "heartbeat", "latest", "progress"]

URL, TOKEN, HEARTBEAT = "PADDLECLOUD_REPORT_URL", "PADDLECLOUD_REPORT_TOKEN", "PADDLECLOUD_HEARTBEAT_SECONDS"

INTERVAL = 2.0
"""Seconds between two messages; what is noted in between is sent as one."""
SOON = 0.5
"""Seconds between two messages of which the second is urgent: more often, and the controller would refuse them."""
PATIENCE = 3.0
"""Seconds a message may take."""
LONGEST_PAUSE = 30.0
"""Seconds between attempts while nobody answers."""
STACKS_AT = 0.8
"""Part of the time a job may be silent after which the stacks are written: before it is restarted, not after."""
HELD = 3.0
"""Seconds our thread may be late with them before a hung extension is taken to hold the interpreter."""
STACKS_LIMIT = 8000
LOG = 2
"""The descriptor of the log, wherever sys.stderr may point."""


def enabled() -> bool:
    """Whether somebody listens."""
    return bool(os.environ.get(URL) and os.environ.get(TOKEN))


def progress(
    step: int | None = None,
    total: int | None = None,
    *,
    epoch: int | None = None,
    epochs: int | None = None,
    loss: Any = None,
    samples_per_second: Any = None,
    **metrics: Any,
) -> None:
    """How far the training is. `total` and `epochs` are how many there will be; `metrics` are numbers by name."""
    numbers = {name: value for name, raw in metrics.items() if (value := _number(raw)) is not None}
    _latest.update(_given(loss=_number(loss), **numbers))
    _note(
        step=_whole(step),
        totalSteps=_whole(total),
        epoch=_whole(epoch),
        totalEpochs=_whole(epochs),
        loss=_number(loss),
        samplesPerSecond=_number(samples_per_second),
        metrics=numbers or None,
    )


def latest() -> dict[str, float]:
    """The loss and the metrics as this process reported them last, also where nobody listens."""
    return dict(_latest)


def checkpoint(path: Any, *, step: int | None = None, epoch: int | None = None) -> None:
    """A checkpoint is complete: a restart begins from it."""
    _note(at_once=True, checkpoint=_given(path=str(path), step=_whole(step), epoch=_whole(epoch)))


def cache(
    *, hits: int, misses: int, stall_seconds: float = 0.0, epochs: dict[int, dict[str, Any]] | None = None
) -> None:
    """How data was read since the program began: from the node's cache, from elsewhere, and the time spent waiting.

    `epochs` says the same, in the same words, of the last epochs by number.
    """
    each = [{"epoch": _whole(number), **_reads(**figures)} for number, figures in (epochs or {}).items()]
    _note(cache=_given(**_reads(hits, misses, stall_seconds), epochs=each or None))


def _reads(hits: Any, misses: Any, stall_seconds: Any = 0.0) -> dict[str, Any]:
    return _given(hits=_whole(hits), misses=_whole(misses), stallSeconds=_number(stall_seconds))


def heartbeat() -> None:
    """The program is alive, and there is nothing else to report."""
    _note()


def flush(timeout: float = 2.0) -> None:
    """Wait until what was noted has been sent, for so long at most. Done by itself when the program ends."""
    if _sender is not None:
        _sender.flush(timeout)


# Values come from anywhere: numpy, tensors, None. What is not a number is left out.


def _whole(value: Any) -> int | None:
    try:
        return None if value is None else int(value)
    except Exception:
        return None


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except Exception:
        return None
    return number if math.isfinite(number) else None


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


_latest: dict[str, float] = {}
_sender: _Sender | None = None
_starting = threading.Lock()


def _note(*, at_once: bool = False, **fields: Any) -> None:
    """Nothing that happens here is the training's business."""
    try:
        if enabled():
            _the_sender().note(_given(**fields), at_once=at_once)
    except Exception:
        return


def _the_sender() -> _Sender:
    global _sender
    with _starting:
        if _sender is None:
            _sender = _Sender(os.environ[URL], os.environ[TOKEN], float(os.environ.get(HEARTBEAT) or 0))
        return _sender


def _forget_after_fork() -> None:
    """Threads do not survive a fork: the child, if it reports at all, begins anew."""
    global _sender, _starting
    _sender, _starting = None, threading.Lock()


class _Sender:
    """`note` is called by the program; everything else happens in the thread."""

    def __init__(self, url: str, token: str, silence: float) -> None:
        self._url = url
        self._token = token
        self._silence = silence * STACKS_AT
        self._changed = threading.Condition()
        self._pending: dict[str, Any] | None = None
        self._urgent = False
        self._last_words = False
        self._sending = False
        self._noted = time.monotonic()
        self._sent = -math.inf
        self._pause = INTERVAL
        self._armed = -math.inf
        self._sent_stacks = False
        self._failures = 0
        self._arm()
        threading.Thread(target=self._run, name="paddlecloud-report", daemon=True).start()

    def note(self, fields: dict[str, Any], *, at_once: bool) -> None:
        with self._changed:
            self._pending = {**(self._pending or {}), **fields}
            self._urgent = self._urgent or at_once
            self._noted = time.monotonic()
            self._sent_stacks = False
            if at_once or self._noted - self._sent >= self._gap():
                self._changed.notify_all()
        self._arm()

    def flush(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        with self._changed:
            self._last_words = True
            self._changed.notify_all()
            failed = self._failures
            while (self._pending is not None or self._sending) and (left := deadline - time.monotonic()) > 0:
                self._changed.wait(left)
                if self._failures > failed:
                    return  # nobody is there: the program has better things to do than to wait

    def _arm(self) -> None:
        """Have a watchdog write all stacks to the log if our thread does not come to do it.

        An extension that hangs holding the interpreter stops every Python thread, ours included. The watchdog reads
        the stacks without holding the interpreter itself: safe while nothing runs, a crash of the training while
        something does. So it comes well after our thread, which calls it off.
        """
        if self._silence > 0 and self._noted - self._armed >= min(1.0, self._silence / 4):
            self._armed = self._noted
            faulthandler.dump_traceback_later(self._silence + HELD, file=LOG)

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._due():
                    self._changed.wait(self._until_due())
                if not self._due():
                    continue
                values, self._pending, self._urgent, self._last_words = self._pending, None, False, False
                stacks = self._silent_for_long() and not self._sent_stacks
                self._sending = True
            if stacks:
                self._sent_stacks = True
                values = {**(values or {}), "stacks": _write_stacks()}
            arrived = self._try_to_post(values or {})
            with self._changed:
                self._sending = False
                self._sent = time.monotonic()
                self._pause = INTERVAL if arrived else min(LONGEST_PAUSE, 2 * self._pause)
                self._failures += not arrived
                if not arrived and values is not None:
                    self._pending = {
                        **values,
                        **(self._pending or {}),
                    }  # sent later, unless there is something newer by then
                self._changed.notify_all()

    def _due(self) -> bool:
        if self._silent_for_long() and not self._sent_stacks:
            return True
        return self._pending is not None and (self._last_words or time.monotonic() - self._sent >= self._gap())

    def _gap(self) -> float:
        """Seconds that must lie between the last message and the next."""
        return min(SOON, self._pause) if self._urgent else self._pause

    def _until_due(self) -> float | None:
        """How long to sleep when nobody wakes us."""
        now = time.monotonic()
        times = [self._sent + self._gap() - now] if self._pending is not None else []
        if self._silence > 0 and not self._sent_stacks:
            times.append(self._noted + self._silence - now)
        return max(0.05, min(times)) if times else None

    def _silent_for_long(self) -> bool:
        return self._silence > 0 and time.monotonic() - self._noted >= self._silence

    def _try_to_post(self, body: dict[str, Any]) -> bool:
        try:
            return self._post(body)
        except Exception:
            return False  # whatever it was: the next attempt may fare better, and training does not care

    def _post(self, body: dict[str, Any]) -> bool:
        import http.client
        from urllib.parse import urlsplit

        place = urlsplit(self._url)
        kind = http.client.HTTPSConnection if place.scheme == "https" else http.client.HTTPConnection
        connection = kind(place.hostname or "", place.port, timeout=PATIENCE)  # straight there: no proxy knows pods
        try:
            content = json.dumps(body).encode()
            proof = sign(self._token, place.path.encode(), content)
            headers = {"Authorization": f"Signed {proof}", "Content-Type": "application/json"}
            connection.request("POST", place.path, content, headers)
            answer = connection.getresponse()
            answer.read()
            return answer.status < 300
        finally:
            connection.close()


def sign(token: str, *parts: bytes) -> str:
    """Proof that a message is from somebody who has the token, which itself is never sent.

    Who listens at an address may not be who should: after a crash another program can have taken it.
    """
    import hashlib
    import hmac

    return hmac.new(token.encode(), b"\n".join(parts), hashlib.sha256).hexdigest()


def _write_stacks() -> str:
    """The stacks of all threads, the innermost frames first: to the log, and returned.

    The current thread is the reporter's own, and says nothing of the program: it comes last in what is returned.
    """
    faulthandler.cancel_dump_traceback_later()
    faulthandler.dump_traceback(file=LOG, all_threads=True)
    with tempfile.TemporaryFile("w+") as file:
        faulthandler.dump_traceback(file=file, all_threads=True)
        file.seek(0)
        threads = file.read().split("\n\n")
    return "\n\n".join(sorted(threads, key=lambda stack: stack.startswith("Current thread")))[:STACKS_LIMIT]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
atexit.register(flush, 1.0)
if enabled() and os.environ.get(HEARTBEAT):
    _note()  # from here on silence is noticed, even if the program never comes to its first step
