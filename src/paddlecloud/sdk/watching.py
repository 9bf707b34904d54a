"""Waiting for an object to reach a state: one list, then a watch, never polling.

`observe` awaits nothing but the client and `sleep`, so the command line drives it without an event loop and interrupts
it by an alarm (`cli.objects.waiting`); the SDK runs it on one, with its time-out (`until`).
"""

from __future__ import annotations

import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing
from typing import TypeVar

from paddlecloud.kube import watching
from paddlecloud.kube.client import Client
from paddlecloud.kube.errors import Expired, Gone, Unreachable
from paddlecloud.kube.resource import Object
from paddlecloud.sdk.object_ref import ObjectRef
from paddlecloud.sdk.outcome import message_of

T = TypeVar("T")

WATCH_SECONDS = 240
"""Longer watches are cut by proxies without a word."""
RETRIES = 5
ROUND_SECONDS = 1.0


async def until(
    client: Client, place: ObjectRef, check: Callable[[Object | None], T | None], *, timeout: float | None
) -> T:
    """The first answer of `check` that is not None; it gets None while the object does not exist.

    Raises `TimeoutError`. A server that goes away meanwhile is asked again a few times.
    """
    import asyncio

    last: Object | None = None

    def seen(state: Object | None) -> T | None:
        nonlocal last
        last = state
        return check(state)

    deadline = math.inf if timeout is None else time.monotonic() + timeout
    try:
        return await asyncio.wait_for(observe(client, place, seen, sleep=asyncio.sleep, deadline=deadline), timeout)
    except (asyncio.TimeoutError, TimeoutError):  # the same since Python 3.11
        raise TimeoutError(f"{place} {_state(last)} after {timeout:g} s") from None


def _state(last: Object | None) -> str:
    """What is known of an object that did not reach the awaited state."""
    if last is None:
        return "does not exist"
    phase, message = (last.get("status") or {}).get("phase"), message_of(last)
    state = f"is still {phase}" if phase else "is not as far"
    return f"{state} ({message})" if message and message != phase else state


async def observe(
    client: Client,
    place: ObjectRef,
    check: Callable[[Object | None], T | None],
    *,
    sleep: Callable[[float], Awaitable[None]],
    deadline: float = math.inf,
) -> T:
    """As `until`. `deadline` is checked between watches only: the caller interrupts a server that stays silent."""
    failures = 0
    for pause in rounds(deadline):
        await sleep(pause)
        seconds = max(1, int(min(WATCH_SECONDS, deadline - time.monotonic() + 1)))
        try:
            async with aclosing(_states(client, place, seconds=seconds)) as states:
                async for state in states:
                    answer = check(state)
                    if answer is not None:
                        return answer
                    failures = 0
        except (Expired, Gone):
            pass  # listed again, as any watcher must
        except Unreachable:
            failures += 1
            if failures > RETRIES:
                raise
    raise TimeoutError(f"{place}: the deadline has passed")


def rounds(deadline: float = math.inf) -> Iterator[float]:
    """Turns of a loop that watches again, each with the pause before it; the last begins at the deadline.

    They begin a second apart at least, so that a server that ends every watch is not hammered.
    """
    pause = 0.0
    while True:
        begin = time.monotonic() + pause
        yield pause
        now = time.monotonic()
        if now >= deadline:
            return
        pause = max(0.0, min(begin + ROUND_SECONDS, deadline) - now)


async def _states(client: Client, place: ObjectRef, *, seconds: int) -> AsyncGenerator[Object | None, None]:
    """The object now and after every change; ends when the watch does."""
    selector = watching.named(place.name)
    found = await client.list(place.resource, place.namespace, field_selector=selector)
    states = watching.states(client, place.resource, place.namespace, found, selector, seconds=seconds)
    async with aclosing(states) as following:
        async for state in following:
            yield state
