"""Live pages: the parts that changed, as server-sent events.

A page that is open waits for changes of what it has read. Then it is drawn anew with the rights that its viewer has at
that moment, and the parts whose text is another are sent. Changes come in bursts, so one drawing answers for all that
came within a moment; drawings take at most a fifth of the time.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import NamedTuple

import msgspec
from aiohttp import web

from paddlecloud.ui.feed import Dependency, Feed

GATHER_SECONDS = 0.05
MOST_SECONDS = 10.0
"""Drawn anew after this time in any case: verdicts also rest on what no watch of the page reports."""
IDLE_SHARE = 4


Events = AsyncGenerator[bytes, None]


class Drawn(NamedTuple):
    parts: dict[str, str]
    reads: frozenset[Dependency]


async def parts(feed: Feed, draw: Callable[[], Awaitable[Drawn]]) -> AsyncGenerator[dict[str, str], None]:
    """Block → HTML, of those that differ from what was sent before; first all of them. Empty ones keep a line alive."""
    sent: dict[str, bytes] = {}
    with feed.subscription() as subscription:
        while True:
            subscription.changed.clear()
            began = time.monotonic()
            drawn = await draw()
            feed.follow(subscription, drawn.reads)
            digests = {name: hashlib.sha256(html.encode()).digest() for name, html in drawn.parts.items()}
            yield {name: drawn.parts[name] for name, digest in digests.items() if sent.get(name) != digest}
            sent = digests
            ended = time.monotonic()
            try:
                await asyncio.wait_for(subscription.changed.wait(), MOST_SECONDS)
            except asyncio.TimeoutError:
                continue
            due = ended + IDLE_SHARE * (ended - began)
            await asyncio.sleep(max(GATHER_SECONDS, due - time.monotonic()))


def event(name: str, body: object) -> bytes:
    """One server-sent event; JSON has no line breaks, so it is one line of data."""
    return f"event: {name}\ndata: {msgspec.json.encode(body).decode()}\n\n".encode()


LOOK_SECONDS = 1.0
"""How often it is looked whether the viewer is still there."""
BEAT_SECONDS = 15.0
"""After which a stream without events sends a comment: a connection that broke without a word ends then."""


async def send(request: web.Request, answer: web.StreamResponse, events: Events, over: asyncio.Event) -> None:
    """Until the events end, nobody takes them any more, or the session is over."""
    sent = time.monotonic()
    step: asyncio.Task[bytes] | None = None
    try:
        while True:
            step = step or asyncio.ensure_future(events.__anext__())
            done, _ = await asyncio.wait((step,), timeout=LOOK_SECONDS)
            if over.is_set() or request.transport is None or request.transport.is_closing():
                return
            if done:
                finished, step = step, None
                try:
                    text = finished.result()
                except StopAsyncIteration:
                    return
            elif time.monotonic() - sent >= BEAT_SECONDS:
                text = b": still here\n\n"
            else:
                continue
            await answer.write(text)
            sent = time.monotonic()
    finally:
        if step is not None:
            step.cancel()
            await asyncio.gather(step, return_exceptions=True)
