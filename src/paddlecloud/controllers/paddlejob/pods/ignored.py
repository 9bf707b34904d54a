"""Fields of pod templates that the API server does not know. Pure.

A CRD keeps templates whole, so a misspelt field is stored with the job; the pod that is made of it lacks the field, and
only a header of the answer, which nobody reads, says so. Comparing what was sent with what came back shows the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from paddlecloud.controllers.paddlejob import names
from paddlecloud.kube.nearest import question
from paddlecloud.kube.resource import PODS, Object

REASON = "UnknownField"
MOST = 5
"""Fields that one message names."""
CANDIDATES = 20
"""Items of a list that one is compared with, where their names do not show which it is."""

_CONTAINER = (
    *("args", "command", "env", "envFrom", "image", "imagePullPolicy", "lifecycle", "livenessProbe", "name", "ports"),
    *("readinessProbe", "resizePolicy", "resources", "restartPolicy", "securityContext", "startupProbe", "stdin"),
    *("stdinOnce", "terminationMessagePath", "terminationMessagePolicy", "tty", "volumeDevices", "volumeMounts"),
    "workingDir",
)
_KNOWN: dict[str, tuple[str, ...]] = {
    "spec": (
        *("activeDeadlineSeconds", "affinity", "automountServiceAccountToken", "containers", "dnsConfig", "dnsPolicy"),
        *("enableServiceLinks", "hostAliases", "hostIPC", "hostNetwork", "hostPID", "hostUsers", "hostname"),
        *("imagePullSecrets", "initContainers", "nodeName", "nodeSelector", "os", "overhead", "preemptionPolicy"),
        *("priority", "priorityClassName", "readinessGates", "resourceClaims", "resources", "restartPolicy"),
        *("runtimeClassName", "schedulerName", "schedulingGates", "securityContext", "serviceAccountName"),
        *("setHostnameAsFQDN", "shareProcessNamespace", "subdomain", "terminationGracePeriodSeconds", "tolerations"),
        *("topologySpreadConstraints", "volumes"),
    ),
    "containers": _CONTAINER,
    "initContainers": _CONTAINER,
    "env": ("name", "value", "valueFrom"),
    "envFrom": ("configMapRef", "prefix", "secretRef"),
    "ports": ("containerPort", "hostIP", "hostPort", "name", "protocol"),
    "resources": ("claims", "limits", "requests"),
    "volumeMounts": (
        "mountPath",
        "mountPropagation",
        "name",
        "readOnly",
        "recursiveReadOnly",
        "subPath",
        "subPathExpr",
    ),
    "tolerations": ("effect", "key", "operator", "tolerationSeconds", "value"),
    "volumes": (
        *("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "hostPath", "image", "name", "nfs"),
        *("persistentVolumeClaim", "projected", "secret"),
    ),
}
"""What stands in the parts of a pod where people write most, for the nearest right word (core/v1)."""


def sentence(sent: Iterable[Object], stored: Iterable[Object]) -> str:
    """Which fields of the templates were ignored, for the pods among the objects that were made; empty for none."""
    wanted = {obj["metadata"]["name"]: obj for obj in sent if obj["kind"] == PODS.kind}
    # Pods of a role come from one template: one of them stands for all.
    made = {_role(pod): pod for pod in stored if pod.get("kind") == PODS.kind and pod["metadata"]["name"] in wanted}
    found = {
        f"spec.{role}.template.{path}": meant
        for role, pod in made.items()
        for path, meant in _missing(wanted[pod["metadata"]["name"]]["spec"], pod.get("spec") or {}, "spec", "spec")
    }
    if not found:
        return ""
    listed = "; ".join(f"{path}{f': {meant}' if meant else ''}" for path, meant in list(found.items())[:MOST])
    more = f" (and {len(found) - MOST} more)" if len(found) > MOST else ""
    return f"the API server does not know these fields of the template and ignores them: {listed}{more}"


def _role(pod: Object) -> str:
    return str((pod["metadata"].get("labels") or {}).get(names.ROLE, ""))


def _missing(sent: Any, stored: Any, path: str, part: str) -> list[tuple[str, str]]:
    """(path, question for the right word). An empty value may be left out without being unknown."""
    found: list[tuple[str, str]] = []
    if isinstance(sent, dict) and isinstance(stored, dict):
        for name, value in sent.items():
            if name in stored:
                found += _missing(value, stored[name], f"{path}.{name}", name)
            elif value:
                found.append((f"{path}.{name}", question(name, _KNOWN.get(part, ()))))
    elif isinstance(sent, list) and isinstance(stored, list):
        named: dict[object, list[Any]] = {}
        for item in stored:
            named.setdefault(_name(item), []).append(item)
        for index, item in enumerate(sent):
            found += _missing_item(item, named.get(_name(item)) or stored, f"{path}[{index}]", part)
    return found


def _missing_item(item: Any, stored: list[Any], path: str, part: str) -> list[tuple[str, str]]:
    """Compared with the stored item that is most like it: servers and webhooks add items of their own."""
    return min((_missing(item, other, path, part) for other in stored[:CANDIDATES]), key=len, default=[])


def _name(item: Any) -> object:
    name = item.get("name") if isinstance(item, dict) else None
    return name if isinstance(name, str) else None
