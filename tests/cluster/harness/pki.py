"""Who is who in the cluster: one authority, a certificate per component, a kubeconfig for each that calls the API.

The certificates are made by the code of the embedded platform; that real Kubernetes accepts them tests it too.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from pathlib import Path

from paddlecloud.local.apiserver.http import certs

from .layout import API_PORT, CONTROL_ADDRESS, KUBERNETES_SERVICE, REGISTRY_HOSTS, Layout, Node

_COMPONENTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "admin": ("admin", ("system:masters",)),
    "controller-manager": ("system:kube-controller-manager", ()),
    "scheduler": ("system:kube-scheduler", ()),
    "proxy": ("system:kube-proxy", ()),
    "kubelet-client": ("kube-apiserver-kubelet-client", ("system:masters",)),
}


def make(layout: Layout, nodes: Iterable[Node]) -> None:
    """Everything below `pki`; what is already there stays, so that a kubeconfig in use keeps working."""
    authority = certs.ensure(layout.pki, {CONTROL_ADDRESS, KUBERNETES_SERVICE})
    front_proxy = certs.ensure(layout.pki / "front-proxy")
    certs.ensure(layout.pki / "registry", set(REGISTRY_HOSTS))
    for name, (user, groups) in _COMPONENTS.items():
        _client(layout.pki, name, user, groups, authority)
    for node in nodes:
        _client(layout.pki, node.name, f"system:node:{node.name}", ("system:nodes",), authority)
    _client(layout.pki, "front-proxy-client", "front-proxy-client", (), front_proxy)
    _client(layout.pki, "service-accounts", "service-accounts", (), authority)  # signs tokens
    layout.kubeconfig.write_bytes((layout.pki / "admin.kubeconfig").read_bytes())
    layout.kubeconfig.chmod(0o600)


def _client(folder: Path, name: str, user: str, groups: tuple[str, ...], authority: certs.CertPaths) -> None:
    kubeconfig = folder / f"{name}.kubeconfig"
    if kubeconfig.exists():
        return
    pair = certs.issue_client(authority, user, groups)
    for suffix, data in (("key", pair.key), ("crt", pair.cert)):
        path = folder / f"{name}.{suffix}"
        path.touch(mode=0o600)
        path.write_bytes(data)
    kubeconfig.touch(mode=0o600)
    kubeconfig.write_text(_kubeconfig(user, authority.ca_cert.read_bytes(), pair))


def _kubeconfig(user: str, authority: bytes, pair: certs.KeyPair) -> str:
    def encode(data: bytes) -> str:
        return base64.b64encode(data).decode()

    cluster = {"server": f"https://{CONTROL_ADDRESS}:{API_PORT}", "certificate-authority-data": encode(authority)}
    credentials = {"client-certificate-data": encode(pair.cert), "client-key-data": encode(pair.key)}
    context = {"cluster": "paddlecloud-test", "user": user}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "paddlecloud-test", "cluster": cluster}],
        "users": [{"name": user, "user": credentials}],
        "contexts": [{"name": "paddlecloud-test", "context": context}],
        "current-context": "paddlecloud-test",
    }
    return json.dumps(document, indent=2)
