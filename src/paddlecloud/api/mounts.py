"""A volume of a pod that cannot be mounted, as kubelets report it.

Kubernetes' kubelet reports it in Events alone (FailedMount), while the containers wait as ContainerCreating without a
message. The embedded kubelet uses the same sentence and also gives it as that message. `explained` adds the sentence of
the Events to a pod, so that callers read pods of both in one way. What is done about it is decided elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from paddlecloud.api.paddlejob.gate import is_barrier_file

REASON = "FailedMount"

_ON_THE_WAY = frozenset({"ContainerCreating", "PodInitializing"})
_SENTENCE = re.compile(r'(?:Mount|Attach)Volume\.[\w. ]{1,60}? failed for volume "')
"""kubelet: operation_generator.go, such as MountVolume.SetUp, MountVolume.NewMounter initialization."""
_AFTER_MOUNTING = frozenset({"Pulling", "Pulled", "Created", "Started", "SuccessfulMountVolume"})
"""Reasons of Events that a kubelet writes once all volumes are mounted."""
_STATUSES = ("initContainerStatuses", "containerStatuses")


def sentence(volume: str, why: str) -> str:
    """What the kubelet of Kubernetes writes into its Event."""
    return f'MountVolume.SetUp failed for volume "{volume}" : {why}'


def has_failed(waiting: Mapping[str, Any]) -> bool:
    """Whether the waiting state of a container is about a volume that cannot be mounted."""
    return waiting.get("reason") in _ON_THE_WAY and _SENTENCE.match(str(waiting.get("message") or "")) is not None


def is_unexplained(pod: Mapping[str, Any]) -> bool:
    """Whether a pod on a node waits for its containers to be made, and does not say what for."""
    waiting = _first_waiting(pod)
    return waiting is not None and waiting.get("reason") in _ON_THE_WAY and not waiting.get("message")


def explained(pod: Mapping[str, Any], events: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The pod with what its Events say about a mount, where that is what it waits for; otherwise as it is."""
    found = failure_in(events, pod["metadata"]) if is_unexplained(pod) else ""
    if not found:
        return pod
    status = dict(pod["status"])
    for field in _STATUSES:
        status[field] = [_with_message(container, found) for container in status.get(field) or ()]
    return {**pod, "status": status}


def failure_in(events: Iterable[Mapping[str, Any]], pod: Mapping[str, Any]) -> str:
    """The newest failure to mount among the Events of a pod, by its metadata; empty if none, or mounted since.

    In one line: a kubelet writes the command, its arguments (server and folder) and its output as lines of their own.
    """
    telling = [event for event in events if _is_about(event, pod) and _tells_of_mounts(event, pod)]
    newest = max(telling, key=_moment, default=None)
    return " ".join(str(newest["message"]).split()) if newest is not None and newest.get("reason") == REASON else ""


def _is_about(event: Mapping[str, Any], pod: Mapping[str, Any]) -> bool:
    about = event.get("involvedObject") or {}
    same = about.get("kind") == "Pod" and about.get("name") == pod.get("name")
    return same and about.get("uid") in (None, "", pod.get("uid"))


def _tells_of_mounts(event: Mapping[str, Any], pod: Mapping[str, Any]) -> bool:
    if event.get("reason") != REASON:
        return event.get("reason") in _AFTER_MOUNTING
    message = str(event.get("message") or "")
    return _SENTENCE.match(message) is not None and not is_barrier_file(message, str(pod.get("name") or ""))


def _moment(event: Mapping[str, Any]) -> str:
    for field in ("lastTimestamp", "eventTime"):
        if event.get(field):
            return str(event[field])
    return str((event.get("metadata") or {}).get("creationTimestamp") or "")


def _first_waiting(pod: Mapping[str, Any]) -> Mapping[str, Any] | None:
    for field in _STATUSES:
        for container in (pod.get("status") or {}).get(field) or ():
            waiting: Mapping[str, Any] | None = (container.get("state") or {}).get("waiting")
            if waiting:
                return waiting
    return None


def _with_message(container: Mapping[str, Any], message: str) -> Mapping[str, Any]:
    waiting = (container.get("state") or {}).get("waiting")
    if not waiting or waiting.get("message"):
        return container
    return {**container, "state": {"waiting": {**waiting, "message": message}}}
