"""One pod, from its first sight to its removal: observe, decide, carry out, publish; again whenever something changed.

All decisions are in `lifecycle` and `status`; here they meet the shim, the file system and the API. A worker never
gives up: what fails is put into the pod's status and tried again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterable
from typing import Any

from paddlecloud.api.paddlejob import gate
from paddlecloud.kube.backoff import exponential
from paddlecloud.kube.clock import parse_rfc3339, sleep_until_set
from paddlecloud.kube.errors import ApiError
from paddlecloud.kube.resource import PADDLEJOBS, Object, controller_of
from paddlecloud.local.images import stand_in
from paddlecloud.local.images.errors import ImageUnavailable
from paddlecloud.local.kubelet.pod.container_events import Steps
from paddlecloud.local.kubelet.pod.errors import ContainerConfigError, MissingObject
from paddlecloud.local.kubelet.pod.files import PodFiles
from paddlecloud.local.kubelet.pod.handlers import HandlerTarget
from paddlecloud.local.kubelet.pod.hooks import Hooks
from paddlecloud.local.kubelet.pod.lifecycle import Start, Stop, decide
from paddlecloud.local.kubelet.pod.obstacles import Obstacles, mount_delay, pull_delay
from paddlecloud.local.kubelet.pod.paths import PodPaths
from paddlecloud.local.kubelet.pod.pod_state import ContainerRun, Observed, Rejection, Waiting, all_containers
from paddlecloud.local.kubelet.pod.probes import Prober
from paddlecloud.local.kubelet.pod.publisher import PodGone, StatusPublisher
from paddlecloud.local.kubelet.pod.runtime import ShimError
from paddlecloud.local.kubelet.pod.services import NodeServices
from paddlecloud.local.kubelet.pod.status import build_status
from paddlecloud.local.kubelet.pod.supervised import SupervisedPod
from paddlecloud.local.kubelet.pod.termination_message import termination_message
from paddlecloud.local.kubelet.pod.warning_events import Notice, notices
from paddlecloud.local.volumes.errors import VolumeError

log = logging.getLogger(__name__)

RETRY_BASE, RETRY_CAP = 1.0, 60.0
BUILD_REPORTS = 2.0
"""Seconds between two reports of an image that is being built: each is a write of the pod's status."""


class PodWorker:
    """`update` and `poke` wake it; `run` ends when the pod is gone from this machine."""

    def __init__(self, pod: Object, machine: NodeServices) -> None:
        self.pod = pod
        self.uid: str = pod["metadata"]["uid"]
        self._machine = machine
        self._files = PodFiles(pod, machine)
        self._supervised = SupervisedPod(self._files.paths, machine.clock, on_change=self.poke)
        self._dirty = asyncio.Event()
        self._vanished = False  # the object is gone: nobody waits for a status
        self._refresh = False
        self._edition = 0  # how often objects that pods refer to have changed
        self._lacked: dict[str, int] = {}  # containers that could not start, and with which edition
        self._evicted = ""
        self._rejection: Rejection | None = None
        self._obstacles = Obstacles()
        self._messages: dict[tuple[str, int], str] = {}
        self._prober = Prober(machine.clock, target=self._target, changed=self.poke)
        self._hooks = Hooks(
            machine.clock,
            target=self._target,
            marks=lambda name: self.paths.private(name, "hooks"),
            changed=self.poke,
        )
        self._pulls: dict[str, asyncio.Task[None]] = {}
        self._building: dict[str, Waiting] = {}
        self._images: dict[str, str] = {}
        self._stand_ins: dict[str, str] = {}
        self._failures = 0
        first_seen = machine.clock.now()
        started = (pod.get("status") or {}).get("startTime")
        self._start_time = parse_rfc3339(started) if started else first_seen
        self._publisher = StatusPublisher(machine.client, first_seen=first_seen)
        self._recorded: set[Notice] = set()
        self._telling: set[asyncio.Task[bool]] = set()
        self._steps = Steps(self._record_step)

    def update(self, pod: Object | None) -> None:
        """The newest object; None when it is gone from the API (removed by force)."""
        if pod is None:
            self._vanished = True
        else:
            self._refresh |= _described(pod) != _described(self.pod)
            self.pod = pod
        self.poke()

    def poke(self) -> None:
        self._dirty.set()

    def evict(self, message: str) -> None:
        """End the pod for good: it took more than it may."""
        self._evicted = message
        self.poke()

    def reject(self, rejection: Rejection) -> None:
        """The node does not take the pod; before it runs."""
        self._rejection = rejection
        self.poke()

    @property
    def vanished(self) -> bool:
        """Whether its object is gone."""
        return self._vanished

    def objects_changed(self) -> None:
        """A ConfigMap, Secret or claim of its namespace came, changed or went."""
        self._refresh = True
        self._edition += 1
        self.poke()

    async def run(self) -> None:
        await self._supervised.recover()
        while True:
            self._dirty.clear()
            try:
                if await self._step():
                    break
                self._failures = 0
            except PodGone:
                self._vanished = True  # the watch will say so too, in its own time
            except (ApiError, OSError, ShimError) as error:
                await self._back_off(str(error))
            except Exception as error:  # a pod this code cannot handle must not be forgotten for it
                log.exception("pod %s", self._name)
                await self._back_off(repr(error))

    async def _back_off(self, why: str) -> None:
        self._failures += 1
        wait = exponential(self._failures - 1, base=RETRY_BASE, cap=RETRY_CAP)
        log.warning("pod %s: %s; again in %.0f s", self._name, why, wait)
        await self._pause(self._machine.clock.now() + wait)

    @property
    def paths(self) -> PodPaths:
        return self._files.paths

    @property
    def shim(self) -> int | None:
        """The process id of the pod's living shim."""
        return self._supervised.shim

    @property
    def ip(self) -> str:
        return self._files.ip

    @property
    def _name(self) -> str:
        meta = self.pod["metadata"]
        return f"{meta.get('namespace', '')}/{meta['name']}"

    async def _step(self) -> bool:
        """One round; True when the pod is over and cleared away."""
        if self._vanished:
            await self._clear_away()
            return True
        await self._supervised.check()
        if self._refresh:
            self._refresh = False
            if self._supervised.runtime is not None:
                await self._files.refresh(self.pod)
        runs = await self._runs()
        now = self._machine.clock.now()
        plan = decide(self.pod, self._observe(runs, now), now)
        for stop in plan.stop:
            await self._stop(stop)
        for start in plan.start:
            await self._start(start)
        if plan.done:
            await self._supervised.shutdown()
            await self._files.settle(self.pod)
        again = await self._report()
        if plan.remove:
            await self._clear_away()
            await self._publisher.remove(self.pod)
            return True
        times = (plan.requeue_at, again, self._obstacles.next_retry(now))
        await self._pause(min((moment for moment in times if moment is not None), default=None))
        return False

    async def _report(self) -> float | None:
        """Report the current state to the API, decided anew: what was just ordered may have happened already."""
        runs = await self._runs()
        now = self._machine.clock.now()
        observed = self._observe(runs, now)
        view = decide(self.pod, observed, now)
        view.waiting = {**self._building, **self._obstacles.waiting(), **view.waiting}
        self._steps.observe(observed.runs)
        self._record_events(notices(view, observed))
        return await self._publisher.publish(self.pod, build_status(self.pod, observed, view, now), now=now)

    async def _pause(self, until: float | None) -> None:
        """Wait for an event, or for the time of the next decision."""
        if until is None:
            await self._dirty.wait()
            return
        clock = self._machine.clock
        await sleep_until_set(self._dirty, max(0.0, until - clock.now()), clock)

    def _observe(self, runs: dict[str, ContainerRun], now: float) -> Observed:
        self._prober.sync(self.pod, runs)
        self._hooks.sync(self.pod, runs)
        return Observed(
            runs=runs,
            previous=self._supervised.previous(),
            start_time=self._start_time,
            pod_ip=self._files.ip,
            host_ip=self._machine.host_ip(self.pod["spec"].get("nodeName", "")),
            images=self._images,
            stand_ins=self._stand_ins,
            blocked=self._obstacles.blocking(now),
            started={**self._prober.started, **dict.fromkeys(self._hooks.pending, False)},
            ready=self._prober.ready,
            evicted=self._evicted,
            rejection=self._rejection,
            degraded=self._supervised.degraded,
            unlimited=self._supervised.unlimited,
            unhealthy={**self._prober.unhealthy, **self._hooks.failed},
            probe_grace=self._prober.grace,
        )

    async def _runs(self) -> dict[str, ContainerRun]:
        """What became of the containers, as it is now: those that end while messages are read are looked at again."""
        while True:
            runs = self._supervised.runs()
            ended = {(name, run.attempt): run for name, run in runs.items() if run.ended}
            fresh = [key for key in ended if key not in self._messages]
            for name, attempt in fresh:
                self._messages[name, attempt] = await asyncio.to_thread(
                    termination_message, self._container(name), ended[name, attempt], self.paths
                )
            if not fresh:
                break
        for (name, attempt), run in ended.items():
            runs[name] = run._replace(message=self._messages[name, attempt])
        return runs

    def _container(self, name: str) -> Object:
        return next(c for c in all_containers(self.pod) if c["name"] == name)

    def _target(self, container: Object) -> HandlerTarget:
        return HandlerTarget(self.paths.root, self._files.ip, container, self._files.env(container["name"]))

    async def _stop(self, stop: Stop) -> None:
        """Ask a container to end, after its preStop hook."""
        grace = self._hooks.grace_now(self._container(stop.name), stop)
        if grace is not None:
            run = self._supervised.runs().get(stop.name)
            self._steps.killing(stop.name, run.attempt if run else 0)
            await self._supervised.stop(stop.name, grace=grace)

    async def _start(self, start: Start) -> None:
        """Prepare a container and order its start; what prevents it is remembered for the status."""
        edition = self._edition
        if self._lacked.get(start.name) == edition:
            return  # what it refers to has not changed since
        container = self._container(start.name)
        self._files.create(self.pod)
        image = self._machine.images.resolve(container["image"])
        if image is None:
            self._pull(container)
            return
        self._images[start.name] = image.image_id
        self._steps.present(start.name, container["image"], start.attempt)
        if image.stands_for:
            self._stand_ins[start.name] = stand_in.sentence(image.stands_for, image=container["image"])
        now = self._machine.clock.now()
        try:
            spec = await self._files.container(self.pod, container, start, image)
        except ContainerConfigError as error:
            if isinstance(error, MissingObject):
                self._lacked[start.name] = edition
            self._obstacles.note(start.name, self._lacks(str(error)), now=now)
            return
        except VolumeError as error:
            waiting = Waiting("ContainerCreating", str(error))
            self._obstacles.note(start.name, waiting, now=now, delay=mount_delay)
            return
        self._obstacles.clear(start.name)
        self._steps.created(start.name, start.attempt)
        zygote = self._machine.warm.find(image, spec.argv, spec.env) or self._machine.zygote
        await self._supervised.start(spec, self._files.pod_spec(self.pod), zygote)

    def _lacks(self, message: str) -> Waiting:
        """An object that is missing; the start barrier of a training job is no error, and a message says what it is."""
        reason, owner = "CreateContainerConfigError", controller_of(self.pod) or {}
        if owner.get("kind") == PADDLEJOBS.kind and (others := gate.awaited(reason, message, str(owner["name"]))):
            return Waiting("ContainerCreating", others, expected=True)
        return Waiting(reason, message)

    def _pull(self, container: Object) -> None:
        """Have the image built beside the worker, which must stay able to react to a deletion."""
        name = container["name"]
        if name in self._pulls:
            return
        policy = container.get("imagePullPolicy", "IfNotPresent")

        async def pull() -> None:
            began = self._machine.clock.now()
            self._steps.pulling(container["image"], self._machine.images.how_far(container["image"]))
            reporting = asyncio.create_task(self._report_build(name, container["image"]))
            try:
                await self._machine.images.prepare(container["image"], policy=policy)
                self._steps.pulled(name, container["image"], self._machine.clock.now() - began)
                self._obstacles.clear(name)
            except ImageUnavailable as error:
                waiting = Waiting(error.reason, str(error))
                now = self._machine.clock.now()
                self._obstacles.note(name, waiting, now=now, delay=pull_delay, blocks=True)
            finally:
                reporting.cancel()
                self._building.pop(name, None)
                del self._pulls[name]
                self.poke()

        self._pulls[name] = asyncio.create_task(pull(), name=f"image {container['image']}")

    async def _report_build(self, name: str, image: str) -> None:
        """Keep the container's status saying how far its image is."""
        while True:
            await self._machine.clock.sleep(BUILD_REPORTS)
            if text := self._machine.images.how_far(image):
                self._building[name] = Waiting("ContainerCreating", f'image "{image}": {text}', expected=True)
                self.poke()

    def _record_events(self, current: Iterable[Notice]) -> None:
        """Write an Event for every notice that is new, beside the worker: nobody waits for one."""
        about = {"apiVersion": "v1", "kind": "Pod", **self.pod}
        fresh = set(current)
        for notice in fresh - self._recorded:
            self._write(self._machine.recorder.record(about, notice.reason, notice.message, type=notice.type))
        self._recorded = fresh

    def _record_step(self, reason: str, message: str) -> None:
        about = {"apiVersion": "v1", "kind": "Pod", **self.pod}
        self._write(self._machine.recorder.step(about, reason, message))

    def _write(self, event: Coroutine[Any, Any, bool]) -> None:
        task = asyncio.create_task(event)
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    async def _clear_away(self) -> None:
        self._end_tasks()
        await self._supervised.shutdown()
        await self._files.remove(self.pod)

    async def leave(self, *, end: bool = False) -> None:
        """The kubelet ends; the pod does only if `end` says so."""
        self._end_tasks()
        if end:
            await self._supervised.switch_off()
        await self._supervised.detach()

    def _end_tasks(self) -> None:
        self._prober.close()
        self._hooks.close()
        for task in self._pulls.values():
            task.cancel()


def _described(pod: Object) -> tuple[Object, Object]:
    """What a running pod may read of itself in files, and others may change."""
    meta = pod["metadata"]
    return meta.get("labels") or {}, meta.get("annotations") or {}
