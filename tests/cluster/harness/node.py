"""A node: containerd, kubelet and kube-proxy on their own machine, with the folders they insist on."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import grpc

from . import cgroups, network
from .errors import HarnessError, with_log
from .layout import CONTROL_ADDRESS, DNS_SERVICE, POD_NETWORK, REGISTRY_PORT, Layout, Node
from .machine import Machine

PRIVATE_FOLDERS = ("/var/lib/kubelet", "/var/lib/cni", "/var/log/pods", "/var/log/containers", "/var/cache")
"""Paths that kubelet, CSI drivers and CNI plugins have fixed in their code, and one for what nodes cache."""

_SOCKET = "/run/containerd/containerd.sock"
"""On the machine's own /run: a path below the cache may be longer than a socket's may be."""

_CRI_VERSION = "/runtime.v1.RuntimeService/Version"
"""Method of the container runtime interface (k8s.io/cri-api, api.proto); an empty request is a valid one."""

KERNEL_SETTINGS = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}
"""What the kubelet wants of the kernel, which it would change for the whole host."""


def boot(node: Node, machine: Machine, control: Machine, binaries: Mapping[str, Path]) -> None:
    # A computer that is switched on has no pods yet. The kubelet would ask the runtime for each that it finds here, and
    # wait three seconds for the answer, before the node is ready.
    cgroups.remove(below=node.cgroup)
    cgroups.make(node)
    machine.boot(binaries["pause"])
    lines = ["mount -t tmpfs tmpfs /run", "mkdir -p /run/netns /run/lock", "mount -t tmpfs tmpfs /dev/shm"]
    for folder in PRIVATE_FOLDERS:
        own = machine.folder / "files" / folder.lstrip("/")
        own.mkdir(parents=True, exist_ok=True)
        # Shared, as everything is on a computer that systemd started: mounts of CSI drivers must reach the pods.
        lines += [f"mount --bind '{own}' {folder}", f"mount --make-rshared {folder}"]
    for setting, value in KERNEL_SETTINGS.items():
        # The kubelet reads the value it wants and leaves the host's kernel as it is.
        shown = machine.folder / "kernel" / setting.replace("/", ".")
        shown.parent.mkdir(exist_ok=True)
        shown.write_text(value + "\n")
        lines.append(f"mount --bind '{shown}' /proc/sys/{setting}")
    machine.script(lines)
    network.connect_node(node, machine, control)


def start_runtime(node: Node, machine: Machine) -> None:
    folder = machine.folder
    _write(folder / "cni" / "10-pods.conflist", json.dumps(cni(node, folder), indent=2))
    _write(folder / "registries" / "_default" / "hosts.toml", registries())
    _write(folder / "containerd.toml", containerd(folder))
    machine.start("containerd", ["containerd", "--config", str(folder / "containerd.toml")], restart=True)


def start_agents(node: Node, machine: Machine, binaries: Mapping[str, Path]) -> None:
    folder, layout = machine.folder, machine.layout
    _await_runtime(machine)
    _write(folder / "kubelet.json", json.dumps(kubelet(node, layout), indent=2))
    _write(folder / "proxy.json", json.dumps(proxy(node, layout), indent=2))
    kubeconfig = layout.pki / f"{node.name}.kubeconfig"
    machine.start("kubelet", [
        str(binaries["kubelet"]), f"--config={folder}/kubelet.json", f"--kubeconfig={kubeconfig}",
        f"--hostname-override={node.name}", f"--node-ip={node.address}",
    ], restart=True)  # fmt: skip
    machine.start("kube-proxy", [str(binaries["kube-proxy"]), f"--config={folder}/proxy.json"], restart=True)


# --- configuration files ---


def cni(node: Node, folder: Path) -> dict[str, Any]:
    ranges = [[{"subnet": node.pods}]]
    ipam = {"type": "host-local", "dataDir": f"{folder}/addresses", "ranges": ranges, "routes": [{"dst": "0.0.0.0/0"}]}
    bridge = {"type": "bridge", "bridge": "cni0", "isGateway": True, "ipMasq": False, "hairpinMode": True, "ipam": ipam}
    portmap = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge, portmap, {"type": "loopback"}]}


def registries() -> str:
    """Every image comes from the fixture's registry, whatever host its name begins with."""
    here = f"http://{CONTROL_ADDRESS}:{REGISTRY_PORT}"
    return f'server = "{here}"\n[host."{here}"]\n  capabilities = ["pull", "resolve"]\n'


def containerd(folder: Path) -> str:
    cri = 'plugins."io.containerd.grpc.v1.cri"'
    return f"""\
version = 2
root = "{folder}/containerd"
state = "/run/containerd"
[grpc]
  address = "{_SOCKET}"
[plugins."io.containerd.internal.v1.opt"]
  path = "{folder}/opt"
[{cri}]
  sandbox_image = "dev.local/pause:1"
  restrict_oom_score_adj = true
  disable_apparmor = true
  [{cri}.cni]
    bin_dir = "{_cni_folder()}"
    conf_dir = "{folder}/cni"
  [{cri}.registry]
    config_path = "{folder}/registries"
  [{cri}.containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [{cri}.containerd.runtimes.runc.options]
      SystemdCgroup = false
"""


def kubelet(node: Node, layout: Layout) -> dict[str, Any]:
    folder = layout.machine(node.name)
    resolv = folder / "resolv.conf"
    _write(resolv, "search .\n")  # the cluster is closed: names of the outside world do not resolve
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": node.address,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(layout.pki / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": f"unix://{_SOCKET}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{node.cgroup}",
        "clusterDNS": [DNS_SERVICE],
        "clusterDomain": "cluster.local",
        "resolvConf": str(resolv),
        "volumePluginDir": f"{folder}/volume-plugins",
        "healthzBindAddress": "127.0.0.1",
        "serializeImagePulls": False,
        "nodeLeaseDurationSeconds": 12,  # renewed every 3 s; see the grace period of the controller manager
        "failSwapOn": False,
        "failCgroupV1": False,
        # Root without CAP_SYS_RESOURCE, as in many virtual machines, may neither lower the one nor raise the other.
        "oomScoreAdj": 0,
        "maxOpenFiles": 20000,
        # Nodes share one disk, which others fill too. Evicting pods or removing images of tests that still run frees
        # next to nothing, and a node keeps all pods out for five minutes after that.
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "0%", "imagefs.available": "0%"},
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
    }


def proxy(node: Node, layout: Layout) -> dict[str, Any]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": str(layout.pki / "proxy.kubeconfig")},
        "mode": "iptables",
        "clusterCIDR": POD_NETWORK,
        "hostnameOverride": node.name,
        "oomScoreAdj": 0,
        "conntrack": {"maxPerCore": 0},
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
    }


def _cni_folder() -> str:
    for folder in ("/usr/lib/cni", "/opt/cni/bin"):
        if Path(folder, "bridge").exists():
            return folder
    raise HarnessError(
        "no CNI plugins in /usr/lib/cni or /opt/cni/bin: install containernetworking-plugins", reason="NoCni"
    )


def _await_runtime(machine: Machine, *, patience: float = 60) -> None:
    """Until containerd's CRI service answers. Its socket is there earlier, and a kubelet that asks too soon ends."""
    began = time.monotonic()
    while (obstacle := cri_obstacle(Path(f"/proc/{machine.holder}/root{_SOCKET}"))) is not None:
        if time.monotonic() - began > patience:
            log = machine.layout.log(machine.name, "containerd")
            message = f"containerd on {machine.name} does not answer after {patience:.0f} s: {obstacle}"
            raise HarnessError(with_log(message, log), reason="ServiceDown")
        time.sleep(0.05)


def cri_obstacle(socket: Path) -> str | None:
    """Why the CRI service behind a socket does not answer yet; None if it does (RuntimeService.Version)."""
    if not socket.exists():
        return "its socket is not there"
    with grpc.insecure_channel(f"unix:{socket}") as channel:
        version = channel.unary_unary(_CRI_VERSION, bytes, bytes)
        try:
            version(b"", timeout=5)
        except grpc.RpcError as error:
            return str(error.details())
    return None


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
