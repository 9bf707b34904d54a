"""Engines come and go while controllers work: Volcano, Knative and whatever else brings kinds of its own.

A controller is made for the kinds that are served, and watches no others. `follow` keeps asking what is served, and
makes the controller anew when that has changed, which costs one list of everything it watches. It asks by discovery,
which every account may do: a watch on definitions of kinds would have been one more right.

What becomes of objects when their engine goes is not decided here.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Collection

from paddlecloud.kube.backoff import Backoff
from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import Clock, SystemClock
from paddlecloud.kube.errors import ApiError, ServiceUnavailable
from paddlecloud.kube.manager import Service
from paddlecloud.kube.resource import Resource

log = logging.getLogger(__name__)

LOOK_EVERY = 15.0
"""Seconds. A change counts when two looks agree: a server that has just come up shows its kinds one by one."""

Served = frozenset[Resource]
Find = Callable[[], Awaitable[Collection[Resource]]]
Make = Callable[[Served], Service]


async def served(client: Client, *, own: Resource, optional: Collection[Resource]) -> list[Resource]:
    """Which of the optional kinds this server has. Raises while it does not even have the controller's `own`."""
    known = {(entry.resource.api_version, entry.resource.kind) for entry in await client.discover()}
    if (own.api_version, own.kind) not in known:
        raise ServiceUnavailable(f"{own.kind} of {own.api_version} is not served: `pdc crds --apply` defines it")
    return [resource for resource in optional if (resource.api_version, resource.kind) in known]


async def follow(find: Find, make: Make, *, clock: Clock | None = None) -> None:
    """Work until cancelled, at any time with what `make` gives for what `find` has found."""
    clock = clock or SystemClock()
    known = await _first(find, clock)
    while True:
        work = asyncio.ensure_future(make(known)())
        change = asyncio.ensure_future(_change(find, known, clock))
        try:
            await asyncio.wait({work, change}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                return work.result()
            now = change.result()
        finally:
            for task in (work, change):
                task.cancel()
            await asyncio.gather(work, change, return_exceptions=True)
        log.info("engines changed: %s", "; ".join(_changes(now - known, "is there") + _changes(known - now, "is gone")))
        known = now


async def _first(find: Find, clock: Clock) -> Served:
    backoff = Backoff(random.Random(), cap=5.0)  # noqa: S311 - spreads load, keeps no secret
    while True:
        try:
            return frozenset(await find())
        except ApiError as error:
            wait = backoff.next()
            log.warning("what is served is not known yet, next look in %.1f s: %s", wait, error)
            await clock.sleep(wait)


async def _change(find: Find, known: Served, clock: Clock) -> Served:
    """What is served, once that is something else."""
    last = known
    while True:
        await clock.sleep(LOOK_EVERY)
        try:
            now = frozenset(await find())
        except ApiError:
            continue  # a server that does not answer has lost no kinds
        if now == last != known:
            return now
        last = now


def _changes(kinds: Served, what: str) -> list[str]:
    return [f"{kind.plural}.{kind.group} {what}" for kind in sorted(kinds)]
