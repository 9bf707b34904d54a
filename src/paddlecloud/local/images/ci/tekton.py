"""The suites' image builds as Tekton objects: what builds. `triggers.py` has what starts builds. Pure.

One pod builds one image: its first step writes the folder for the build, its second builds and pushes it. Nothing is
shared between pods, so a run needs no volume and leaves none. Values reach programs as variables, never as text of a
script.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paddlecloud.kube.resource import Object
from paddlecloud.local.images.ci import BUILDER, index_settings, script
from paddlecloud.local.images.suite_tags import CPU, suite_tag
from paddlecloud.local.images.suites import PROJECT, Suite, Suites

TASK = "build-suite-image"
SINGLE = "build-single-image"
MULTI = "build-multi-image"
SUITE_LABEL = "paddlecloud.org/suite"
ACCOUNT = "image-builds"
_API = "tekton.dev/v1"
_WORK = "/workspace/work"
_RESULTS = ("IMAGE_URL", "IMAGE_DIGEST")
"""Under these names Tekton Chains finds what it signs."""


@dataclass(frozen=True, slots=True)
class Settings:
    registry: str
    """Where images go, with a folder: `registry.example.org/paddlecloud`."""
    namespace: str
    tool: str
    """The image of this project."""
    builder: str = BUILDER
    plain_http: bool = False
    pip_index: str = ""
    push_secret: str = ""
    """Of type kubernetes.io/dockerconfigjson, with the keys of the registry; empty where it asks for none."""
    webhook_secret: str = ""
    """Its key `token` is what pushes are signed with; empty: builds are started by hand alone."""
    keep: int = 3
    """Runs of a suite that stay."""


def builds(found: Suites, settings: Settings) -> list[Object]:
    """The account, the task, and the pipelines."""
    account: Object = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": ACCOUNT, "namespace": settings.namespace},
        "automountServiceAccountToken": False,
    }
    return [account, _task(settings), _pipeline(SINGLE, 1, settings), _pipeline(MULTI, len(found.bases), settings)]


def run(pipeline: str, suite: str, values: Mapping[str, str]) -> Object:
    """One build, to be created; it goes into the namespace that the request names."""
    return {
        "apiVersion": _API,
        "kind": "PipelineRun",
        "metadata": {"generateName": f"{suite}-", "labels": {SUITE_LABEL: suite}},
        "spec": {
            "pipelineRef": {"name": pipeline},
            "params": named(values),
            "taskRunTemplate": {"serviceAccountName": ACCOUNT},
            "timeouts": {"pipeline": "7h0m0s"},
        },
    }


def parameters(suite: Suite, bases: Sequence[str], settings: Settings) -> dict[str, str]:
    """What a build of a suite on these bases is given."""
    image = f"{PROJECT}/{suite.repository_name}"
    values = {"image": f"{image}:{suite.version}", "target": f"{settings.registry}/{suite.repository_name}"}
    for number, base in enumerate(bases):
        values[f"base-{number}"] = base
        values[f"tag-{number}"] = suite_tag(suite.branch, base or CPU).rpartition("-")[0]
    return values


def named(values: Mapping[str, str]) -> list[Object]:
    return [{"name": name, "value": value} for name, value in values.items()]


def _task(settings: Settings) -> Object:
    work = {"name": "work", "mountPath": _WORK}
    layers = {"name": "layers", "mountPath": "/var/lib/containers"}
    volumes: list[Object] = [{"name": "work", "emptyDir": {}}, {"name": "layers", "emptyDir": {}}]
    shared = {"CONTEXT": f"{_WORK}/context", "TAG_FILE": f"{_WORK}/tag", "HOME": _WORK}
    pushing = {"DIGEST": "$(results.IMAGE_DIGEST.path)", "URL_FILE": "$(results.IMAGE_URL.path)"}
    pushing |= {"TLS_VERIFY": "false"} if settings.plain_http else {}
    pushing |= index_settings(settings.pip_index)
    context: Object = {
        "name": "context",
        "image": settings.tool,
        "env": named({"NAME": "$(params.image)", "BASE": "$(params.base)", "TAG": "$(params.tag)", **shared}),
        "script": f"#!/bin/sh\n{script('context.sh')}",
        "volumeMounts": [work],
    }
    build: Object = {
        "name": "build",
        "image": settings.builder,
        # Files of an image have owners, so its builder is root in the container, without privileges beyond that.
        "securityContext": {"runAsUser": 0, "privileged": False},
        "env": named({"TARGET": "$(params.target)", **shared, **pushing}),
        "script": f"#!/bin/sh\n{script('target.sh')}{script('build.sh')}",
        "volumeMounts": [work, layers],
    }
    if settings.push_secret:
        keys = {"key": ".dockerconfigjson", "path": "config.json"}
        volumes.append({"name": "keys", "secret": {"secretName": settings.push_secret, "items": [keys]}})
        build["volumeMounts"].append({"name": "keys", "mountPath": "/keys", "readOnly": True})
        build["env"].append({"name": "REGISTRY_AUTH_FILE", "value": "/keys/config.json"})
    return {
        "apiVersion": _API,
        "kind": "Task",
        "metadata": {"name": TASK, "namespace": settings.namespace},
        "spec": {
            "description": "Writes the Dockerfile of a recipe and all that it copies, builds it, and pushes the image.",
            "params": [
                _asked("image", "Name of the recipe."),
                _asked("base", "Tag of paddlepaddle/paddle to build on; empty: what the recipe itself installs."),
                _asked("target", "Where the image goes, without a tag."),
                _asked("tag", "The tag before the commit, such as 2.10-cpu."),
            ],
            "results": [{"name": name, "type": "string"} for name in _RESULTS],
            "volumes": volumes,
            "steps": [context, build],
        },
    }


def _pipeline(name: str, bases: int, settings: Settings) -> Object:
    """A task for each base, all at the same time; one that fails is tried again."""
    asked = [_asked("image", "Name of the recipe."), _asked("target", "Where images go, without a tag.")]
    tasks, results = [], []
    for number in range(bases):
        asked += [_asked(f"base-{number}", "See the task."), _asked(f"tag-{number}", "See the task.")]
        values = {"image": "image", "target": "target", "base": f"base-{number}", "tag": f"tag-{number}"}
        tasks.append({
            "name": f"build-{number}",
            "taskRef": {"name": TASK},
            "params": named({name: f"$(params.{source})" for name, source in values.items()}),
            "retries": 3,
            "timeout": "2h0m0s",
        })  # fmt: skip
        results += [
            {"name": f"{result}-{number}", "value": f"$(tasks.build-{number}.results.{result})"} for result in _RESULTS
        ]
    return {
        "apiVersion": _API,
        "kind": "Pipeline",
        "metadata": {"name": name, "namespace": settings.namespace},
        "spec": {"params": asked, "tasks": tasks, "results": results},
    }


def _asked(name: str, description: str) -> Object:
    return {"name": name, "type": "string", "description": description}
