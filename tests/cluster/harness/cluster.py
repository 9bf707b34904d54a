"""A cluster from nothing to ready and back: the order in which things happen, and what each step waits for."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from paddlecloud.kube import errors as kube_errors

from . import argo, cgroups, control, juicefs, kfp, knative, network, node, pki, preflight, tekton, volcano
from .addons import Site
from .api import ClusterApi
from .base_images import ImageCache, offer_base_images
from .engines import BASE, Builder
from .errors import HarnessError, with_log
from .layout import CONTROL, HARNESS, MOST_NODES, Layout, Node
from .machine import Machine, other_clusters, running_machines, switch_off

_MADE_FOLDERS = "made-folders"
_ENTERING = 10.0  # seconds
_PATIENCE = 90.0  # seconds; warm starts take ten, on a machine with nothing else to do

ADDONS: dict[str, tuple[str, Callable[[Site], None]]] = {
    "volcano": (volcano.ENGINE, volcano.install),
    "knative": (knative.ENGINE, knative.install),
    "juicefs": (juicefs.ENGINE, juicefs.install),
    "argo": (argo.ENGINE, argo.install),
    "kfp": (kfp.ENGINE, kfp.install),
    "tekton": (tekton.ENGINE, tekton.install),
    "tekton-triggers": (tekton.TRIGGERS_ENGINE, tekton.install_triggers),
}
"""Engine and installer by name."""


@dataclass(frozen=True, slots=True)
class Options:
    nodes: int = 1
    durable: bool = False
    """etcd waits for the disk; for comparisons with the durable mode of the embedded platform."""

    def __post_init__(self) -> None:
        if not 1 <= self.nodes <= MOST_NODES:
            raise HarnessError(f"a cluster has 1 to {MOST_NODES} nodes, not {self.nodes}", reason="BadOptions")


class Cluster:
    def __init__(self, layout: Layout, *, say: Callable[[str], None]) -> None:
        self.layout = layout
        self._say = say
        self.control = Machine(layout, CONTROL)

    def install(self, names: Sequence[str]) -> None:
        """Put add-ons on the running cluster, one after the other."""
        for name in names:
            if name not in ADDONS:
                raise HarnessError(f"no add-on is called {name}, only {', '.join(ADDONS)}", reason="NoAddon")
        builder = Builder(self.layout.engines, say=self._say)
        for name in names:
            engine, put = ADDONS[name]
            binaries = builder.ensure([*BASE, engine])
            began = time.monotonic()
            put(Site(self.layout, binaries, builder.manifests(engine), self._say))
            self._say(f"{name} ready after {time.monotonic() - began:.1f} s")

    def build(self, engines: Sequence[str] = BASE) -> Mapping[str, Path]:
        return Builder(self.layout.engines, say=self._say).ensure(engines)

    def running(self) -> bool:
        return CONTROL in running_machines(self.layout)

    def up(self, options: Options) -> None:
        """Bring up a new cluster; an earlier or half-started one is taken down first."""
        with self._alone():
            preflight.check(self.layout, say=self._say)
            binaries = self.build()
            self._down()
            began = time.monotonic()
            try:
                self._start(options, binaries)
            except (HarnessError, OSError, subprocess.SubprocessError, kube_errors.ApiError) as error:
                raise self._explained(error) from error
            self._say(f"ready after {time.monotonic() - began:.1f} s")

    def down(self) -> None:
        """Remove every trace of a running or half-started cluster; built programs and images stay."""
        with self._alone():
            self._down()

    def _start(self, options: Options, binaries: Mapping[str, Path]) -> None:
        nodes = [Node(number) for number in range(1, options.nodes + 1)]
        machines = {each: Machine(self.layout, each.name) for each in nodes}
        self.layout.run.mkdir(parents=True)
        self._make_folders()
        pki.make(self.layout, nodes)
        offer_base_images(ImageCache(self.layout.images), binaries)
        self.control.boot(binaries["pause"])
        network.connect_control(self.control)
        control.start_api(self.control, binaries, durable=options.durable)
        control.start_registry(self.control)
        with ThreadPoolExecutor(len(nodes)) as pool:
            list(pool.map(lambda each: self._boot(each, machines[each], binaries), nodes))
        api = ClusterApi(self.layout)
        self._await("the API server", api.ready, machine=self.control, programs=["kube-apiserver", "etcd"])
        control.start_controllers(self.control, binaries)
        for each, machine in machines.items():
            node.start_agents(each, machine, binaries)
        self.apply(binaries, HARNESS / "manifests" / "dns.yaml")
        for each in nodes:
            self._await_node(each, api)
        dns = partial(api.deployment_ready, "kube-system", "coredns")
        self._await("cluster DNS", dns, machine=machines[nodes[0]], programs=["kubelet"], restarted=True)
        api.close()

    def api_off(self) -> None:
        """Kill the API server; what it knows stays in etcd, and everything else runs on without it."""
        self.control.kill("kube-apiserver")

    def api_on(self) -> None:
        self.control.start("kube-apiserver", control.apiserver(self.build(), self.layout))
        api = ClusterApi(self.layout)
        self._await("the API server", api.ready, machine=self.control, programs=["kube-apiserver"])
        api.close()

    def node_off(self, number: int) -> None:
        """A power cut: nothing on the node is notified."""
        Machine(self.layout, Node(number).name).power_off()

    def node_on(self, number: int) -> None:
        """Switch a lost node on again, or add one; it finds the disk it had."""
        each, binaries = Node(number), self.build()
        machine = Machine(self.layout, each.name)
        pki.make(self.layout, [each])
        self._boot(each, machine, binaries)
        node.start_agents(each, machine, binaries)
        api = ClusterApi(self.layout)
        self._await_node(each, api)
        api.close()

    def await_whole(self) -> None:
        """Until every node is Ready and every engine has its pods: what a test that took something away hands back."""
        api = ClusterApi(self.layout)
        deadline = time.monotonic() + 2 * _PATIENCE
        while missing := api.missing():
            if time.monotonic() > deadline:
                raise HarnessError(f"the cluster is not whole again: {'; '.join(missing)}", reason="NotWhole")
            time.sleep(0.5)
        api.close()

    def _await_node(self, each: Node, api: ClusterApi) -> None:
        machine = Machine(self.layout, each.name)
        ready = partial(api.node_ready, each.name)
        self._await(each.name, ready, machine=machine, programs=["kubelet"], restarted=True)

    def _boot(self, each: Node, machine: Machine, binaries: Mapping[str, Path]) -> None:
        node.boot(each, machine, self.control, binaries)
        node.start_runtime(each, machine)

    def apply(self, binaries: Mapping[str, Path], manifest: Path) -> None:
        command = [
            str(binaries["kubectl"]),
            "--kubeconfig",
            str(self.layout.kubeconfig),
            "apply",
            "--server-side",
            "-f",
        ]
        done = subprocess.run([*command, str(manifest)], capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            raise HarnessError(f"{manifest} was refused: {done.stderr.strip()[-2000:]}", reason="Refused")

    def _await(
        self,
        what: str,
        check: Callable[[], bool],
        *,
        machine: Machine,
        programs: Sequence[str],
        restarted: bool = False,
    ) -> None:
        """Wait for something that programs on a machine bring about; the end of one that nobody restarts ends it."""
        began = time.monotonic()
        seen: set[str] = set()
        while not check():
            alive = {program for program in programs if machine.runs(program)}
            seen |= alive
            waited = time.monotonic() - began
            # One that was never seen may still be on its way into the machine.
            ended = [each for each in programs if each not in alive and (each in seen or waited > _ENTERING)]
            if (ended and not restarted) or waited > _PATIENCE:
                how = f"{ended[0]} ended" if ended else f"not ready after {_PATIENCE:.0f} s"
                message = f"{what} did not come up ({how}); `make cluster` starts anew"
                log = self.layout.log(machine.name, (ended or programs)[0])
                raise HarnessError(with_log(message, log), reason="NotReady")
            time.sleep(0.05)

    def _down(self) -> None:
        switch_off(self.layout)
        network.disconnect_host()
        cgroups.remove()
        self._remove_folders()
        if self.layout.run.exists():
            shutil.rmtree(self.layout.run)

    def _make_folders(self) -> None:
        """Mount points that the host lacks; which ones is written down first, so that they can be removed again."""
        missing = [folder for folder in node.PRIVATE_FOLDERS if not Path(folder).exists()]
        (self.layout.run / _MADE_FOLDERS).write_text("\n".join(missing))
        for folder in missing:
            Path(folder).mkdir(parents=True)

    def _remove_folders(self) -> None:
        if other_clusters(self.layout):
            return  # they are mount points of the other one too, and would take its mounts with them
        record = self.layout.run / _MADE_FOLDERS
        for folder in record.read_text().split() if record.exists() else ():
            try:
                os.rmdir(folder)
            except OSError:
                pass  # never made, or by now somebody else's

    def _explained(self, error: Exception) -> HarnessError:
        free = shutil.disk_usage(self.layout.cache).free
        if free < 100 << 20:
            return HarnessError(
                f"the disk of {self.layout.cache} is full ({free >> 20} MiB free): make room and run `make cluster`",
                reason="DiskFull",
            )
        if isinstance(error, HarnessError):
            return error
        return HarnessError(
            f"the cluster could not be started: {error}; logs are in {self.layout.logs}", reason="StartFailed"
        )

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One harness at a time per cache and lane. The lock goes with its process, so a killed run leaves none."""
        self.layout.cache.mkdir(parents=True, exist_ok=True)
        with self.layout.lock.open("a+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.seek(0)
                raise HarnessError(
                    f"another run (process {lock.read().strip() or 'unknown'}) is building or starting a cluster in "
                    f"{self.layout.cache}: wait for it, or set PDC_CLUSTER_CACHE to another folder",
                    reason="Busy",
                ) from None
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
            yield
