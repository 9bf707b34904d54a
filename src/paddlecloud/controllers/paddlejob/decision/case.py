"""One job at one moment: everything the rules look at, read once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from paddlecloud.api.paddlejob import JobSettings, PaddleJobStatus, phase_of
from paddlecloud.controllers.node_folders import DEFAULT_CACHES, NodeFolders
from paddlecloud.controllers.paddlejob import names
from paddlecloud.controllers.paddlejob.decision.last_valid_spec import Reading
from paddlecloud.controllers.paddlejob.gang import podgroup
from paddlecloud.controllers.paddlejob.observe import Observed, PodView, is_running
from paddlecloud.controllers.paddlejob.pods import env, ports
from paddlecloud.kube.resource import Object

REPLICAS = "paddlepaddle.org/replicas"
"""Annotation of the ConfigMap: how many pods of each role it lists."""

WRITTEN = "paddlepaddle.org/written"
"""Annotation of the ConfigMap: when its content last changed, in seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class JobOptions:
    """Settings of the controller."""

    hosts_files: bool = True
    """Pods that use their node's network get a hosts file (`hosts`); not where every pod has a name and a file of its
    own all the same."""
    nudge_after: float = 1.0
    """Seconds after which a pod that still waits for its ConfigMap is touched, so that its kubelet looks again."""
    servers_patience: float = 30.0
    """Seconds that workers wait for servers to listen, once these run."""
    controller_name: str = "paddlecloud.org/paddlejob-controller"
    """The value of `managedBy` that means us, besides none at all."""
    etcd: str = ""
    """`host:port` of an etcd that elastic jobs use, for clusters that rely on Paddle's own elastic launcher."""
    gangs: tuple[podgroup.Engine, ...] = (podgroup.VOLCANO,)
    """Schedulers of gangs that are there, the preferred one first."""
    report_url: str = ""
    """Where pods report to, as they reach it; empty where nobody listens."""
    python_path: str = ""
    """A folder in which pods find `paddlecloud.data`; empty where images bring it along."""
    local_root: str = ""
    """The folder under which sets of the local engine have their caches; empty where there is no such engine."""
    caches: NodeFolders = DEFAULT_CACHES
    """Below which folders of nodes sets may have caches."""

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> JobOptions:
        return cls(caches=NodeFolders.for_caches(environment))


Member = tuple[str, int]


@dataclass(frozen=True)
class JobCase:
    job: Object
    settings: JobSettings
    old: PaddleJobStatus
    observed: Observed
    now: float
    options: JobOptions
    reading: Reading
    """Which spec `job` and `settings` are made from, and what is wrong with the one that is written."""

    @property
    def phase(self) -> str:
        return phase_of(self.old.phase)

    @property
    def generation(self) -> int:
        return self.old.generation or 0

    @cached_property
    def etcd(self) -> str:
        """With an etcd the workers form the job among themselves: pods come and go singly, and get no addresses."""
        return env.etcd_of(self.settings, self.options.etcd)

    @cached_property
    def gang(self) -> podgroup.Engine | None:
        return podgroup.choose(self.settings, self.options.gangs)

    @property
    def pod_group(self) -> Object | None:
        """The PodGroup of the job's name that its scheduler would read, made by this controller or not."""
        return self.observed.pod_groups.get(self.gang.resource) if self.gang is not None else None

    @cached_property
    def members(self) -> tuple[Member, ...]:
        """For jobs that `validate` has accepted: an invalid one may ask for any number."""
        return tuple((role.name, index) for role in self.settings.roles for index in range(role.replicas))

    @cached_property
    def current(self) -> dict[Member, PodView]:
        """The pods of this generation that are wanted."""
        wanted = {role.name: role.replicas for role in self.settings.roles}
        return {
            (pod.role, pod.index): self._as_counted(pod)
            for pod in self.observed.pods
            if pod.generation == self.generation and 0 <= pod.index < wanted.get(pod.role, 0)
        }

    def _as_counted(self, pod: PodView) -> PodView:
        """Our own probe of a server's port is there to hold the workers back; once they may start it is ignored."""
        if pod.role == "ps" and pod.state == "starting" and self.workers_let_go and is_running(pod):
            return replace(pod, state="running")
        return pod

    @property
    def workers_let_go(self) -> bool:
        """Whether this generation's workers may start, where they wait for that."""
        return env.servers_ready_key(self.generation) in ((self.observed.config or {}).get("data") or {})

    @cached_property
    def stale(self) -> tuple[PodView, ...]:
        """The pods that have no place in the job any more: of an older generation, or beyond its replicas."""
        keep = {pod.uid for pod in self.current.values()}
        return tuple(pod for pod in self.observed.pods if pod.uid not in keep)

    @cached_property
    def missing(self) -> tuple[Member, ...]:
        return tuple(member for member in self.members if member not in self.current)

    @property
    def formed(self) -> bool:
        """Whether this generation has its endpoints: from then on a pod that is missing was lost."""
        data = (self.observed.config or {}).get("data") or {}
        return env.generation_key(self.generation) in data

    @property
    def resized(self) -> bool:
        """Whether the generation was formed with other numbers of pods than are wanted now."""
        if not self.formed or self.observed.config is None:
            return False
        written = (self.observed.config["metadata"].get("annotations") or {}).get(REPLICAS)
        return written is not None and written != self.replicas

    @property
    def replicas(self) -> str:
        return ",".join(f"{role.name}={role.replicas}" for role in self.settings.roles)

    @cached_property
    def port(self) -> int | None:
        """First port of the job, for life; None when every block is taken."""
        if self.settings.intranet != "Host":
            return ports.BASE
        annotated = [pod.raw["metadata"].get("annotations", {}).get(names.PORT) for pod in self.current.values()]
        known = self.old.port or next((int(port) for port in annotated if port), None)
        if known in ports.SHARED_RANGE:
            return known
        return ports.choose(self.job["metadata"]["uid"], self.observed.ports_in_use)

    def host(self, pod: PodView) -> str:
        """What peers call a pod; empty while it has no address."""
        if not pod.ip:
            return ""
        if self.settings.intranet == "Service":
            return names.host_name(self.settings.name, pod.role, pod.index, namespace=self.settings.namespace)
        return pod.ip
