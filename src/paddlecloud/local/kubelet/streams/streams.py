"""The kubelet as the API server sees it: logs, exec and port-forward of a pod, by name.

Refusals are the errors of Kubernetes, in its words, so the API server passes them on as they are.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Protocol
from weakref import WeakValueDictionary

from paddlecloud.kube.clock import Clock, parse_rfc3339
from paddlecloud.kube.errors import BadRequest, InternalError, not_found
from paddlecloud.kube.resource import Object
from paddlecloud.local.kubelet.pod.paths import PodPaths
from paddlecloud.local.kubelet.pod.pod_state import (
    ContainerRun,
    all_containers,
    containers_of,
    init_containers_of,
    read_runs,
    reported,
)
from paddlecloud.local.kubelet.pod.runtime import ShimError, last_state
from paddlecloud.local.kubelet.streams import logreader
from paddlecloud.local.kubelet.streams.archive import LogArchive
from paddlecloud.local.kubelet.streams.attaches import AttachSession, join_input
from paddlecloud.local.kubelet.streams.execs import ExecSession, Stream, open_exec
from paddlecloud.local.kubelet.streams.logreader import LogOptions
from paddlecloud.local.lowports import used_for

DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"


class PodHandle(Protocol):
    """A pod on this machine, as far as streams need it."""

    @property
    def pod(self) -> Object: ...

    @property
    def paths(self) -> PodPaths: ...

    @property
    def ip(self) -> str: ...


class PodFinder(Protocol):
    def worker(self, namespace: str, name: str) -> PodHandle | None: ...

    @property
    def archive(self) -> LogArchive: ...


class PodStreams:
    def __init__(self, pods: PodFinder, clock: Clock) -> None:
        self._pods = pods
        self._clock = clock
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """Of the readers of logs, by namespace."""

    async def read_log(
        self,
        namespace: str,
        name: str,
        container: str | None = None,
        *,
        follow: bool = False,
        tail: int | None = None,
        since_seconds: float | None = None,
        since_time: str | None = None,
        timestamps: bool = False,
        previous: bool = False,
        limit_bytes: int | None = None,
        stream: str = "All",
    ) -> AsyncIterator[bytes]:
        options = self._options(
            follow=follow and not previous,
            tail=tail,
            since_seconds=since_seconds,
            since_time=since_time,
            timestamps=timestamps,
            limit_bytes=limit_bytes,
            stream=stream,
        )
        async for data in self._read(self._find(namespace, name), container, options, previous=previous):
            yield data

    def kept_pods(self, owner_uid: str) -> list[Object]:
        """Pods of an owner that are gone, and whose logs are not."""
        return [one.pod for one in self._pods.archive.pods(owner_uid)]

    async def read_kept_log(
        self,
        owner_uid: str,
        pod_uid: str,
        container: str | None = None,
        *,
        previous: bool = False,
        follow: bool = False,
        **options: Any,
    ) -> AsyncIterator[bytes]:
        """Nothing more will come, so there is nothing to follow."""
        kept = await asyncio.to_thread(self._pods.archive.pod, owner_uid, pod_uid)
        if kept is None:
            raise not_found("pods", pod_uid)
        async for data in self._read(kept, container, self._options(**options), previous=previous):
            yield data

    def _options(
        self,
        *,
        since_seconds: float | None = None,
        since_time: str | None = None,
        **same: Any,
    ) -> LogOptions:
        since = max(0.0, self._clock.now() - since_seconds) if since_seconds is not None else None
        if since_time:
            since = max(0.0, parse_rfc3339(since_time))
        return LogOptions(since=since, **same)

    async def _read(
        self, handle: PodHandle, container: str | None, options: LogOptions, *, previous: bool
    ) -> AsyncIterator[bytes]:
        chosen = self._container(handle.pod, container)
        run = self._run(handle, chosen, previous=previous)
        paths = handle.paths

        def ended() -> bool:
            current = _runs(paths).get(chosen)
            return current is None or current.attempt != run.attempt or current.ended

        turn = self._turns.setdefault(str(handle.pod["metadata"].get("namespace")), asyncio.Lock())
        log = paths.log(chosen, run.attempt)
        async for data in logreader.read_log(log, options, pod_dir=paths.root, ended=ended, turn=turn):
            yield data

    async def exec(
        self,
        namespace: str,
        name: str,
        container: str | None = None,
        command: Sequence[str] = (),
        *,
        stdin: bool = False,
        tty: bool = False,
    ) -> ExecSession:
        handle = self._find(namespace, name)
        chosen = self._container(handle.pod, container)
        if not command:
            raise BadRequest("you must specify at least one command for the container")
        self._need_running(handle, chosen)
        try:
            return open_exec(handle.paths.root, chosen, command, stdin=stdin, tty=tty)
        except ShimError as error:
            raise InternalError(f"cannot exec in a container of pod {namespace}/{name}: {error}") from error

    async def attach(
        self,
        namespace: str,
        name: str,
        container: str | None = None,
        *,
        stdin: bool = False,
        outputs: Sequence[Stream] = ("stdout", "stderr"),
    ) -> AttachSession:
        """Join a running container: what it prints from now on and, if it has one, its input."""
        handle = self._find(namespace, name)
        chosen = self._container(handle.pod, container)
        self._need_running(handle, chosen)
        try:
            given = await join_input(handle.paths.root, chosen) if stdin else None
        except ShimError as error:
            raise InternalError(f"cannot attach to a container of pod {namespace}/{name}: {error}") from error
        chunks = {
            stream: self.read_log(namespace, name, chosen, follow=True, tail=0, stream=stream.capitalize())
            for stream in outputs
        }
        session = AttachSession(chunks, given)
        try:
            await asyncio.sleep(
                0
            )  # its readers have found their place in the log: nothing printed from now on is missed
        except asyncio.CancelledError:
            await session.close()
            raise
        return session

    async def port_forward(
        self, namespace: str, name: str, port: int
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to a port of the pod."""
        try:
            return await asyncio.open_connection(*self.address(namespace, name, port))
        except OSError as error:
            raise InternalError(
                f"error forwarding port {port} to pod {namespace}/{name}: {error.strerror or error}"
            ) from error

    def address(self, namespace: str, name: str, port: int) -> tuple[str, int]:
        """Where a port of the pod is listened on: at the address that the pod was given, whatever its status says."""
        handle = self._find(namespace, name)
        if not handle.ip:
            raise BadRequest(f"pod {name} has no address yet: it is not running")
        return handle.ip, used_for(handle.ip, port)

    def _find(self, namespace: str, name: str) -> PodHandle:
        handle = self._pods.worker(namespace, name)
        if handle is None:
            raise not_found("pods", name)
        return handle

    def _container(self, pod: Object, name: str | None) -> str:
        """The one named, the one the pod marks as default, or the only one."""
        names = [container["name"] for container in all_containers(pod)]
        pod_name = pod["metadata"]["name"]
        if name:
            if name not in names:
                raise BadRequest(f"container {name} is not valid for pod {pod_name}")
            return name
        marked = (pod["metadata"].get("annotations") or {}).get(DEFAULT_CONTAINER)
        if marked in names:
            return str(marked)
        mains = [container["name"] for container in containers_of(pod)]
        init = [container["name"] for container in init_containers_of(pod)]
        if len(mains) + len(init) > 1:
            text = f"a container name must be specified for pod {pod_name}, choose one of: [{' '.join(mains)}]"
            raise BadRequest(text + (f" or one of the init containers: [{' '.join(init)}]" if init else ""))
        return str(mains[0])

    def _run(self, handle: PodHandle, container: str, *, previous: bool) -> ContainerRun:
        pod_name = handle.pod["metadata"]["name"]
        if previous:
            earlier = _previous(handle.paths).get(container)
            current = _runs(handle.paths).get(container)
            if earlier is None and current is not None and current.ended and _waits(handle.pod, container):
                earlier = current  # in a crash loop the run that ended last is the previous one
            if earlier is None:
                raise BadRequest(f'previous terminated container "{container}" in pod "{pod_name}" not found')
            return earlier
        run = _runs(handle.paths).get(container)
        if run is None:
            reason = _waiting_reason(handle.pod, container)
            raise BadRequest(f'container "{container}" in pod "{pod_name}" is waiting to start: {reason}')
        return run

    def _need_running(self, handle: PodHandle, container: str) -> None:
        run = _runs(handle.paths).get(container)
        if run is None or run.phase != "running":
            raise BadRequest(
                f'container "{container}" in pod "{handle.pod["metadata"]["name"]}" is not running; '
                "see what happened with: kubectl describe pod"
            )


def _runs(paths: PodPaths) -> dict[str, ContainerRun]:
    return read_runs(_records(paths, "containers"))


def _previous(paths: PodPaths) -> dict[str, ContainerRun]:
    return read_runs(_records(paths, "previous"))


def _records(paths: PodPaths, which: str) -> Mapping[str, Mapping[str, Any]]:
    return (last_state(paths.root) or {}).get(which) or {}


def _waits(pod: Object, container: str) -> bool:
    return "waiting" in (reported(pod, container).get("state") or {})


def _waiting_reason(pod: Object, container: str) -> str:
    waiting = (reported(pod, container).get("state") or {}).get("waiting") or {}
    reason = str(waiting.get("reason") or "ContainerCreating")
    return f"{reason}: {waiting['message']}" if waiting.get("message") else reason
