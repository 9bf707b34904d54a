"""Waiting for an object to reach a state: one read, then a watch, never polling; a deadline that always holds."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from paddlecloud.cli.objects.api import Api
from paddlecloud.cli.objects.placing import Place
from paddlecloud.kube.errors import Expired, Gone, NotFound, Unreachable
from paddlecloud.kube.resource import Object

T = TypeVar("T")

WATCH_SECONDS = 240
"""Longer watches are cut by proxies without a word."""
RETRIES = 5
ROUND_SECONDS = 1.0


class DeadlineError(Exception):
    """The time given is over. `last` is the object as it was seen last, None when it did not exist."""

    def __init__(self, last: Object | None) -> None:
        super().__init__("deadline")
        self.last = last


def until(api: Api, place: Place, check: Callable[[Object | None], T | None], *, timeout: float | None) -> T:
    """The first answer of `check` that is not None. `check` gets None while the object does not exist.

    A timeout of zero looks once. A server that goes away while we wait is asked again a few times.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    paced = rounds(limit=deadline)
    last: Object | None = None
    failures = 0
    while True:
        next(paced)
        try:
            with _alarm(deadline):
                for last in _states(api, place, once=timeout == 0, deadline=deadline):
                    answer = check(last)
                    if answer is not None:
                        return answer
                    failures = 0
        except (Expired, Gone):
            continue
        except Unreachable:
            failures += 1
            if failures > RETRIES:
                raise
        except _Ring:
            raise DeadlineError(last) from None
        if deadline is not None and time.monotonic() >= deadline:
            raise DeadlineError(last)


def rounds(*, limit: float | None = None) -> Iterator[None]:
    """Turns of a loop that watches again: a second apart, so that a server that ends every watch is not hammered."""
    while True:
        began = time.monotonic()
        yield
        pause = began + ROUND_SECONDS - time.monotonic()
        if limit is not None:
            pause = min(pause, limit - time.monotonic())
        if pause > 0:
            time.sleep(pause)


def _states(api: Api, place: Place, *, once: bool, deadline: float | None) -> Iterator[Object | None]:
    """The object now and after every change; ends when the watch does."""
    client, resource = api.client, place.resource
    if once:
        yield _read(api, place)
        return
    selector = f"metadata.name={place.name}"
    found = api.do(client.list(resource, place.namespace, field_selector=selector))
    yield found.items[0] if found.items else None
    seconds = max(1, int(min(WATCH_SECONDS, _left(deadline) + 1)))
    changes = client.watch(
        resource,
        place.namespace,
        resource_version=found.resource_version,
        field_selector=selector,
        timeout=seconds,
    )
    for event in api.each(changes):
        if event.type != "BOOKMARK":
            yield None if event.type == "DELETED" else event.object


def _read(api: Api, place: Place) -> Object | None:
    try:
        return api.do(api.client.get(place.resource, place.name, place.namespace))
    except NotFound:
        return None


def _left(deadline: float | None) -> float:
    return WATCH_SECONDS if deadline is None else max(0.0, deadline - time.monotonic())


class _Ring(BaseException):
    """Raised by the alarm; no `except Exception` on the way may take it for a failure of its own."""


@contextmanager
def _alarm(deadline: float | None) -> Iterator[None]:
    """A server may ignore timeoutSeconds, and a read from a silent socket never returns: the clock interrupts it."""
    if deadline is None or deadline <= time.monotonic():
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
