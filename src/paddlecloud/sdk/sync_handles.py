"""Objects of a server as blocking calls: each call runs that of `handles` in the client's own loop (`portal`)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import TypeVar

from paddlecloud.kube.resource import Object
from paddlecloud.sdk.checking import checked
from paddlecloud.sdk.handles import AsyncHandle, AsyncJob, AsyncService, Completed, LogLine
from paddlecloud.sdk.manifest import JobManifest, Manifest
from paddlecloud.sdk.metrics import Metrics
from paddlecloud.sdk.object_ref import ObjectRef
from paddlecloud.sdk.portal import Portal
from paddlecloud.sdk.serving import ServiceManifest

H = TypeVar("H", bound="Handle")
J = TypeVar("J", bound="Job")


@checked
class Handle(Manifest):
    """Any object of the server. The kinds of this project have handles of their own."""

    def __init__(self, portal: Portal, core: AsyncHandle) -> None:
        self._portal = portal
        self._core = core

    @property
    def body(self) -> Object:
        return self._core.body

    @property
    def place(self) -> ObjectRef:
        return self._core.place

    def refresh(self: H) -> H:
        """Read it again. Raises `kube.errors.NotFound` when it is gone."""
        self._portal.run(self._core.refresh())
        return self

    def patch(self: H, patch: Object) -> H:
        """A merge patch: what it names is changed, null removes."""
        self._portal.run(self._core.patch(patch))
        return self

    def delete(self, *, wait: bool = False, timeout: float | None = None, grace_period: int | None = None) -> None:
        """This very object, not a newer one of its name. `wait` returns when it is gone."""
        self._portal.run(self._core.delete(wait=wait, timeout=timeout, grace_period=grace_period))

    def wait_for(
        self, condition: str = "", *, check: Callable[[Object], bool] | None = None, timeout: float | None = None
    ) -> None:
        """Until a condition of its status is true, or `check` says yes of the object. Raises `TimeoutError`, and
        `NotServed` for a service whose newest revision failed."""
        self._portal.run(self._core.wait_for(condition, check=check, timeout=timeout))

    def pods(self) -> list[Handle]:
        """The pods it owns or selects, workers first, by rank."""
        return [Handle(self._portal, one) for one in self._portal.run(self._core.pods())]

    def events(self) -> list[Object]:
        """What happened to it, oldest first."""
        return self._portal.run(self._core.events())

    def logs(
        self,
        *,
        follow: bool = False,
        ranks: Iterable[int] | None = None,
        tail: int | None = None,
        since: float | None = None,
        previous: bool = False,
        container: str | None = None,
    ) -> Generator[LogLine, None, None]:
        """Lines of all its pods, or of these ranks of its workers, merged by time; `follow` goes on until it ends.
        Raises `kube.errors.NotFound` for ranks that it cannot have."""
        lines = self._core.logs(
            follow=follow, ranks=ranks, tail=tail, since=since, previous=previous, container=container
        )
        return self._portal.iterate(lines)

    def exec(
        self, command: Sequence[str], *, rank: int | None = None, container: str | None = None, input: bytes = b""
    ) -> Completed:
        """Run a program in a container: of this pod, or of the first running one of its pods."""
        return self._portal.run(self._core.exec(command, rank=rank, container=container, input=input))


@checked
class Job(JobManifest, Handle):
    """A PaddleJob."""

    _core: AsyncJob

    def wait(self, *, timeout: float | None = None, check: bool = False) -> str:
        """Until it has ended; the answer is its phase. `check` raises `JobFailed` unless it completed."""
        return self._portal.run(self._core.wait(timeout=timeout, check=check))

    def scale(self: J, workers: int) -> J:
        """Another number of workers, within the bounds of an elastic job. All ranks restart, from their checkpoint."""
        self._portal.run(self._core.scale(workers))
        return self

    def suspend(self: J) -> J:
        """Give its resources back and keep the job."""
        self._portal.run(self._core.suspend())
        return self

    def resume(self: J) -> J:
        self._portal.run(self._core.resume())
        return self

    def retry(self: J) -> J:
        """Run it again, from its checkpoint if it wrote one. Raises `Conflict` for one that has not ended."""
        self._portal.run(self._core.retry())
        return self

    def metrics(self, logdir: str | Sequence[str] = (), *, rank: int | None = None) -> Metrics:
        """The scalars that its program wrote with VisualDL's LogWriter: curves with `run`, `tag`, `steps`, `times` and
        `values`. `logdir` is the folder as the program has it; without it the job's volumes are looked through.
        Raises `metrics.MetricsError` where they cannot be read."""
        return self._portal.run(self._core.metrics(logdir, rank=rank))


class Service(ServiceManifest, Handle):
    """A PaddleService."""

    _core: AsyncService
