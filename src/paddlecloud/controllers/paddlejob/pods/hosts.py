"""The hosts file of pods that use their node's network (`intranet: Host`).

Such a pod has its node's host name, and gloo, through which Paddle talks on CPUs, listens on the address that this name
resolves to. A node's own /etc/hosts often does not know the name, so that Paddle ends with an error, or knows it as a
loopback address (Debian does), so that peers connect to themselves. Therefore these pods get a file that says it
rightly: a key of the job's ConfigMap, mounted in place of the node's file.

Like the environment it is written when every pod has its node, and a pod waits for the one of its own generation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from paddlecloud.api.paddlejob import JobSettings
from paddlecloud.controllers.paddlejob.observe import PodView
from paddlecloud.controllers.paddlejob.pods import env

PATH = "/etc/hosts"
VOLUME = "paddlecloud-hosts"
_LOOPBACK = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"


def key(generation: int) -> str:
    return f"PADDLE_HOSTS_{generation}"


def wanted(settings: JobSettings) -> bool:
    """Whether any pod of the job reads the file."""
    return settings.intranet == "Host" and any(_reads(_first(role.template)) for role in settings.roles)


def _reads(container: Mapping[str, Any]) -> bool:
    """Not where gloo has its interface set, where the template has its own file, or where accelerators talk."""
    chosen = any(entry.get("name") == "GLOO_SOCKET_IFNAME" for entry in container.get("env") or ())
    mounted = any(mount.get("mountPath") == PATH for mount in container.get("volumeMounts") or ())
    return not (chosen or mounted or env.wants_accelerator(container))


def _first(template: Mapping[str, Any]) -> Mapping[str, Any]:
    containers: Sequence[Mapping[str, Any]] = (template.get("spec") or {}).get("containers") or ({},)
    return containers[0]


def content(pods: Iterable[PodView]) -> str:
    """Every node of the job under its name and the name's first part, one of which is its host name."""
    known = sorted({(pod.node, pod.ip) for pod in pods})
    lines = [f"{ip}\t{' '.join(dict.fromkeys((node, node.partition('.')[0])))}\n" for node, ip in known]
    return _LOOPBACK + "".join(lines)


def mount(spec: dict[str, Any], settings: JobSettings, *, generation: int) -> None:
    container = spec["containers"][0]
    if not _reads(container):
        return
    source = {"name": settings.name, "items": [{"key": key(generation), "path": "hosts"}]}
    spec["volumes"] = [*(spec.get("volumes") or ()), {"name": VOLUME, "configMap": source}]
    place = {"name": VOLUME, "mountPath": PATH, "subPath": "hosts", "readOnly": True}
    container["volumeMounts"] = [*(container.get("volumeMounts") or ()), place]
