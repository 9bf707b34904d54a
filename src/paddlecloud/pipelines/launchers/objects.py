"""Objects that several launchers create, as plain dicts, and checks of names that become part of paths."""

from __future__ import annotations

import re
from typing import Any

from paddlecloud.api.names import KindName
from paddlecloud.kube.resource import JOBS, Object
from paddlecloud.pipelines.launchers import completion
from paddlecloud.pipelines.launchers.failures import StepFailed
from paddlecloud.pipelines.launchers.step import DesiredObject

TASK_VOLUME = "task-volume"
TASK_CENTER = "/mnt/task-center"
"""Where the volume that the steps share is mounted."""
_FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")


def body(kind: KindName, name: str, namespace: str, spec: dict[str, Any], *, version: str = "") -> Object:
    return {
        "apiVersion": f"{kind.group}/{version or kind.version}",
        "kind": kind.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def task_volume(claim: str) -> Object:
    return {"name": TASK_VOLUME, "persistentVolumeClaim": {"claimName": claim}}


def job(name: str, namespace: str, container: Object, claim: str, *, account: str = "") -> DesiredObject:
    """A batch/v1 Job whose one container has the shared volume; it is tried twice."""
    mounted = {**container, "volumeMounts": [{"name": TASK_VOLUME, "mountPath": TASK_CENTER}]}
    pod: Object = {"restartPolicy": "Never", "containers": [mounted], "volumes": [task_volume(claim)]}
    if account:
        pod["serviceAccountName"] = account
    made = {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"backoffLimit": 1, "template": {"spec": pod}},
    }
    return DesiredObject(made, completion.job, pods=f"job-name={name}", once=True)


def check_folder_name(flag: str, name: str) -> None:
    """Names of data sets, models and versions become folders: a path in them would lead elsewhere."""
    if not _FOLDER.fullmatch(name):
        raise StepFailed(f"{flag}: {name!r} cannot be a folder's name; use letters, digits, '.', '_' and '-'")


def image_parts(image: str) -> tuple[str, str]:
    """What a PaddleService calls `containerImage` and `tag`: it joins them with a colon again.

    A registry may have a port, and an image may be named by its digest: only a colon after the last slash begins a tag.
    """
    if "@" in image:
        name, _, digest = image.partition("@")
        algorithm, _, value = digest.partition(":")
        return f"{name}@{algorithm}", value
    name, colon, tag = image.rpartition(":")
    return (name, tag) if colon and "/" not in tag else (image, "latest")
