"""Hub and proxy on the embedded platform: objects in the namespace `jhub`, with the names of Zero to JupyterHub.

What is random (the token between hub and proxy, the cookie secret) is made once by the caller and passed in; what is
kept (the database of the hub) lies on a claim. On clusters the chart makes the same objects.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec
import yaml

from paddlecloud.kube.resource import Object
from paddlecloud.notebooks import names
from paddlecloud.notebooks.names import HUB, NAMESPACE, PROXY, PROXY_API, PROXY_PUBLIC

ROLE = "paddlecloud-notebooks"
HUB_ROLE = "paddlecloud-notebooks-hub"
LABELS = {"app.kubernetes.io/name": "jupyterhub", "app.kubernetes.io/managed-by": "pdc-notebooks"}
CONFIG = "from paddlecloud.notebooks.hub.configuration import configure\n\nconfigure(get_config())\n"
COOKIE_SECRET, PROXY_TOKEN = "hub.config.JupyterHub.cookie_secret", "hub.config.ConfigurableHTTPProxy.auth_token"
"""Keys of the Secret `hub`, as Zero to JupyterHub calls them."""
_RBAC = "rbac.authorization.k8s.io"
_FOLDER = "/srv/jupyterhub"


def objects(values: dict[str, Any]) -> list[Object]:
    """All but the Secret, in the order in which they are applied. `values` are the operator's (`settings`)."""
    return [
        _object("v1", "Namespace", NAMESPACE, namespace=""),
        _object("v1", "ServiceAccount", HUB),
        *rights(),
        _object(
            "v1",
            "PersistentVolumeClaim",
            "hub-db-dir",
            spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        ),
        _object(
            "v1",
            "ConfigMap",
            HUB,
            data={"jupyterhub_config.py": CONFIG, "settings.json": msgspec.json.encode(values).decode()},
        ),
        _service(HUB, HUB, names.HUB_PORT),
        _service(PROXY_API, PROXY, names.API_PORT),
        _service(PROXY_PUBLIC, PROXY, 80, target=names.PUBLIC_PORT, kind="NodePort"),
        _deployment(PROXY, _proxy()),
        _deployment(HUB, _hub(), account=HUB, volumes=_hub_volumes(), annotations=_digest(values)),
    ]


def rights() -> list[Object]:
    given = yaml.safe_load((Path(__file__).parent / "rights.yaml").read_text())
    subject = {"kind": "ServiceAccount", "name": HUB, "namespace": NAMESPACE}

    def binding(kind: str, role: str, name: str, namespace: str) -> Object:
        ref = {"apiGroup": _RBAC, "kind": role, "name": name}
        return _object(f"{_RBAC}/v1", kind, name, namespace=namespace, roleRef=ref, subjects=[subject])

    return [
        _object(f"{_RBAC}/v1", "ClusterRole", ROLE, namespace="", rules=given["tenant"]),
        _object(f"{_RBAC}/v1", "ClusterRole", HUB_ROLE, namespace="", rules=given["cluster"]),
        binding("ClusterRoleBinding", "ClusterRole", HUB_ROLE, ""),
        _object(f"{_RBAC}/v1", "Role", HUB, rules=given["own"]),
        binding("RoleBinding", "Role", HUB, NAMESPACE),
    ]


def secret(cookie: str, token: str) -> Object:
    """Both hexadecimal."""
    return _object("v1", "Secret", HUB, stringData={COOKIE_SECRET: cookie, PROXY_TOKEN: token})


def _object(api_version: str, kind: str, name: str, *, namespace: str = NAMESPACE, **body: Any) -> Object:
    meta: Object = {"name": name, "labels": dict(LABELS)}
    if namespace:
        meta["namespace"] = namespace
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **body}


def _component(name: str) -> dict[str, str]:
    return {**LABELS, "component": name}


def _service(name: str, component: str, port: int, *, target: int = 0, kind: str = "ClusterIP") -> Object:
    ports = [{"name": "http", "port": port, "targetPort": target or port}]
    return _object("v1", "Service", name, spec={"type": kind, "selector": _component(component), "ports": ports})


def _digest(values: dict[str, Any]) -> dict[str, str]:
    """An annotation of the hub's pod, which is thus replaced when the settings change."""
    return {"checksum/settings": hashlib.sha256(msgspec.json.encode(values, order="sorted")).hexdigest()}


def _deployment(
    name: str,
    container: Object,
    *,
    account: str = "",
    volumes: list[Object] | None = None,
    annotations: dict[str, str] | None = None,
) -> Object:
    pod: Object = {"containers": [container], "terminationGracePeriodSeconds": 10}
    if account:
        pod["serviceAccountName"] = account
    else:
        pod["automountServiceAccountToken"] = False
    if volumes:
        pod["volumes"] = volumes
    template = {"metadata": {"labels": _component(name), "annotations": annotations or {}}, "spec": pod}
    spec = {"replicas": 1, "strategy": {"type": "Recreate"}, "selector": {"matchLabels": _component(name)}}
    return _object("apps/v1", "Deployment", name, spec={**spec, "template": template})


def _proxy() -> Object:
    hub = f"http://{HUB}:{names.HUB_PORT}"
    command = [
        "configurable-http-proxy",
        "--ip=0.0.0.0",
        f"--port={names.PUBLIC_PORT}",
        "--api-ip=0.0.0.0",
        f"--api-port={names.API_PORT}",
        f"--default-target={hub}",
        f"--error-target={hub}/hub/error",
    ]
    return {
        "name": "chp",
        "image": names.HUB_IMAGE,
        "command": command,
        "env": [_from_secret("CONFIGPROXY_AUTH_TOKEN", PROXY_TOKEN)],
        "ports": [
            {"name": "http", "containerPort": names.PUBLIC_PORT},
            {"name": "api", "containerPort": names.API_PORT},
        ],
        "readinessProbe": _ready("/_chp_healthz", names.PUBLIC_PORT),
    }


def _hub() -> Object:
    return {
        "name": HUB,
        "image": names.HUB_IMAGE,
        "command": ["jupyterhub", "-f", "/etc/jupyterhub/jupyterhub_config.py"],
        "workingDir": _FOLDER,
        "env": [
            {"name": "PADDLECLOUD_NOTEBOOKS_LOCAL", "value": "1"},
            {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
            _from_secret("CONFIGPROXY_AUTH_TOKEN", PROXY_TOKEN),
            _from_secret("JPY_COOKIE_SECRET", COOKIE_SECRET),
        ],
        "ports": [{"name": "http", "containerPort": names.HUB_PORT}],
        "readinessProbe": _ready("/hub/health", names.HUB_PORT),
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/jupyterhub"},
            {"name": "state", "mountPath": _FOLDER},
        ],
    }


def _hub_volumes() -> list[Object]:
    return [
        {"name": "config", "configMap": {"name": HUB}},
        {"name": "state", "persistentVolumeClaim": {"claimName": "hub-db-dir"}},
    ]


def _from_secret(variable: str, key: str) -> Object:
    return {"name": variable, "valueFrom": {"secretKeyRef": {"name": HUB, "key": key}}}


def _ready(path: str, port: int) -> Object:
    return {"httpGet": {"path": path, "port": port}, "periodSeconds": 1, "timeoutSeconds": 5, "failureThreshold": 600}
