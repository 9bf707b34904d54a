"""Defaults of built-in kinds that a schema cannot state, because they depend on other fields.

Static defaults (`restartPolicy: Always`) stand beside their fields in `builtin/types` and are filled in by decoding;
here are the rest, one small function per type, found by the kind of the object. Everything is idempotent: a stored
object does not change again.
"""

from __future__ import annotations

import base64
import copy
from collections.abc import Callable, Iterator
from typing import Any

from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.builtin.decode import decode
from paddlecloud.local.apiserver.registry import KindInfo

RBAC = "rbac.authorization.k8s.io"


def default_builtin(obj: Object, info: KindInfo) -> None:
    """Complete a built-in object in place: canonical values and static defaults, then those that depend on others.

    Raises `BadRequest` when a value has a type its field cannot hold.
    """
    decode(obj, info)
    complete_builtin(obj, info)


def complete_builtin(obj: Object, info: KindInfo) -> None:
    """The second half of it: defaults that depend on other fields of a decoded object."""
    complete = _COMPUTED.get(info.kind)
    if complete is not None:
        complete(obj)


def complete_job(info: KindInfo, obj: Object, old: Object | None) -> None:
    """A mutator: give a new Job the selector and labels of its pods alone. It has its uid by now."""
    if info.kind != "Job" or info.resource.group != "batch" or old is not None:
        return
    spec, meta = obj.get("spec"), obj["metadata"]
    if not isinstance(spec, dict) or spec.get("manualSelector") or not meta.get("name"):
        return
    labels = {
        "batch.kubernetes.io/controller-uid": meta["uid"],
        "batch.kubernetes.io/job-name": meta["name"],
        "controller-uid": meta["uid"],
        "job-name": meta["name"],
    }
    template = spec.setdefault("template", {}).setdefault("metadata", {})
    template["labels"] = {**template.get("labels", {}), **labels}
    if not meta.get("labels"):
        meta["labels"] = dict(template["labels"])  # a Job without labels is found by those of its pods
    spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": meta["uid"]}}


TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
"""Annotation of a DaemonSet: how often its template was changed. Deprecated since apps/v1 and kept by Kubernetes."""


def count_templates(info: KindInfo, obj: Object, old: Object | None) -> None:
    """A mutator: the annotation of a DaemonSet follows its template, whatever a client sends."""
    if info.kind != "DaemonSet" or info.resource.group != "apps":
        return
    given = (obj["metadata"].get("annotations") or {}) if old is None else (old["metadata"].get("annotations") or {})
    text = str(given.get(TEMPLATE_GENERATION, ""))
    number = int(text) if text.isdecimal() and int(text) > 0 else 1
    if old is not None and (obj.get("spec") or {}).get("template") != (old.get("spec") or {}).get("template"):
        number += 1
    obj["metadata"]["annotations"] = {**(obj["metadata"].get("annotations") or {}), TEMPLATE_GENERATION: str(number)}


def keep_empty_metadata(info: KindInfo, obj: Object, old: Object | None) -> None:
    """A mutator: templates of a CronJob have metadata, be they empty, as Go writes them. No manager owns nothing."""
    if info.kind != "CronJob" or info.resource.group != "batch":
        return
    job = obj.setdefault("spec", {}).setdefault("jobTemplate", {})
    for template in (job, job.setdefault("spec", {}).setdefault("template", {})):
        template.setdefault("metadata", {})


# --- pods -----------------------------------------------------------------------------------------------------------


def containers_of(spec: Object) -> Iterator[Object]:
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        yield from spec.get(kind) or ()


def _template(obj: Object) -> None:
    """What a pod gets wherever it is described: in a Pod or in a template."""
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return
    for container in containers_of(spec):
        container.setdefault("imagePullPolicy", pull_policy(container.get("image", "")))
        for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
            if probe in container:
                _replace_zeros(container[probe])
    for volume in spec.get("volumes") or ():
        if set(volume) <= {"name"}:
            volume["emptyDir"] = {}
        image = volume.get("image")
        if image is not None:
            image.setdefault("pullPolicy", pull_policy(image.get("reference", "")))
    if "serviceAccountName" in spec or "serviceAccount" in spec:  # the older name is kept beside the newer
        name = spec.get("serviceAccountName") or spec.get("serviceAccount")
        spec["serviceAccountName"] = spec["serviceAccount"] = name


def pull_policy(image: str) -> str:
    """Always for `latest`, said or implied; a digest is never stale."""
    if "@" in image:
        return "IfNotPresent"
    tag = image.rpartition("/")[2].partition(":")[2]
    return "Always" if tag in ("", "latest") else "IfNotPresent"


_PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}


def _replace_zeros(probe: Object) -> None:
    """The numbers of a probe have no way to say zero: it means the default."""
    for field, usual in _PROBE.items():
        probe[field] = probe.get(field) or usual


def _pod(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    _template(obj)
    spec.setdefault("enableServiceLinks", True)
    for container in containers_of(spec):
        resources = container.get("resources") or {}
        if resources.get("limits"):
            resources["requests"] = {**resources["limits"], **resources.get("requests", {})}
        if spec.get("hostNetwork"):
            for port in container.get("ports") or ():
                if not port.get("hostPort") and "containerPort" in port:
                    port["hostPort"] = port["containerPort"]
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        spec["terminationGracePeriodSeconds"] = 1
    status = obj.setdefault("status", {})
    status.setdefault("phase", "Pending")
    status.setdefault("qosClass", qos_class(spec))


def qos_class(spec: Object) -> str:
    """Guaranteed when every container limits cpu and memory to what it requests, BestEffort when none says anything."""
    said = False
    guaranteed = True
    for kind in ("initContainers", "containers"):
        for container in spec.get(kind) or ():
            resources = container.get("resources") or {}
            limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
            for name in ("cpu", "memory"):
                said = said or name in limits or name in requests
                guaranteed = guaranteed and name in limits and requests.get(name, limits[name]) == limits[name]
    if not said:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


# --- workloads ------------------------------------------------------------------------------------------------------


def _pod_template(obj: Object) -> None:
    _template(obj.get("template") or {})


def _of_template(obj: Object) -> None:
    _template((obj.get("spec") or {}).get("template") or {})


def _replication_controller(obj: Object) -> None:
    """The labels of its template are its own and its selector, where it has none."""
    _of_template(obj)
    spec, meta = obj.setdefault("spec", {}), obj.setdefault("metadata", {})
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if labels:
        spec["selector"] = spec.get("selector") or dict(labels)
        meta["labels"] = meta.get("labels") or dict(labels)


def _deployment(obj: Object) -> None:
    _of_template(obj)
    strategy = obj.setdefault("spec", {}).setdefault("strategy", {"type": "RollingUpdate"})
    if strategy["type"] == "RollingUpdate":
        strategy.setdefault("rollingUpdate", {"maxSurge": "25%", "maxUnavailable": "25%"})


def _stateful_set(obj: Object) -> None:
    _of_template(obj)
    spec = obj.setdefault("spec", {})
    strategy = spec.setdefault("updateStrategy", {"type": "RollingUpdate"})
    if strategy["type"] == "RollingUpdate":
        strategy.setdefault("rollingUpdate", {"partition": 0})
    for claim in spec.get("volumeClaimTemplates") or ():
        claim.setdefault("kind", "PersistentVolumeClaim")
        claim.setdefault("apiVersion", "v1")
        claim.setdefault("status", {}).setdefault("phase", "Pending")


_JOB = {"completionMode": "NonIndexed", "suspend": False, "manualSelector": False}
"""Not stated beside their fields: a CronJob's template does not have them."""


def _daemon_set(obj: Object) -> None:
    _of_template(obj)
    meta = obj.setdefault("metadata", {})
    meta["annotations"] = {TEMPLATE_GENERATION: "1", **(meta.get("annotations") or {})}
    strategy = obj.setdefault("spec", {}).setdefault("updateStrategy", {"type": "RollingUpdate"})
    if strategy["type"] == "RollingUpdate":
        strategy.setdefault("rollingUpdate", {"maxSurge": 0, "maxUnavailable": 1})


def _cron_job(obj: Object) -> None:
    """Of the Job it describes only the pods get defaults; the rest is completed when the Job is created."""
    job = (obj.get("spec") or {}).get("jobTemplate") or {}
    _of_template(job)


def _job(obj: Object) -> None:
    _of_template(obj)
    spec = obj.setdefault("spec", {})
    for name, usual in _JOB.items():
        spec.setdefault(name, usual)
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 2**31 - 1 if "backoffLimitPerIndex" in spec else 6)
    spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    meta = obj.setdefault("metadata", {})
    if labels and not meta.get("labels"):
        meta["labels"] = dict(labels)


# --- the rest of the core group -------------------------------------------------------------------------------------


def _service(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    kind = spec.get("type", "ClusterIP")
    for port in spec.get("ports") or ():
        if port.get("targetPort") in (None, 0, "") and "port" in port:
            port["targetPort"] = port["port"]
    if kind != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if kind in ("NodePort", "LoadBalancer"):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    if spec.get("sessionAffinity") == "ClientIP":
        spec.setdefault("sessionAffinityConfig", {}).setdefault("clientIP", {"timeoutSeconds": 10800})
    else:
        spec.pop("sessionAffinityConfig", None)
    obj.setdefault("status", {}).setdefault("loadBalancer", {})


def _secret(obj: Object) -> None:
    """`stringData` is for writing only: it joins `data`, and wins over it."""
    plain = obj.pop("stringData", None)
    if plain:
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in plain.items()}
        obj["data"] = {**obj.get("data", {}), **encoded}


def _namespace(obj: Object) -> None:
    meta = obj.setdefault("metadata", {})
    if meta.get("name"):
        meta["labels"] = {**meta.get("labels", {}), "kubernetes.io/metadata.name": meta["name"]}
    status = obj.setdefault("status", {})
    if "phase" not in status:  # a new one: what will empty it before it may go
        status["phase"] = "Active"
        obj.setdefault("spec", {}).setdefault("finalizers", ["kubernetes"])


def _pending(obj: Object) -> None:
    obj.setdefault("status", {}).setdefault("phase", "Pending")


def _node(obj: Object) -> None:
    status = obj.get("status") or {}
    if "allocatable" not in status and "capacity" in status:
        status["allocatable"] = copy.deepcopy(status["capacity"])


def _limit_range(obj: Object) -> None:
    for item in (obj.get("spec") or {}).get("limits") or ():
        if item.get("type") != "Container":
            continue
        limits = {**item.get("max", {}), **item.get("default", {})}
        requests = {**item.get("min", {}), **limits, **item.get("defaultRequest", {})}
        item.update({"default": limits} if limits else {})
        item.update({"defaultRequest": requests} if requests else {})


# --- other groups ---------------------------------------------------------------------------------------------------


def _role_binding(obj: Object) -> None:
    role = obj.get("roleRef")
    if isinstance(role, dict) and not role.get("apiGroup"):
        role["apiGroup"] = RBAC
    for subject in obj.get("subjects") or ():
        if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
            subject["apiGroup"] = RBAC


def _definition(obj: Object) -> None:
    names: dict[str, Any] = (obj.get("spec") or {}).get("names") or {}
    kind = names.get("kind")
    if kind:
        names.setdefault("singular", kind.lower())
        names.setdefault("listKind", f"{kind}List")


_COMPUTED: dict[str, Callable[[Object], None]] = {
    "Pod": _pod,
    "PodTemplate": _pod_template,
    "Deployment": _deployment,
    "ReplicaSet": _of_template,
    "ReplicationController": _replication_controller,
    "StatefulSet": _stateful_set,
    "DaemonSet": _daemon_set,
    "Job": _job,
    "CronJob": _cron_job,
    "Service": _service,
    "Secret": _secret,
    "Namespace": _namespace,
    "Node": _node,
    "LimitRange": _limit_range,
    "PersistentVolume": _pending,
    "PersistentVolumeClaim": _pending,
    "RoleBinding": _role_binding,
    "ClusterRoleBinding": _role_binding,
    "CustomResourceDefinition": _definition,
}
