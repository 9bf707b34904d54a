"""Names inside pods: every pod has its own /etc/hosts, in which Services and pods of the cluster resolve.

The file is bound into the pod's containers, so it is rewritten in place, never replaced. Names in short form (`svc`)
differ by namespace, so there is one text per namespace; a pod's own lines stand before it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from paddlecloud.kube.resource import Object
from paddlecloud.local.kubelet.pod.container_order import hostname_of

CLUSTER_DOMAIN = "cluster.local"
SERVICE_LABEL = "kubernetes.io/service-name"

HEADER, HOST_HEADER = "# Kubernetes-managed hosts file.\n", "# Kubernetes-managed hosts file (host network).\n"
"""Of the kubelet (managedHostsHeader in kubernetes/pkg/kubelet/kubelet_pods.go): programs look for it."""

LOCALHOST = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"


def own_lines(pod: Object, ip: str) -> str:
    """A pod's own names, and those its spec adds (`hostAliases`)."""
    spec, meta = pod["spec"], pod["metadata"]
    hostname = hostname_of(pod)
    names = [hostname]
    if subdomain := spec.get("subdomain"):
        domain = f"{subdomain}.{meta.get('namespace', '')}.svc.{CLUSTER_DOMAIN}"
        names = [f"{hostname}.{domain}", hostname]
    lines = [HOST_HEADER if spec.get("hostNetwork") else HEADER, LOCALHOST, f"{ip}\t{' '.join(names)}\n"]
    aliases = spec.get("hostAliases") or ()
    lines += ["\t".join([alias["ip"], *(alias.get("hostnames") or ())]) + "\n" for alias in aliases]
    return "".join(lines)


class Name(NamedTuple):
    """An address under a Service's name: `host` is a pod's own name in a headless Service, else empty."""

    ip: str
    service: str
    namespace: str
    host: str = ""

    def forms(self, reader: str) -> list[str]:
        """All names by which a pod of namespace `reader` may call it, the full one first."""
        base = f"{self.host}.{self.service}" if self.host else self.service
        forms = [
            f"{base}.{self.namespace}.svc.{CLUSTER_DOMAIN}",
            f"{base}.{self.namespace}.svc",
            f"{base}.{self.namespace}",
        ]
        return [*forms, base] if reader == self.namespace else forms


def names_of(services: Iterable[Object], slices: Iterable[Object]) -> list[Name]:
    """What resolves: a ClusterIP Service to its address, a headless one to each ready pod and its host name."""
    by_service: dict[tuple[str, str], list[Object]] = {}
    for piece in slices:
        meta = piece["metadata"]
        owner = (meta.get("labels") or {}).get(SERVICE_LABEL)
        if owner:
            by_service.setdefault((meta.get("namespace", ""), owner), []).append(piece)
    names: list[Name] = []
    for service in services:
        meta, spec = service["metadata"], service.get("spec") or {}
        namespace, name = meta.get("namespace", ""), meta["name"]
        cluster_ip = spec.get("clusterIP")
        if cluster_ip and cluster_ip != "None":
            names.append(Name(cluster_ip, name, namespace))
        if cluster_ip == "None":
            publish_all = bool(spec.get("publishNotReadyAddresses"))
            for piece in by_service.get((namespace, name), ()):
                names.extend(_endpoint_names(piece, name, namespace, publish_all=publish_all))
    return sorted(set(names))


def _endpoint_names(piece: Object, service: str, namespace: str, *, publish_all: bool) -> Iterable[Name]:
    for endpoint in piece.get("endpoints") or ():
        if not publish_all and (endpoint.get("conditions") or {}).get("ready") is False:
            continue
        for address in endpoint.get("addresses") or ():
            yield Name(address, service, namespace)
            if endpoint.get("hostname"):
                yield Name(address, service, namespace, endpoint["hostname"])


def render(names: Iterable[Name], reader: str) -> str:
    return "".join(f"{name.ip}\t{' '.join(name.forms(reader))}\n" for name in names)


class _Entry(NamedTuple):
    file: Path
    own: str
    namespace: str


class HostsWriter:
    """Keeps the files of all pods equal to their own lines plus the names of the cluster."""

    def __init__(self) -> None:
        self._pods: dict[str, _Entry] = {}
        self._names: list[Name] = []
        self._texts: dict[str, str] = {}

    def add(self, uid: str, file: Path, *, own: str, namespace: str) -> None:
        entry = _Entry(file, own, namespace)
        self._pods[uid] = entry
        self._write(entry)

    def remove(self, uid: str) -> None:
        self._pods.pop(uid, None)

    def set_names(self, names: list[Name]) -> None:
        """Replace what resolves; files of running pods follow at once."""
        if names == self._names:
            return
        self._names = names
        self._texts.clear()
        for entry in self._pods.values():
            self._write(entry)

    def _write(self, entry: _Entry) -> None:
        if entry.namespace not in self._texts:
            self._texts[entry.namespace] = render(self._names, entry.namespace)
        write_in_place(entry.file, entry.own + self._texts[entry.namespace])


def write_in_place(file: Path, text: str) -> None:
    """One write over the old content, then the end is cut: the inode stays, and so do the pods' mounts of it.

    Every user of the pod may read it, although the platform itself makes private files.
    """
    data = text.encode()
    try:
        fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except FileNotFoundError:
        return  # the pod's directory was removed under us
    try:
        os.fchmod(fd, 0o644)
        os.pwrite(fd, data, 0)
        os.ftruncate(fd, len(data))
    finally:
        os.close(fd)
