"""What kubelets report about volumes of a job's pods that they cannot mount.

Kubernetes' kubelet reports it in Events of the pod alone. They are asked for while pods are being created for long, of
a few pods and every few seconds at most. The embedded kubelet also writes it into the pod (`api.mounts`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from paddlecloud.api import mounts
from paddlecloud.controllers.paddlejob.observe import PodView
from paddlecloud.kube.client import Client
from paddlecloud.kube.errors import ApiError
from paddlecloud.kube.resource import EVENTS, Object

ASK_EVERY = 10.0
"""Also how long a pod may be in creation before anybody asks: images are pulled meanwhile."""
MOST_PODS = 3
"""Pods of a job that are asked about: one that cannot start is enough to fail it."""


def unexplained(pods: Iterable[PodView]) -> list[PodView]:
    """Pods on a node whose containers are not there, and which do not say why."""
    return [pod for pod in pods if pod.node and not pod.deleting and not pod.ended and mounts.is_unexplained(pod.raw)]


async def read(client: Client, namespace: str, pods: Sequence[PodView]) -> tuple[Object, ...]:
    """Events of the first pods; none where we may not know."""
    found: list[Object] = []
    for pod in sorted(pods, key=lambda pod: (pod.role, pod.index))[:MOST_PODS]:
        about = f"involvedObject.kind=Pod,involvedObject.name={pod.name}"
        try:
            found += (await client.list(EVENTS, namespace, field_selector=about)).items
        except ApiError:
            return ()  # the pods wait for the same reason, only without its name
    return tuple(found)


def explained(pods: tuple[PodView, ...], events: Sequence[Object]) -> tuple[PodView, ...]:
    return tuple(replace(pod, raw=dict(mounts.explained(pod.raw, events))) for pod in pods) if events else pods
