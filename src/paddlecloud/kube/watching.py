"""Changes of objects for somebody who keeps no cache (`informer` does): waiting for one object, following pods.

Both generators end when the server ends the watch, and raise what `Client.watch` raises: whether to begin again, and
after which pause, is the caller's decision. A caller that leaves early closes them (`contextlib.aclosing`).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from paddlecloud.kube.client import Client, ObjectList, WatchEvent
from paddlecloud.kube.resource import Object, Resource


async def changes(
    client: Client,
    resource: Resource,
    namespace: str | None,
    *,
    seconds: int,
    resource_version: str | None = None,
    label_selector: str | None = None,
    field_selector: str | None = None,
) -> AsyncGenerator[WatchEvent, None]:
    """What is added, modified and deleted within so many seconds."""
    watch = client.watch(
        resource,
        namespace,
        resource_version=resource_version,
        label_selector=label_selector,
        field_selector=field_selector,
        timeout=seconds,
    )
    async with aclosing(watch) as events:
        async for event in events:
            if event.type != "BOOKMARK":
                yield event


async def states(
    client: Client, resource: Resource, namespace: str | None, found: ObjectList, selector: str, *, seconds: int
) -> AsyncGenerator[Object | None, None]:
    """One object as it was listed (`named`) and after every change; None while it does not exist."""
    yield found.items[0] if found.items else None
    following = changes(
        client,
        resource,
        namespace,
        resource_version=found.resource_version,
        field_selector=selector,
        seconds=seconds,
    )
    async with aclosing(following) as events:
        async for event in events:
            yield None if event.type == "DELETED" else event.object


def named(name: str) -> str:
    """The field selector of the object with this name."""
    return f"metadata.name={name}"
