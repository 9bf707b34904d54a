"""Waiting for an object to reach a state: one list, then a watch, never polling."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import TypeVar

from paddlecloud.kube.client import Client
from paddlecloud.kube.errors import Expired, Gone, Unreachable
from paddlecloud.kube.resource import Object
from paddlecloud.sdk.place import Place

T = TypeVar("T")

WATCH_SECONDS = 240
"""Longer watches are cut by proxies without a word."""
RETRIES = 5
PAUSE = 1.0


async def until(
    client: Client, place: Place, check: Callable[[Object | None], T | None], *, timeout: float | None
) -> T:
    """The first answer of `check` that is not None; it gets None while the object does not exist.

    Raises `TimeoutError`. A server that goes away meanwhile is asked again a few times.
    """
    try:
        return await asyncio.wait_for(_until(client, place, check), timeout)
    except asyncio.TimeoutError:  # before Python 3.11 not the built-in one
        raise TimeoutError(f"{place} is not there after {timeout:g} s") from None


async def _until(client: Client, place: Place, check: Callable[[Object | None], T | None]) -> T:
    failures = 0
    while True:
        states = _states(client, place)
        try:
            async for state in states:
                answer = check(state)
                if answer is not None:
                    return answer
                failures = 0
        except (Expired, Gone):
            continue
        except Unreachable:
            failures += 1
            if failures > RETRIES:
                raise
        finally:
            await states.aclose()
        await asyncio.sleep(PAUSE)  # a server that ends every watch is not hammered


async def _states(client: Client, place: Place) -> AsyncGenerator[Object | None, None]:
    """The object now and after every change; ends when the watch does."""
    selector = f"metadata.name={place.name}"
    found = await client.list(place.resource, place.namespace, field_selector=selector)
    yield found.items[0] if found.items else None
    changes = client.watch(
        place.resource,
        place.namespace,
        resource_version=found.resource_version,
        field_selector=selector,
        timeout=WATCH_SECONDS,
    )
    try:
        async for event in changes:
            if event.type != "BOOKMARK":
                yield None if event.type == "DELETED" else event.object
    finally:
        await changes.aclose()
