"""Objects of a server: their data (`Manifest`) and what can be done with them, asynchronously.

The data is what was last read: `refresh` reads it again, and whatever changes or awaits the object leaves its newest
state behind.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from paddlecloud.api.names import RETRY_AT
from paddlecloud.kube.errors import NotFound, conflict, not_found
from paddlecloud.kube.resource import EVENTS, PODS, Object, Resource
from paddlecloud.sdk import members
from paddlecloud.sdk.checking import checked
from paddlecloud.sdk.logs import Line, LogOptions, merged
from paddlecloud.sdk.manifest import JobManifest, Manifest
from paddlecloud.sdk.metrics import Metrics, found_in
from paddlecloud.sdk.metrics import read as read_metrics
from paddlecloud.sdk.object_ref import ObjectRef
from paddlecloud.sdk.outcome import awaits_retry, ending, is_true, message_of, retry_time, service_failure
from paddlecloud.sdk.serving import NotServed, ServiceManifest
from paddlecloud.sdk.vocabulary import unknown_word
from paddlecloud.sdk.watching import until

if TYPE_CHECKING:
    from paddlecloud.sdk.core import AsyncClient

T = TypeVar("T", bound=Manifest)
H = TypeVar("H", bound="AsyncHandle")
J = TypeVar("J", bound="AsyncJob")

TAKEN_UP_SECONDS = 30.0
"""How long the controller may take to begin a retry."""


class JobFailed(Exception):
    """A job that was waited for with `check=True` has failed; the text is what its status says."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name} failed: {message}" if message else f"{name} failed")
        self.name = name
        self.message = message


class LogLine(str):
    """A line of a log; a plain text that also knows where it comes from."""

    __slots__ = ("pod", "rank", "role", "time")
    pod: str
    role: str
    rank: int | None
    time: str

    @classmethod
    def of(cls, line: Line) -> LogLine:
        made = cls(line.text)
        made.pod, made.role, made.rank, made.time = line.member.name, line.member.role, line.member.rank, line.time
        return made

    @property
    def tag(self) -> str:
        """`worker-0`, or the pod's name where there is neither role nor rank."""
        return f"{self.role}-{self.rank}" if self.role and self.rank is not None else self.pod


class Completed(NamedTuple):
    """A program that was run in a container."""

    exit_code: int
    stdout: str
    stderr: str


@checked
class AsyncHandle(Manifest):
    """Any object. The kinds of this project have handles of their own."""

    def __init__(self, client: AsyncClient, resource: Resource, body: Object) -> None:
        super().__init__(body)
        self._client = client
        self._resource = resource

    @property
    def place(self) -> ObjectRef:
        return ObjectRef(self._resource, self.name, self.namespace or None)

    async def refresh(self: H) -> H:
        """Read it again. Raises `kube.errors.NotFound` when it is gone."""
        self._body = await self._client.api.get(self._resource, self.name, self.namespace or None)
        return self

    async def patch(self: H, patch: Object) -> H:
        """A merge patch: what it names is changed, null removes."""
        self._body = await self._client.api.patch(self._resource, self.name, patch, namespace=self.namespace or None)
        return self

    async def delete(
        self, *, wait: bool = False, timeout: float | None = None, grace_period: int | None = None
    ) -> None:
        """This very object, not a newer one of its name. `wait` returns when it is gone."""
        try:
            await self._client.api.delete(
                self._resource,
                self.name,
                namespace=self.namespace or None,
                propagation="Background",
                grace_period=grace_period,
                uid=self.uid or None,
            )
        except NotFound:
            return  # somebody was faster; that is what was wanted
        if wait:
            await until(self._client.api, self.place, self._is_gone, timeout=timeout)

    async def _until_ended(self, timeout: float | None) -> str:
        """For kinds that end by themselves: how it ended. Raises `NotFound` when it was deleted before."""

        def ended(now: Object | None) -> str | None:
            if now is None:
                raise not_found(self._resource.plural, self.name, group=self._resource.group)
            self._body = now
            return ending(now)

        return await until(self._client.api, self.place, ended, timeout=timeout)

    def _is_gone(self, now: Object | None) -> bool | None:
        return True if now is None or now["metadata"].get("uid") != self.uid else None

    async def wait_for(
        self,
        condition: str = "",
        *,
        check: Callable[[Object], bool] | None = None,
        timeout: float | None = None,
    ) -> None:
        """Until a condition of its status is true, or `check` says yes of the object. Raises `TimeoutError`.

        A condition that its kind never has is a `ValueError`. For a service whose newest revision failed it raises
        `NotServed` with the reason.
        """

        def reached(now: Object | None) -> bool | None:
            if now is None:
                raise not_found(self._resource.plural, self.name, group=self._resource.group)
            self._body = now
            if check is None and (unknown := unknown_word(now, condition=condition)) is not None:
                raise ValueError(f"{unknown.refusal}: {unknown.why}")
            met = check(now) if check is not None else is_true(now, condition)
            if not met and check is None:
                self._refuse_hopeless(condition)
            return True if met else None

        if not condition and check is None:
            raise ValueError("name a condition, or give a check")
        await until(self._client.api, self.place, reached, timeout=timeout)

    def _refuse_hopeless(self, condition: str) -> None:
        """Raises when the condition does not become true any more; a kind that can know overrides it."""

    async def pods(self) -> list[AsyncHandle]:
        """The pods it owns or selects, workers first, by rank."""
        found = await members.members_of(self._client.api, self.body)
        return [AsyncHandle(self._client, PODS, one.pod) for one in found]

    async def events(self) -> list[Object]:
        """What happened to it, oldest first."""
        fields = f"involvedObject.name={self.name}" + (f",involvedObject.uid={self.uid}" if self.uid else "")
        found = await self._client.api.list(EVENTS, self.namespace or "default", field_selector=fields)
        return sorted(found.items, key=_moment)

    async def logs(
        self,
        *,
        follow: bool = False,
        ranks: Iterable[int] | None = None,
        tail: int | None = None,
        since: float | None = None,
        previous: bool = False,
        container: str | None = None,
    ) -> AsyncGenerator[LogLine, None]:
        """Lines of all its pods, or of these ranks of its workers, merged by time; `follow` goes on until it ends.
        Raises `kube.errors.NotFound` for ranks that it cannot have."""
        wanted = None if ranks is None else frozenset(ranks)
        options = LogOptions(tail=tail, since=since, previous=previous, container=container)

        def choose(found: Sequence[members.Member]) -> Sequence[members.Member]:
            return members.choose(found, ranks=wanted, everything=wanted is None)

        look_up = members.members_of if previous else members.lives_of
        found = await look_up(self._client.api, self.body) if wanted or not follow else []
        if wanted and (why := members.missing_ranks(self.body, found, wanted)):
            raise NotFound(why)
        if follow:
            from paddlecloud.sdk.loop_tasks import follow as following

            lines = following(self._client.api, self.place, choose, options)
        else:
            started = [one for one in choose(found) if one.started(container)]
            lines = merged(self._client.api, started, options)
        try:
            async for line in lines:
                yield LogLine.of(line)
        finally:
            await lines.aclose()

    async def exec(
        self, command: Sequence[str], *, rank: int | None = None, container: str | None = None, input: bytes = b""
    ) -> Completed:
        """Run a program in a container: of this pod, or of the first running one of its pods."""
        found = await members.members_of(self._client.api, self.body)
        chosen = members.choose(found, ranks=None if rank is None else [rank], everything=rank is None)
        running = [one for one in chosen if (one.pod.get("status") or {}).get("phase") == "Running"]
        if not running:
            raise NotFound(f"{self.place} has no running pod" + ("" if rank is None else f" of rank {rank}"))
        return await self._client.exec(running[0], command, container=container, input=input)


@checked
class AsyncJob(JobManifest, AsyncHandle):
    """A PaddleJob."""

    async def wait(self, *, timeout: float | None = None, check: bool = False) -> str:
        """Until it has ended; the answer is its phase. `check` raises `JobFailed` unless it completed."""

        how = await self._until_ended(timeout)
        if check and how == "failed":
            raise JobFailed(self.name, message_of(self.body))
        return self.phase

    async def scale(self: J, workers: int) -> J:
        """Another number of workers, within the bounds of an elastic job. All ranks restart, from their checkpoint.
        Raises `Conflict` for one that has ended."""
        await self._refuse_ended("scaled")
        return await self.patch({"spec": {"worker": {"replicas": workers}}})

    async def suspend(self: J) -> J:
        """Give its resources back and keep the job. Raises `kube.errors.Conflict` for one that has ended."""
        await self._refuse_ended("suspended")
        return await self.patch({"spec": {"suspend": True}})

    async def resume(self: J) -> J:
        await self._refuse_ended("resumed")
        return await self.patch({"spec": {"suspend": False}})

    async def retry(self: J) -> J:
        """Run it again, from its checkpoint if it wrote one. Raises `Conflict` for one that has not ended."""
        await self.refresh()
        if ending(self.body) is None:
            why = f"it has not ended ({self.phase or 'Pending'}) and cannot be retried"
            raise conflict(self._resource.plural, self.name, why, group=self._resource.group)
        asked = retry_time(self.body, time.time())
        await self.patch({"metadata": {"uid": self.uid, "annotations": {RETRY_AT: asked}}})

        def taken_up(now: Object | None) -> Object | None:
            if now is None:
                raise not_found(self._resource.plural, self.name, group=self._resource.group)
            return now if not awaits_retry(now) else None

        self._body = await until(self._client.api, self.place, taken_up, timeout=TAKEN_UP_SECONDS)
        return self

    async def metrics(self, logdir: str | Sequence[str] = (), *, rank: int | None = None) -> Metrics:
        """The scalars that its program wrote with VisualDL's LogWriter: curves with `run`, `tag`, `steps`, `times` and
        `values`. `logdir` is the folder as the program has it; without it the job's volumes are looked through.
        Raises `metrics.MetricsError` where they cannot be read, also where a folder that is named is not there."""
        folders = [one for one in ([logdir] if isinstance(logdir, str) else logdir) if one]
        found = await read_metrics(self._client, self.body, folders, rank=rank)
        return found if not folders else found_in(found)

    async def _refuse_ended(self, done: str) -> None:
        await self.refresh()
        if ending(self.body) is not None:
            why = f"it has ended ({self.phase}) and cannot be {done}"
            raise conflict(self._resource.plural, self.name, why, group=self._resource.group)


class AsyncService(ServiceManifest, AsyncHandle):
    """A PaddleService."""

    def _refuse_hopeless(self, condition: str) -> None:
        if (failure := service_failure(self.body, condition)) is not None:
            raise NotServed(f"{self.name} failed: {failure.message}")


def _moment(event: Object) -> str:
    series: dict[str, Any] = event.get("series") or {}
    return str(series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime") or "")


class Objects(list[T]):
    """A list that notebooks show as a table."""

    def _repr_html_(self) -> str:
        from paddlecloud.sdk import html

        rows = [[one.namespace, one.name, one.phase, one.metadata.get("creationTimestamp")] for one in self]
        return html.table(["Namespace", "Name", "Phase", "Created"], rows)
