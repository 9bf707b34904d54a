"""Objects of the kinds that pages show, as their users and controllers may write them: every text an attack."""

from __future__ import annotations

from typing import Any

from paddlecloud.kube.resource import PADDLESERVICES, SAMPLESETS, Object, Resource
from unit.ui import hostile

TIME = "2026-09-21T14:00:00Z"


def of(resource: Resource, name: str, spec: Any, status: Any = None, **labels: str) -> Object:
    made = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": spec,
    }
    return {**made, "status": status} if status else made


def poisoned() -> list[Object]:
    """All of them are called `words`."""
    return [service(), sample_set()]


def service() -> Object:
    ended = {"type": "DefaultEndpointReady", "status": "False", "reason": "ExitCode1", "message": "cannot start"}
    entry = {"endpoint": "default", "name": "ocr", "version": "1", "revision": "words-1", "percent": 90, "since": TIME}
    status = {
        "url": "http://words.default", "engine": "Deployment", "replicas": 1, "message": "waits",
        "default": {"name": "words-1", "latest": "words-2", "percent": 90, "model": "ocr:1"},
        "canary": {"name": "words-c", "percent": 0}, "models": [entry], "conditions": [ended],
        "rollout": {"phase": "Progressing", "step": 1, "percent": 10, "message": "waits", "nextStepTime": TIME},
    }  # fmt: skip
    spec = {
        "default": {"containerImage": "paddle", "tag": f"3{hostile.ATTACK}", "port": 9292},
        "canary": {"containerImage": "paddle", "tag": "4", "port": 9292},
        "rollout": {"steps": [10, 50]},
    }
    return of(PADDLESERVICES, "words", spec, hostile.poisoned(status))


def sample_set() -> Object:
    status = {
        "phase": "Syncing", "message": "import fails", "driver": "local", "jobsName": {"syncJobName": "x"},
        "cacheStatus": {"totalSize": "1 GiB", "cachedSize": "1 MiB", "diskSize": "2 GiB", "totalFiles": "3"},
        "progress": {"bytes": 10, "totalBytes": 20, "bytesPerSecond": 5, "secondsLeft": 2},
        "content": {"revision": 2, "changedAt": TIME, "changedBy": "sync"},
        "reads": [{"job": "train", "epoch": 0, "hits": 3, "misses": 1, "stallSeconds": 0.5}],
    }  # fmt: skip
    return of(SAMPLESETS, "words", {"source": {"uri": "file:///data"}}, hostile.poisoned(status))
