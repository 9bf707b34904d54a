"""Waiting for an object to reach a state (`sdk.watching`) without an event loop, with a deadline that always holds."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from paddlecloud.cli.objects.api import Api
from paddlecloud.cli.objects.placing import ObjectRef
from paddlecloud.kube.errors import NotFound
from paddlecloud.kube.resource import Object
from paddlecloud.kube.stdlib import sleep
from paddlecloud.sdk.watching import observe

T = TypeVar("T")


class DeadlineError(Exception):
    """The time given is over. `last` is the object as it was seen last, None when it did not exist."""

    def __init__(self, last: Object | None) -> None:
        super().__init__("deadline")
        self.last = last


def until(api: Api, place: ObjectRef, check: Callable[[Object | None], T | None], *, timeout: float | None) -> T:
    """The first answer of `check` that is not None. `check` gets None while the object does not exist.

    A timeout of zero looks once. A server that goes away while we wait is asked again a few times.
    """
    last: Object | None = None

    def seen(state: Object | None) -> T | None:
        nonlocal last
        last = state
        return check(state)

    if timeout == 0:
        answer = seen(_read(api, place))
        if answer is None:
            raise DeadlineError(last)
        return answer
    deadline = math.inf if timeout is None else time.monotonic() + timeout
    try:
        with _alarm(deadline):
            return api.do(observe(api.client, place, seen, sleep=sleep, deadline=deadline))
    except (TimeoutError, _Ring):
        raise DeadlineError(last) from None


def _read(api: Api, place: ObjectRef) -> Object | None:
    try:
        return api.do(api.client.get(place.resource, place.name, place.namespace))
    except NotFound:
        return None


class _Ring(BaseException):
    """Raised by the alarm; no `except Exception` on the way may take it for its own failure."""


@contextmanager
def _alarm(deadline: float) -> Iterator[None]:
    """A server may ignore timeoutSeconds, and a read from a silent socket never returns: the clock interrupts it."""
    if deadline == math.inf:
        yield
        return

    def ring(*_: object) -> None:
        raise _Ring

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, max(0.001, deadline - time.monotonic()))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
