"""Tekton: its Pipelines and its Triggers, two add-ons, from the manifests of their modules.

Left out are the resolvers of remote tasks and the sender of cloud events, which nothing here uses. Pods that build
images do it with Debian's buildah and push to a registry of its own (`pushed.py`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from . import pushed
from .addons import Object, Site, read
from .base_images import program_image
from .engines import ENGINE_TABLE

ENGINE = "tekton-pipelines"
TRIGGERS_ENGINE = "tekton-triggers"
NAMESPACE = "tekton-pipelines"
PIPELINE_MODULE = "github.com/tektoncd/pipeline"
TRIGGERS_MODULE = "github.com/tektoncd/triggers"
_SHELL = re.compile(r"cgr\.dev/chainguard/busybox@sha256:\w+")


def install(site: Site) -> None:
    _offer(site, PIPELINE_MODULE, ENGINE)
    pushed.start(site)
    config = site.manifests / PIPELINE_MODULE / "config"
    files = [
        *sorted(config.glob("100-namespace/*.yaml")), *sorted(config.glob("20?-*.yaml")),
        *sorted(config.glob("300-crds/*.yaml")), *sorted(config.glob("clusterrole-*.yaml")),
        *sorted(config.glob("config-*.yaml")),
        *(config / name for name in ("500-webhooks.yaml", "controller.yaml", "webhook.yaml")),
    ]  # fmt: skip
    objects = _objects(PIPELINE_MODULE, files)
    # The controller asks registries for the command of an image whose step names none.
    (trusted,) = (each for each in objects if each["metadata"]["name"] == "config-registry-cert")
    trusted["data"] = {"cert": (site.layout.pki / "registry" / "ca.crt").read_text()}
    _apply(site, objects)
    site.await_deployments(NAMESPACE, "tekton-pipelines-controller", "tekton-pipelines-webhook")


def install_triggers(site: Site) -> None:
    _offer(site, TRIGGERS_MODULE, TRIGGERS_ENGINE)
    config = site.manifests / TRIGGERS_MODULE / "config"
    _apply(site, _objects(TRIGGERS_MODULE, sorted(config.glob("*.yaml"))))
    site.await_deployments(NAMESPACE, "tekton-triggers-controller", "tekton-triggers-webhook")
    # The webhook judges these, so it comes first; the pod of the interceptors ends without them.
    _apply(site, _objects(TRIGGERS_MODULE, sorted(config.glob("interceptors/*.yaml"))))
    site.await_deployments(NAMESPACE, "tekton-triggers-core-interceptors")


def _offer(site: Site, module: str, engine: str) -> None:
    site.offer({
        _image(module, name): program_image(
            site.images, site.binaries[name], path=f"/ko-app/{name}", user="65532"
        ).digest
        for name in ENGINE_TABLE[engine].binaries
    })  # fmt: skip


def _apply(site: Site, objects: Sequence[Object]) -> None:
    """Definitions first, and the rest once they are served."""
    first = [each for each in objects if each["kind"] in ("Namespace", "CustomResourceDefinition")]
    names = [f"crd/{each['metadata']['name']}" for each in first if each["kind"] == "CustomResourceDefinition"]
    if first:
        site.apply(first)
    if names:
        site.kubectl("wait", "--for=condition=Established", "--timeout=60s", *names)
    site.apply([each for each in objects if each not in first])


def _objects(module: str, files: Sequence[Path]) -> list[Object]:
    """Of upstream's files, with images under the names at which the fixture's registry has them."""
    return [_with_images(module, each) for each in read(*files)]


def _with_images(module: str, document: Object) -> Object:
    text = yaml.safe_dump(document).replace(f"ko://{module}/cmd/", _image(module, ""))
    named: Any = yaml.safe_load(_SHELL.sub("dev.local/busybox:1", text))
    return named


def _image(module: str, program: str) -> str:
    return f"ghcr.io/tektoncd/{module.rpartition('/')[2]}/{program}"
