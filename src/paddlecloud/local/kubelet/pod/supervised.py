"""A pod's shim through all its fates: not there yet, alive, killed, replaced, done.

The worker sees one pod with runs of containers; this hides whether they are known from a living shim, from the record
of a dead one, or from both. When a shim was killed, what it left running is found and ended first: a container never
runs beside its own successor.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Mapping

from paddlecloud.kube.clock import Clock
from paddlecloud.local.kubelet.node.zygote_client import ZygoteClient
from paddlecloud.local.kubelet.pod.paths import PodPaths
from paddlecloud.local.kubelet.pod.pod_state import ContainerRun, read_runs, settle_lost, settle_shutdown
from paddlecloud.local.kubelet.pod.runtime import PodRuntime, State, last_state
from paddlecloud.local.kubelet.shim import processes, wire


class SupervisedPod:
    def __init__(self, paths: PodPaths, clock: Clock, *, on_change: Callable[[], None]) -> None:
        self.paths = paths
        self._clock = clock
        self._on_change = on_change
        self._runtime: PodRuntime | None = None
        self._record: State = {}

    @property
    def runtime(self) -> PodRuntime | None:
        """The connection to a living shim."""
        return self._runtime if self._runtime is not None and self._runtime.connected else None

    async def recover(self) -> None:
        """Find what is left of the pod after the kubelet, the shim or the machine restarted."""
        if not self.paths.root.exists():
            return
        await self._reattach()

    async def _reattach(self) -> None:
        runtime = await PodRuntime.attach(self.paths.root, on_change=self._on_change)
        if runtime is not None:
            await runtime.ready.wait()
            if runtime.connected:
                self._runtime = runtime
                self._record = runtime.state
                return
        self._runtime = None
        state = last_state(self.paths.root)
        if state is not None:
            await asyncio.to_thread(self._end_strays, state)
            self._record = settle_lost(state, self._clock.now())
            wire.write_json(str(self.paths.status), self._record)

    def _end_strays(self, state: State) -> None:
        """A shim that no longer answers is killed, and what its containers left running with it."""
        holder = wire.lock_holder(str(self.paths.root))
        if holder is not None:
            processes.send(holder, signal.SIGKILL)
        uid = self.paths.root.name
        if any(record["phase"] != "exited" for record in (state.get("containers") or {}).values()):
            processes.kill_all(lambda: processes.strays(uid))

    async def check(self) -> None:
        """After an event: a lost connection is made again, or the loss of the shim is recorded."""
        if self._runtime is not None and not self._runtime.connected:
            self._record = self._runtime.state or self._record
            await self._reattach()

    def state(self) -> State:
        return self._runtime.state if self._runtime is not None and self._runtime.state else self._record

    @property
    def shim(self) -> int | None:
        runtime = self.runtime
        return int(runtime.state["shim"]["pid"]) if runtime is not None and runtime.state else None

    @property
    def degraded(self) -> str:
        shim = self.state().get("shim") or {}
        return str(shim.get("reason") or "unknown") if shim.get("mode") == "none" else ""

    @property
    def unlimited(self) -> str:
        """Why the kernel does not hold the pod to its limits, although it should."""
        return str((self.state().get("shim") or {}).get("unlimited") or "")

    def runs(self) -> dict[str, ContainerRun]:
        return read_runs(self.state().get("containers") or {})

    def previous(self) -> Mapping[str, ContainerRun]:
        return read_runs(self.state().get("previous") or {})

    async def start(self, spec: wire.ContainerSpec, pod: wire.PodSpec, zygote: ZygoteClient) -> None:
        """Run a container; `zygote` makes the shim if the pod has none."""
        if self.runtime is None:
            wire.write_json(str(self.paths.spec), pod._asdict())
            self._runtime = await PodRuntime.spawn(self.paths.root, zygote, on_change=self._on_change)
        assert self._runtime is not None
        await self._runtime.start(spec)

    async def stop(self, name: str, *, grace: float) -> None:
        if self.runtime is not None:
            await self.runtime.stop(name, grace=grace)

    async def shutdown(self) -> None:
        """End the shim and everything in it; the record and the logs stay."""
        if self.runtime is not None:
            self._record = self.state()
            await self.runtime.shutdown()
        self._runtime = None

    async def switch_off(self) -> None:
        """The same because the node is switched off on purpose, which is put on record: no program is to blame."""
        if self.runtime is None:
            return
        record = settle_shutdown(self.state(), self._clock.now())
        await self.runtime.shutdown()
        self._runtime, self._record = None, record
        wire.write_json(str(self.paths.status), record)

    async def detach(self) -> None:
        if self._runtime is not None:
            await self._runtime.detach()
