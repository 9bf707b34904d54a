"""Objects of the kinds that pages show, as their users and controllers may write them: every text an attack."""

from __future__ import annotations

from typing import Any

from paddlecloud.api.names import MODEL_LABEL
from paddlecloud.kube.argo import CRON_WORKFLOW, CRON_WORKFLOWS, WORKFLOWS
from paddlecloud.kube.resource import MODELS, MODELVERSIONS, PADDLESERVICES, SAMPLESETS, Object, Resource
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
    return [service(), sample_set(), model(), model_version(), run(), schedule()]


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


def model() -> Object:
    move = {"alias": "production", "to": "1", "by": f"u{hostile.ATTACK}", "at": TIME, "reason": f"why{hostile.ATTACK}"}
    spec = {"description": f"reads{hostile.ATTACK}", "aliases": {"production": "1"}, "moves": [move]}
    return of(MODELS, "words", spec)


def model_version() -> Object:
    origin = {"job": "words", "command": f"run {hostile.ATTACK}", "data": f"set{hostile.ATTACK}"}
    spec = {
        "model": "words", "version": "1", "digest": f"sha256:{'0' * 64}", "size": 10, "files": 1, "createdAt": TIME,
        "description": f"first {hostile.ATTACK}", "metrics": {f"acc{hostile.ATTACK}": 0.9}, "origin": origin,
        "createdBy": f"u{hostile.ATTACK}", "store": f"s3://{hostile.ATTACK}",
    }  # fmt: skip
    return of(MODELVERSIONS, "words.1", spec, **{MODEL_LABEL: "words"})


def run() -> Object:
    arguments = {"parameters": [{"name": f"p{hostile.ATTACK}", "value": hostile.ATTACK}]}
    step = {
        "id": "words-1", "name": "words.a", "displayName": f"a{hostile.ATTACK}", "type": "Pod", "phase": "Failed",
        "message": hostile.ATTACK, "startedAt": TIME, "finishedAt": TIME, "children": [f"words-2{hostile.ATTACK}"],
        "inputs": arguments, "memoizationStatus": {"key": hostile.ATTACK, "hit": True},
        "outputs": {"artifacts": [{"name": hostile.ATTACK, "path": "/m", "s3": {"key": f"k{hostile.ATTACK}"}}]},
    }  # fmt: skip
    after = {**step, "id": f"words-2{hostile.ATTACK}", "children": [], "phase": hostile.ATTACK}
    nodes = {"words-1": step, f"words-2{hostile.ATTACK}": after}
    status = {"phase": "Failed", "message": f"failed {hostile.ATTACK}", "nodes": nodes, "startedAt": TIME}
    spec = {"entrypoint": "main", "arguments": arguments, "templates": [{"name": "main", "suspend": {}}]}
    made = of(WORKFLOWS, "words", spec, status, **{CRON_WORKFLOW: "words"})
    made["metadata"]["annotations"] = {"pipelines.kubeflow.org/run_name": f"run {hostile.ATTACK}"}
    return made


def schedule() -> Object:
    workflow = {"entrypoint": "main", "templates": [{"name": "main", "suspend": {}}]}
    spec = {"schedules": [f"0 9 * * *{hostile.ATTACK}"], "workflowSpec": workflow, "timezone": hostile.ATTACK}
    return of(CRON_WORKFLOWS, "words", spec)
