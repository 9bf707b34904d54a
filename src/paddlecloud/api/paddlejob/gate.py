"""The start barrier of a PaddleJob, as kubelets report it.

Pods refer to keys of the ConfigMap named like their job, which is written when every pod has an address. Until then
Kubernetes' kubelet reports the missing ConfigMap or key as CreateContainerConfigError, with a Warning: the expected way
to start, not a fault. Another key that is missing from the same ConfigMap is one that the template names by mistake.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

GENERATION = "PADDLE_GENERATION_"
"""Keys that every pod waits for, one of each generation of the gang, begin so."""
SERVERS_READY = "PADDLE_SERVERS_READY_"
"""Keys that workers wait for, where they must not start before the parameter servers listen, begin so."""

_LACKS = re.compile(
    r'configmap "(?P<whole>[^"]*)" not found|couldn\'t find key (?P<key>\S+) in ConfigMap [^/\s]*/(?P<name>\S+)'
)
"""As kubelets say it, those of Kubernetes and the embedded one."""
_MEMBER = re.compile(r"-(ps|worker|heter)-\d+")


def awaited(reason: str, message: str, job: str) -> str:
    """What a container of the job waits for by its waiting state, if only for the others of its job; else empty."""
    if reason == "ContainerCreating" and message in (sentence(job, ""), sentence(job, SERVERS_READY)):
        return message  # as the embedded kubelet reports it
    found = _LACKS.search(message) if reason == "CreateContainerConfigError" else None
    if found is None or (found["whole"] or found["name"]) != job:
        return ""
    return sentence(job, found["key"] or "") if _is_barrier(found) else ""


def _is_barrier(found: re.Match[str]) -> bool:
    return found["key"] is None or found["key"].startswith((GENERATION, SERVERS_READY))


def is_barrier_file(message: str, pod: str) -> bool:
    """Whether a volume of a job's pod is awaited that is made of the ConfigMap of the barrier: its hosts file."""
    found = _LACKS.search(message)
    return found is not None and found["whole"] is not None and _is_member(pod, found["whole"])


def _is_member(pod: str, job: str) -> bool:
    return pod.startswith(job) and _MEMBER.fullmatch(pod.removeprefix(job)) is not None


def sentence(job: str, key: str) -> str:
    if key.startswith(SERVERS_READY):
        return f"waiting for the parameter servers of job {job} to listen"
    return f"waiting until every pod of job {job} has an address"


def event_awaited(event: Mapping[str, Any]) -> str:
    """The same of an Event: what a pod waited for when its kubelet warned about the barrier; else empty."""
    about = event.get("involvedObject") or {}
    found = _LACKS.search(str(event.get("message") or "")) if event.get("reason") == "Failed" else None
    if found is None or about.get("kind") != "Pod" or not _is_barrier(found):
        return ""
    job, pod = found["whole"] or found["name"], str(about.get("name") or "")
    return sentence(job, found["key"] or "") if _is_member(pod, job) else ""
