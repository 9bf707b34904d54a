"""Following the logs of an object whose pods come and go, as an asynchronous generator.

Whenever the object changes, its pods are looked up again: a rank that was restarted is followed in its new pod, and a
stream that broke is resumed where it stopped, without a repeated line. Pods are watched besides: one that runs for a
moment only may be deleted before anybody looks. The end of the object ends the generator.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

from paddlecloud.kube.client import Client, WatchEvent
from paddlecloud.kube.errors import ApiError, BadRequest, NotFound, Unreachable
from paddlecloud.kube.resource import PODS, Object, Resource
from paddlecloud.sdk.logs import Line, Options, read
from paddlecloud.sdk.members import Member, in_order, member, members_of, watch_selector
from paddlecloud.sdk.outcome import ending
from paddlecloud.sdk.place import Place

LOOK_SECONDS = 1.0
"""How long a change may go unnoticed where it cannot be watched."""
GATHER_SECONDS = 0.05
"""Changes come in bursts; a look answers for all within this time."""
WATCH_SECONDS = 60
PATIENCE = 10.0
"""How long after the end of the object a log stream may take to end as well."""
BUFFER = 1000
"""Lines read but not taken: a slow reader slows the streams, it does not fill the memory."""

Choose = Callable[[Sequence[Member]], Sequence[Member]]
Changes = Callable[[], AsyncGenerator[WatchEvent, None]]


async def follow(client: Client, place: Place, choose: Choose, options: Options) -> AsyncGenerator[Line, None]:
    """Every line of the chosen pods until the object has ended or is gone."""
    follower = _Follower(client, place, choose, options)
    try:
        async for line in follower.lines():
            yield line
    finally:
        await follower.close()


class _Tail:
    """Reads one pod's log until the stream ends. `last` is the time of the last line, where to resume."""

    def __init__(self, member: Member, last: str) -> None:
        self.member = member
        self.last = last
        self.task: asyncio.Task[None] | None = None

    @property
    def reading(self) -> bool:
        return self.task is not None and not self.task.done()


class _Follower:
    def __init__(self, client: Client, place: Place, choose: Choose, options: Options) -> None:
        self._client = client
        self._place = place
        self._choose = choose
        self._options = options
        self._items: asyncio.Queue[Line | Exception | None] = asyncio.Queue(BUFFER)  # None: something has changed
        self._tails: dict[str, _Tail] = {}  # by uid of the pod: a rank restarted under its old name is a new pod
        self._known: dict[str, Member] = {}
        self._uid = ""
        self._watches: list[asyncio.Task[None]] = []

    async def close(self) -> None:
        tasks = [*self._watches, *(tail.task for tail in self._tails.values() if tail.task is not None)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def lines(self) -> AsyncGenerator[Line, None]:
        while True:
            owner = await self._look()
            if owner is not None:
                self._watch(owner)
                await self._attach(owner)
            if owner is None or ending(owner) is not None:
                break
            async for line in self._until_changed():
                yield line
        async for line in self._to_the_end():
            yield line

    async def _look(self) -> Object | None:
        try:
            return await self._client.get(self._place.resource, self._place.name, self._place.namespace)
        except NotFound:
            return None

    def _watch(self, owner: Object) -> None:
        """The object itself and, where labels tell them, its pods; once."""
        if self._watches:
            return
        place = self._place
        changes = self._changes(place.resource, fields=f"metadata.name={place.name}")
        self._watches = [asyncio.ensure_future(self._notice(changes, self._changed))]
        if (labels := watch_selector(owner)) is not None:
            pods = self._changes(PODS, labels=labels)
            self._watches.append(asyncio.ensure_future(self._notice(pods, self._consider)))

    def _changes(self, resource: Resource, *, fields: str | None = None, labels: str | None = None) -> Changes:
        return lambda: self._client.watch(
            resource, self._place.namespace, field_selector=fields, label_selector=labels, timeout=WATCH_SECONDS
        )

    async def _changed(self, _: Object) -> None:
        await self._items.put(None)

    async def _consider(self, pod: Object) -> None:
        """A pod as it was a moment ago; pods of an earlier object of this name are none of ours."""
        if any(ref.get("uid") == self._uid for ref in pod["metadata"].get("ownerReferences") or ()):
            self._known[str(pod["metadata"]["name"])] = member(pod)
            self._read_started()

    async def _attach(self, owner: Object) -> None:
        self._uid = str(owner["metadata"].get("uid"))
        self._known = {one.name: one for one in await members_of(self._client, owner)}
        self._read_started()

    def _read_started(self) -> None:
        """Start a reader for every started pod that has none, or whose reader lost its stream."""
        for one in self._choose(in_order(self._known.values())):
            tail = self._tails.get(one.uid)
            lost = tail is not None and not tail.reading and not one.ended
            if (tail is None or lost) and one.started(self._options.container):
                tail = self._tails[one.uid] = _Tail(one, tail.last if tail else "")
                tail.task = asyncio.ensure_future(self._read(tail))

    async def _read(self, tail: _Tail) -> None:
        try:
            async for line in read(self._client, tail.member, self._options, follow=True, after=tail.last):
                await self._items.put(line)
                tail.last = line.time
        except (BadRequest, NotFound, Unreachable):
            pass  # not started, gone, or the connection broke: the follower looks again and decides
        except ApiError as error:
            await self._items.put(error)

    async def _notice(self, watch: Changes, tell: Callable[[Object], Awaitable[None]]) -> None:
        while True:
            changes = watch()
            try:
                async for event in changes:
                    if event.type != "BOOKMARK":
                        await tell(event.object)
            except ApiError:
                pass  # out of reach, not allowed, too old: looked at again in a moment
            finally:
                await changes.aclose()
            await asyncio.sleep(LOOK_SECONDS)

    async def _until_changed(self) -> AsyncGenerator[Line, None]:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + LOOK_SECONDS
        while (left := deadline - loop.time()) > 0:
            try:
                item = await asyncio.wait_for(self._items.get(), left)
            except asyncio.TimeoutError:
                return
            if item is None:
                deadline = min(deadline, loop.time() + GATHER_SECONDS)
            elif isinstance(item, Exception):
                raise item
            else:
                yield item

    async def _to_the_end(self) -> AsyncGenerator[Line, None]:
        """What the readers still have; they end by themselves when their containers have."""
        tasks = [tail.task for tail in self._tails.values() if tail.task is not None]
        done = asyncio.ensure_future(asyncio.wait(tasks, timeout=PATIENCE)) if tasks else None
        while done is not None and not (done.done() and self._items.empty()):
            taking = asyncio.ensure_future(self._items.get())
            await asyncio.wait((taking, done) if not done.done() else (taking,), return_when=asyncio.FIRST_COMPLETED)
            if not taking.done():
                taking.cancel()
                continue
            item = taking.result()
            if isinstance(item, Exception):
                raise item
            if item is not None:
                yield item
