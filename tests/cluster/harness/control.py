"""The control machine: etcd, kube-apiserver, kube-controller-manager, kube-scheduler and the image registry."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from .layout import (
    API_PORT,
    CONTROL_ADDRESS,
    HARNESS,
    POD_NETWORK,
    REGISTRY_PORT,
    SERVICE_NETWORK,
    Layout,
)
from .machine import Machine

_ETCD = "http://127.0.0.1:2379"
SECOND_ETCD_PORT = 2479


AUDITED = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "rules": [
        {"level": "None", "userGroups": ["system:serviceaccounts:kube-system", "system:nodes"]},
        {"level": "Metadata", "userGroups": ["system:serviceaccounts"]},
    ],
}
"""What accounts of pods asked for: tests hold it against the rights they have."""


def start_api(machine: Machine, binaries: Mapping[str, Path], *, durable: bool) -> None:
    """etcd and the API server; the latter waits for the former by itself."""
    machine.layout.audit_policy.write_text(json.dumps(AUDITED))
    machine.start("etcd", etcd(binaries, machine.layout, durable=durable))
    machine.start("kube-apiserver", apiserver(binaries, machine.layout))


def start_controllers(machine: Machine, binaries: Mapping[str, Path]) -> None:
    """What only makes sense once the API answers."""
    machine.start("kube-controller-manager", controller_manager(binaries, machine.layout))
    machine.start("kube-scheduler", scheduler(binaries, machine.layout))


def start_registry(machine: Machine) -> None:
    machine.start("registry", [
        sys.executable, str(HARNESS / "registry.py"), str(machine.layout.images), CONTROL_ADDRESS, str(REGISTRY_PORT),
        f"{machine.layout.pki}/registry/server.crt", f"{machine.layout.pki}/registry/server.key",
    ], own_files=False)  # fmt: skip


def start_second_etcd(machine: Machine, binaries: Mapping[str, Path]) -> None:
    """A store for add-ons, reachable from pods; the cluster's own is not."""
    if any("--name=second" in command for command in machine.processes().values()):
        return
    clients = f"http://{CONTROL_ADDRESS}:{SECOND_ETCD_PORT}"
    machine.start("second-etcd", [
        str(binaries["etcd"]), "--name=second", f"--data-dir={machine.layout.run}/second-etcd", "--unsafe-no-fsync",
        f"--listen-client-urls={clients}", f"--advertise-client-urls={clients}",
        "--listen-peer-urls=http://127.0.0.1:2480", "--initial-advertise-peer-urls=http://127.0.0.1:2480",
        "--initial-cluster=second=http://127.0.0.1:2480",
    ])  # fmt: skip


def etcd(binaries: Mapping[str, Path], layout: Layout, *, durable: bool) -> list[str]:
    """`durable` pays for fsync, as a cluster that must survive a power cut does; tests have no use for it."""
    return [
        str(binaries["etcd"]),
        f"--data-dir={layout.run}/etcd",
        f"--listen-client-urls={_ETCD}",
        f"--advertise-client-urls={_ETCD}",
        "--listen-peer-urls=http://127.0.0.1:2380",
        *([] if durable else ["--unsafe-no-fsync"]),
    ]


def apiserver(binaries: Mapping[str, Path], layout: Layout) -> list[str]:
    pki = layout.pki
    return [
        str(binaries["kube-apiserver"]),
        f"--etcd-servers={_ETCD}",
        f"--bind-address={CONTROL_ADDRESS}",
        f"--advertise-address={CONTROL_ADDRESS}",
        f"--secure-port={API_PORT}",
        f"--audit-policy-file={layout.audit_policy}",
        f"--audit-log-path={layout.audit_log}",
        f"--service-cluster-ip-range={SERVICE_NETWORK}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged=true",
        # Webhooks are called at their pods' addresses: no kube-proxy runs on this machine.
        "--enable-aggregator-routing=true",
        f"--tls-cert-file={pki}/server.crt",
        f"--tls-private-key-file={pki}/server.key",
        f"--client-ca-file={pki}/ca.crt",
        f"--kubelet-client-certificate={pki}/kubelet-client.crt",
        f"--kubelet-client-key={pki}/kubelet-client.key",
        "--kubelet-preferred-address-types=InternalIP",
        f"--service-account-key-file={pki}/service-accounts.crt",
        f"--service-account-signing-key-file={pki}/service-accounts.key",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--requestheader-client-ca-file={pki}/front-proxy/ca.crt",
        f"--proxy-client-cert-file={pki}/front-proxy-client.crt",
        f"--proxy-client-key-file={pki}/front-proxy-client.key",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
    ]


def controller_manager(binaries: Mapping[str, Path], layout: Layout) -> list[str]:
    pki = layout.pki
    return [
        str(binaries["kube-controller-manager"]),
        *_component(layout, "controller-manager"),
        "--controllers=*,-node-ipam-controller",  # each node's pod network is fixed by its number
        "--node-monitor-grace-period=20s",  # default 50 s: tests of lost nodes would wait for most of it
        "--use-service-account-credentials=true",
        # The default of 20 requests a second spreads the start of some forty controllers over six seconds.
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
        f"--service-account-private-key-file={pki}/service-accounts.key",
        f"--root-ca-file={pki}/ca.crt",
        f"--cluster-signing-cert-file={pki}/ca.crt",
        f"--cluster-signing-key-file={pki}/ca.key",
        f"--cluster-cidr={POD_NETWORK}",
    ]


def scheduler(binaries: Mapping[str, Path], layout: Layout) -> list[str]:
    return [str(binaries["kube-scheduler"]), *_component(layout, "scheduler")]


def _component(layout: Layout, name: str) -> list[str]:
    kubeconfig = f"{layout.pki}/{name}.kubeconfig"
    return [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        "--leader-elect=false",
    ]
