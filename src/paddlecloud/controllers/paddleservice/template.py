"""What an endpoint of a PaddleService looks like as a pod, and the name its content gives to it. Pure.

The name of a revision follows from everything in its template: another image, another number of pods, another revision.
Knative refuses a changed template under the same name, and rightly so.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import msgspec

from paddlecloud import __version__
from paddlecloud.api.names import ENDPOINT, MODEL_FINGERPRINT, MODEL_VERSION, RETRY_AT, SERVICE, SERVICE_LABEL, SOURCE
from paddlecloud.api.paddleservice import EndpointSettings, ServiceSettings, encode
from paddlecloud.api.paddleservice.named_model import is_name
from paddlecloud.controllers.node_folders import NodeFolders
from paddlecloud.controllers.paddleservice import hub_pods
from paddlecloud.controllers.paddleservice.hub_pods import HubAccess
from paddlecloud.controllers.paddleservice.names import CANARY, DEFAULT, revision_name
from paddlecloud.controllers.paddleservice.resolution import MODEL_ENDPOINT, Version
from paddlecloud.kube.literal_text import literal
from paddlecloud.kube.resource import Object

SERVING_IMAGE = f"paddlecloud/serving:{__version__}"
MODEL_SOURCE = "PADDLECLOUD_MODEL_SOURCE"
"""Environment of an inference server: what its messages call the folder that is mounted for it."""
AUTOSCALING = "autoscaling.knative.dev"
MODEL_VOLUME = "model"
MODEL_MOUNT = "/mnt/model"


class Site(NamedTuple):
    """What this cluster has for `model:`."""

    image: str = SERVING_IMAGE
    """The inference server."""
    model_endpoint: str = ""
    """URL of the model store that `NAME:VERSION` is looked up in."""
    models: NodeFolders = NodeFolders.for_reading({})
    """Which folders of nodes `model: file://` may name."""
    fingerprint: Callable[[str], str] | None = None
    """Of the files in a folder of the node, where the controller runs on that node; None elsewhere."""
    hub: HubAccess = HubAccess()
    """How pods get versions of the ModelHub."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Site:
        return cls(
            environment.get("SERVING_IMAGE") or SERVING_IMAGE,
            environment.get(MODEL_ENDPOINT, ""),
            NodeFolders.for_reading(environment),
            hub=HubAccess.from_environment(environment),
        )


class DesiredRevision(NamedTuple):
    """One revision that should exist."""

    name: str
    endpoint: str
    labels: dict[str, str]
    annotations: dict[str, str]
    spec: Object
    """A pod spec, with Knative's `containerConcurrency` and `timeoutSeconds`."""
    model: Version | None = None
    """The version of a model that is known by name."""


def wanted(
    settings: ServiceSettings,
    site: Site,
    fingerprints: Mapping[str, str],
    versions: Mapping[str, Version] | None = None,
    *,
    retry: str = "",
) -> dict[str, DesiredRevision]:
    """The revisions a service should have, by endpoint. Each request for a retry makes others of the same content.

    `versions` are those of the endpoints whose model is named."""
    found = {DEFAULT: settings.default, CANARY: settings.canary}
    return {
        name: _revision(settings, site, name, endpoint, fingerprints, (versions or {}).get(name), retry)
        for name, endpoint in found.items()
        if endpoint is not None
    }


def _revision(
    settings: ServiceSettings,
    site: Site,
    endpoint: str,
    own: EndpointSettings,
    fingerprints: Mapping[str, str],
    version: Version | None,
    retry: str,
) -> DesiredRevision:
    spec = _spec(settings, site, own, version)
    annotations = {**_scaling(settings), **({RETRY_AT: retry} if retry else {})}
    content = json.dumps([spec, annotations], sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(content.encode()).hexdigest()[:8]
    remarks = {SOURCE: json.dumps(_source(settings, endpoint, version), sort_keys=True)}
    if version is not None:
        remarks[MODEL_VERSION] = version.mark
    if fingerprint := fingerprints.get(_node_folder(settings, own)):
        remarks[MODEL_FINGERPRINT] = fingerprint
    return DesiredRevision(
        name=revision_name(settings.name, endpoint, digest),
        endpoint=endpoint,
        labels={SERVICE: settings.name, ENDPOINT: endpoint, SERVICE_LABEL: settings.name},
        annotations={**annotations, **remarks},
        spec=spec,
        model=version,
    )


def _source(settings: ServiceSettings, endpoint: str, version: Version | None) -> Object:
    """With the version that an alias pointed to: going back means going back to that."""
    exact = {"model": version.shown} if version is not None and version.in_hub else {}
    written = settings.spec.canary if endpoint == CANARY else settings.spec.default
    if written is None:
        return {"model": settings.spec.model, **exact}
    return {**encode(written), **exact}


def _scaling(settings: ServiceSettings) -> dict[str, str]:
    """All annotations the original controller wrote, plus nothing."""
    scaling = settings.scaling
    values = {
        "class": scaling.autoscaler,
        "metric": scaling.metric,
        "target": str(scaling.target),
        "target-utilization-percentage": scaling.target_utilization,
        "window": scaling.window,
        "panic-window-percentage": scaling.panic_window,
        "panic-threshold-percentage": scaling.panic_threshold,
        "min-scale": str(scaling.min_scale),
        "max-scale": str(scaling.max_scale),
    }
    return {f"{AUTOSCALING}/{name}": value for name, value in values.items()}


def _spec(settings: ServiceSettings, site: Site, own: EndpointSettings, version: Version | None) -> Object:
    written = settings.spec
    passed_on = {
        "volumes": written.volumes,
        "serviceAccountName": written.service_account_name,
        "imagePullSecrets": written.image_pull_secrets,
        "nodeSelector": written.node_selector,
        "tolerations": written.tolerations,
    }
    spec: Object = {
        "containerConcurrency": settings.container_concurrency,
        "timeoutSeconds": settings.timeout_seconds,
        "containers": [_container(settings, site, own, version)],
        **{name: msgspec.to_builtins(value) for name, value in passed_on.items() if value},
    }
    if folder := _node_folder(settings, own):
        volume = {"name": MODEL_VOLUME, "hostPath": {"path": folder, "type": "Directory"}}
        mount = {"name": MODEL_VOLUME, "mountPath": MODEL_MOUNT, "readOnly": True}
    elif version is not None and version.in_hub:
        volume, mount = hub_pods.volume(site.hub, settings.namespace)
    else:
        return spec
    spec["volumes"] = [*spec.get("volumes", ()), volume]
    spec["containers"][0]["volumeMounts"] = [*spec["containers"][0].get("volumeMounts", ()), mount]
    return spec


def folder_problem(settings: ServiceSettings, site: Site) -> str | None:
    """Why a model may not be taken from the folder of the node that the service names; None where it may."""
    endpoints = {DEFAULT: settings.default, CANARY: settings.canary}
    for name, endpoint in endpoints.items():
        folder = _node_folder(settings, endpoint) if endpoint is not None and endpoint.model else ""
        if folder and (problem := site.models.problem(folder)):
            return f"{name} model: {problem}; a volume of the service's own or an object store needs no such permission"
    return None


def allowed_folders(settings: ServiceSettings, site: Site) -> set[str]:
    """The folders of the node that models are taken from."""
    endpoints = [endpoint for endpoint in (settings.default, settings.canary) if endpoint is not None]
    found = {_node_folder(settings, endpoint) for endpoint in endpoints if endpoint.model}
    return {folder for folder in found if folder and site.models.problem(folder) is None}


def _node_folder(settings: ServiceSettings, own: EndpointSettings) -> str:
    """The folder of a `file://` model that lies on the node; empty when it lies in a volume of the service's own."""
    place = urlsplit(own.model)
    if place.scheme != "file":
        return ""
    folder = PurePosixPath(unquote(place.path))
    mounts = (PurePosixPath(str(mount.get("mountPath"))) for mount in settings.spec.volume_mounts or ())
    return "" if any(folder.is_relative_to(mount) for mount in mounts) else str(folder)


def _model_arguments(settings: ServiceSettings, own: EndpointSettings, version: Version | None) -> list[str]:
    """The port that is routed to has the service's protocol; the other one is for clients of the pod itself."""
    model = MODEL_MOUNT if _node_folder(settings, own) else own.model
    cache: list[str] = []
    if version is not None and version.in_hub:
        model, cache = version.shown, ["--cache", hub_pods.MOUNT]
    ports = ["--port", str(own.port)]
    if settings.protocol == "grpc":
        ports = ["--grpc-port", str(own.port), "--port", str(own.port + 1)]
    allowed = {
        "--allow-model-code": settings.spec.allow_model_code,
        "--allow-plain-http": settings.spec.allow_plain_http,
    }
    flags = [flag for flag, given in allowed.items() if given]
    return ["--model", literal(model), "--name", settings.name, *ports, *cache, *flags]


def _environment(settings: ServiceSettings, site: Site, own: EndpointSettings, version: Version | None) -> list[Object]:
    """What the service says, and where its model is found by name unless it says so itself."""
    written: list[Object] = msgspec.to_builtins(settings.spec.env or [])
    if own.model and (folder := _node_folder(settings, own)):
        return [{"name": MODEL_SOURCE, "value": folder}, *written]
    if version is not None and version.in_hub:
        return [*hub_pods.environment(site.hub, settings.namespace, version), *written]
    by_name = is_name(own.model)
    if not by_name or not site.model_endpoint or any(entry.get("name") == MODEL_ENDPOINT for entry in written):
        return written
    return [{"name": MODEL_ENDPOINT, "value": site.model_endpoint}, *written]


def _container(settings: ServiceSettings, site: Site, own: EndpointSettings, version: Version | None) -> Object:
    written = settings.spec
    container: Object = {
        "name": settings.container_name,
        "image": own.image or site.image,
        "ports": [{"containerPort": own.port, "name": "http1" if settings.protocol == "http1" else "h2c"}],
        "resources": settings.resources,
        # No delay: a pod is ready when its port answers, not a minute later.
        "readinessProbe": written.readiness_probe or {"tcpSocket": {"port": own.port}, "periodSeconds": 1},
    }
    if own.command:
        container |= {"command": list(own.command[:2]), "args": list(own.command[2:])}
    elif own.model:
        container["args"] = _model_arguments(settings, own, version)
    passed_on = {
        "workingDir": settings.working_dir,
        "volumeMounts": written.volume_mounts,
        "env": _environment(settings, site, own, version),
        "envFrom": written.env_from,
        "livenessProbe": written.liveness_probe,
        "startupProbe": written.startup_probe,
    }
    return {**container, **{name: msgspec.to_builtins(value) for name, value in passed_on.items() if value}}
