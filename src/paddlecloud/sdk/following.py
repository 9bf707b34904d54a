"""Following the logs of an object whose pods come and go.

Whenever the object changes, its pods are looked up again: a rank that was restarted is followed in its new pod, and a
stream that broke is resumed where it stopped, without a repeated line. Pods are watched besides: one that runs for a
moment only may be deleted before anybody looks. The end of the object ends the generator.

Coroutines here await nothing but the client and their `Tasks`. The SDK runs them on an event loop (`loop_tasks`); the
command line, which cannot afford to import asyncio, drives them with threads (`cli.objects.thread_tasks`).
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import aclosing
from typing import Any, NamedTuple, Protocol

from paddlecloud.kube import watching
from paddlecloud.kube.client import Client
from paddlecloud.kube.errors import ApiError, BadRequest, NotFound, Unreachable
from paddlecloud.kube.resource import PODS, Object, Resource, is_owned_by
from paddlecloud.sdk.logs import Line, LogOptions, read
from paddlecloud.sdk.members import Member, in_order, member, members_of, watch_selector
from paddlecloud.sdk.object_ref import ObjectRef
from paddlecloud.sdk.outcome import ending

LOOK_SECONDS = 1.0
"""How long a change may go unnoticed where it cannot be watched."""
GATHER_SECONDS = 0.05
"""Changes come in bursts; a look answers for all within this time."""
WATCH_SECONDS = 60
PATIENCE = 10.0
"""How long after the end of the object a log stream may take to end as well."""
END_SECONDS = 0.05
"""How often it is checked then whether the streams have ended."""

Choose = Callable[[Sequence[Member]], Sequence[Member]]


class Changed(NamedTuple):
    """The followed object is not what it was, or this pod of it is not."""

    pod: Object | None = None


class Look(NamedTuple):
    """The followed object as it was just read; the last one is how it ended."""

    owner: Object | None
    """None when it is gone."""
    waiting: bool
    """Whether it goes on and none of its pods has had a log yet."""


Item = Line | Exception | Changed


class Tasks(Protocol):
    """Work that runs beside the follower, and the bounded queue by which it reports to it."""

    def spawn(self, work: Coroutine[Any, Any, None], *, name: str) -> Callable[[], bool]:
        """Start it; returns a call that says whether it still runs."""

    async def put(self, item: Item) -> None:
        """A slow reader slows the streams, it does not fill the memory."""

    async def get(self, timeout: float) -> Item | None:
        """None where nothing came within so many seconds."""

    async def sleep(self, seconds: float) -> None: ...

    async def close(self) -> None: ...


class _Tail:
    """One pod's log. `last` is the time of the last line, where to resume."""

    def __init__(self, member: Member, last: str) -> None:
        self.member = member
        self.last = last
        self.is_read: Callable[[], bool] = lambda: False


class Follower:
    def __init__(self, client: Client, place: ObjectRef, choose: Choose, options: LogOptions, tasks: Tasks) -> None:
        self._client = client
        self._place = place
        self._choose = choose
        self._options = options
        self._tasks = tasks
        self._tails: dict[str, _Tail] = {}  # by uid of the pod: a rank restarted under its old name is a new pod
        self._known: dict[str, Member] = {}
        self._uid = ""
        self._watches = False

    async def lines(self, owner: Object | None = None) -> AsyncGenerator[Line | Look, None]:
        """Every line of the chosen pods until the object has ended or is gone, and every look at the object.

        `owner` is the object where the caller has just read it.
        """
        try:
            owner = owner or await self._read_owner()
            while True:
                if owner is not None:
                    self._watch(owner)
                    await self._attach(owner)
                if owner is None or ending(owner) is not None:
                    break
                yield Look(owner, waiting=not self._tails)
                async for line in self._until_changed():
                    yield line
                owner = await self._read_owner()
            async for line in self._to_the_end():
                yield line
            yield Look(owner, waiting=False)
        finally:
            await self._tasks.close()

    async def _read_owner(self) -> Object | None:
        try:
            return await self._client.get(self._place.resource, self._place.name, self._place.namespace)
        except NotFound:
            return None

    def _watch(self, owner: Object) -> None:
        """The object itself and, where labels select them, its pods; once."""
        if self._watches:
            return
        self._watches = True
        name = self._place.name
        self._tasks.spawn(self._report(self._place.resource, fields=f"metadata.name={name}"), name=f"watch-{name}")
        if (labels := watch_selector(owner)) is not None:
            self._tasks.spawn(self._report(PODS, labels=labels), name="watch-pods")

    async def _report(self, resource: Resource, *, fields: str | None = None, labels: str | None = None) -> None:
        """Puts every change into the queue. Where watching fails, the follower's own looks have to suffice."""
        while True:
            changes = watching.changes(
                self._client,
                resource,
                self._place.namespace,
                field_selector=fields,
                label_selector=labels,
                seconds=WATCH_SECONDS,
            )
            try:
                async with aclosing(changes) as events:
                    async for event in events:
                        await self._tasks.put(Changed(event.object if labels else None))
            except ApiError:
                pass  # out of reach, not allowed, too old: looked at again in a moment
            await self._tasks.sleep(LOOK_SECONDS)

    async def _attach(self, owner: Object) -> None:
        self._uid = str(owner["metadata"].get("uid"))
        self._known = {one.name: one for one in await members_of(self._client, owner)}
        self._read_started()

    def _consider(self, pod: Object) -> None:
        """A pod as it was a moment ago; pods of an earlier object of this name do not belong to this one."""
        if is_owned_by(pod, self._uid):
            self._known[str(pod["metadata"]["name"])] = member(pod)
            self._read_started()

    def _read_started(self) -> None:
        """Start a reader for every started pod that has none, or whose reader lost its stream."""
        for one in self._choose(in_order(self._known.values())):
            tail = self._tails.get(one.uid)
            lost = tail is not None and not tail.is_read() and not one.ended
            if (tail is None or lost) and one.started(self._options.container):
                tail = self._tails[one.uid] = _Tail(one, tail.last if tail else "")
                tail.is_read = self._tasks.spawn(self._read(tail), name=f"log-{one.name}")

    async def _read(self, tail: _Tail) -> None:
        try:
            async for line in read(self._client, tail.member, self._options, follow=True, after=tail.last):
                await self._tasks.put(line)
                tail.last = line.time
        except (BadRequest, NotFound, Unreachable):
            pass  # not started, gone, or the connection broke: the follower looks again and decides
        except Exception as error:
            await self._tasks.put(error)

    async def _until_changed(self) -> AsyncGenerator[Line, None]:
        deadline = time.monotonic() + LOOK_SECONDS
        while (left := deadline - time.monotonic()) > 0:
            item = await self._tasks.get(left)
            if isinstance(item, Line):
                yield item
            elif item is not None and self._owner_changed(item):
                deadline = min(deadline, time.monotonic() + GATHER_SECONDS)

    async def _to_the_end(self) -> AsyncGenerator[Line, None]:
        """What the readers still have; they end by themselves when their containers have."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            reading = any(tail.is_read() for tail in self._tails.values())
            item = await self._tasks.get(END_SECONDS if reading else 0.0)
            if isinstance(item, Line):
                yield item
            elif item is not None:
                self._owner_changed(item)
            elif not reading:
                return

    def _owner_changed(self, item: Exception | Changed) -> bool:
        """Whether the object itself has changed; a pod is considered at once. Raises what a reader met."""
        if isinstance(item, Exception):
            raise item
        if item.pod is not None:
            self._consider(item.pod)
        return item.pod is None
