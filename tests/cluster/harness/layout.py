"""Where everything lies and which addresses it has. Pure.

    host          10.201.0.254   the tests; interface pdc0, routes to pods and services
    control       10.201.0.1     etcd, kube-apiserver, controllers, scheduler, image registry; holds the bridge
    node1, 2, …   10.201.0.11…   containerd, kubelet, kube-proxy; pods in 10.244.N.0/24

Built things are kept by content below the cache and outlive the cluster; a running cluster is the folder `run`.
A second cluster at the same time is one of another lane (`lanes.py`): it has its own network, so the same
addresses, and a folder and cgroups of its own; what was built is shared.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

KUBERNETES = "1.34.3"
ARGO = "v3.7.18"

HOST_LINK = "pdc0"
HOST_ADDRESS = "10.201.0.254"
CONTROL_ADDRESS = "10.201.0.1"
MACHINE_NETWORK = "10.201.0.0/24"
POD_NETWORK = "10.244.0.0/16"
SERVICE_NETWORK = "10.96.0.0/16"
KUBERNETES_SERVICE = "10.96.0.1"
DNS_SERVICE = "10.96.0.10"
API_PORT = 6443
REGISTRY_PORT = 5000
REGISTRY_HOSTS = ("index.docker.io", "registry.baidubce.com", "gcr.io", "ghcr.io", "quay.io", "registry.k8s.io")
"""Names under which pods find the fixture's registry, over TLS, as they would find the real ones."""
MOST_NODES = 9

CONTROL = "control"
LANE = os.environ.get("PDC_CLUSTER_LANE", "")
"""Which of several clusters at the same time; nothing for the first."""
_SUFFIX = f"-{LANE}" if LANE else ""
CGROUP = f"paddlecloud-cluster{_SUFFIX}"
"""The cgroup below which all nodes keep their pods."""

HARNESS = Path(__file__).parent
ENGINES = HARNESS.parent / "engines"


@dataclass(frozen=True, slots=True)
class Node:
    number: int

    @property
    def name(self) -> str:
        return f"node{self.number}"

    @property
    def address(self) -> str:
        return f"10.201.0.{10 + self.number}"

    @property
    def pods(self) -> str:
        return f"10.244.{self.number}.0/24"

    @property
    def cgroup(self) -> str:
        return f"{CGROUP}/{self.name}"


def cache_folder() -> Path:
    chosen = os.environ.get("PDC_CLUSTER_CACHE")
    return Path(chosen) if chosen else Path.home() / ".cache" / "paddlecloud" / "cluster"


@dataclass(frozen=True, slots=True)
class Layout:
    cache: Path

    @staticmethod
    def default() -> Layout:
        return Layout(cache_folder().resolve())

    @property
    def engines(self) -> Path:
        return self.cache / "engines"

    @property
    def images(self) -> Path:
        return self.cache / "images"

    @property
    def run(self) -> Path:
        return self.cache / f"run{_SUFFIX}"

    @property
    def lock(self) -> Path:
        return self.cache / f"lock{_SUFFIX}"

    @property
    def pki(self) -> Path:
        return self.run / "pki"

    @property
    def logs(self) -> Path:
        return self.run / "logs"

    @property
    def kubeconfig(self) -> Path:
        return self.run / "kubeconfig"

    @property
    def audit_policy(self) -> Path:
        return self.run / "audit-policy.json"

    @property
    def audit_log(self) -> Path:
        return self.run / "audit.log"

    def machine(self, name: str) -> Path:
        return self.run / "machines" / name

    def log(self, machine: str, service: str) -> Path:
        return self.logs / f"{machine}-{service}.log"
