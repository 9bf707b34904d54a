"""The kinds that requests are about, with a valid object of each, and the objects that every world has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .model import CUSTOM, RBAC

_POD = {"schedulerName": "nobody", "serviceAccountName": "robot", "containers": [{"name": "main", "image": "none:1"}]}
_TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "main", "image": "none:1"}]}}
_NEVER = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none:1"}]}}
_WORKLOAD = {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": _TEMPLATE}
_CLAIM = {"accessModes": ["ReadWriteOnce"], "storageClassName": "none", "resources": {"requests": {"storage": "1Gi"}}}
_VOLUME = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"], "hostPath": {"path": "/none"}}
_READS = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]


@dataclass(frozen=True)
class Kind:
    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    fields: Any = None
    """What an object of it needs besides a name; None where it depends on more."""
    subresources: tuple[str, ...] = ()
    stored: bool = True
    """Every world has an object `one` of it."""

    @property
    def base(self) -> str:
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str, *rest: str) -> str:
        where = [f"namespaces/{namespace}"] if namespace else []
        return "/".join([self.base, *where, self.plural, *rest])

    def object(self, name: str, **meta: Any) -> dict[str, Any]:
        fields = self.fields or {}
        return {"apiVersion": self.api_version, "kind": self.kind, "metadata": {"name": name, **meta}, **fields}


KINDS = (
    Kind("", "v1", "pods", "Pod", fields={"spec": _POD}, subresources=(
        "status", "log", "exec", "attach", "portforward", "eviction", "binding", "proxy", "resize",
        "ephemeralcontainers")),
    Kind("", "v1", "services", "Service", fields={"spec": {"ports": [{"port": 80}], "clusterIP": "None"}},
         subresources=("status", "proxy")),
    Kind("", "v1", "configmaps", "ConfigMap", fields={"data": {"k": "v"}}),
    Kind("", "v1", "secrets", "Secret", fields={"stringData": {"k": "v"}}),
    Kind("", "v1", "serviceaccounts", "ServiceAccount", fields={}, subresources=("token",)),
    Kind("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", fields={"spec": _CLAIM},
         subresources=("status",)),
    Kind("", "v1", "events", "Event", stored=False),
    Kind("", "v1", "endpoints", "Endpoints", fields={"subsets": []}, stored=False),
    Kind("", "v1", "limitranges", "LimitRange", fields={"spec": {"limits": []}}, stored=False),
    Kind("", "v1", "resourcequotas", "ResourceQuota", fields={"spec": {}}, stored=False, subresources=("status",)),
    Kind("", "v1", "replicationcontrollers", "ReplicationController", stored=False,
         fields={"spec": {"replicas": 0, "template": _TEMPLATE}}, subresources=("status", "scale")),
    Kind("apps", "v1", "deployments", "Deployment", fields={"spec": _WORKLOAD}, subresources=("status", "scale")),
    Kind("apps", "v1", "statefulsets", "StatefulSet", fields={"spec": {**_WORKLOAD, "serviceName": "one"}},
         subresources=("status", "scale")),
    Kind("apps", "v1", "replicasets", "ReplicaSet", fields={"spec": _WORKLOAD}, stored=False,
         subresources=("status", "scale")),
    Kind("apps", "v1", "daemonsets", "DaemonSet", fields={"spec": _WORKLOAD}, stored=False,
         subresources=("status",)),
    Kind("batch", "v1", "jobs", "Job", fields={"spec": {"suspend": True, "template": _NEVER}},
         subresources=("status",)),
    Kind("batch", "v1", "cronjobs", "CronJob", stored=False, subresources=("status",),
         fields={"spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": _NEVER}}}}),
    Kind("coordination.k8s.io", "v1", "leases", "Lease", fields={"spec": {"holderIdentity": "me"}}),
    Kind("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", stored=False,
         fields={"spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}}, subresources=("status",)),
    Kind("networking.k8s.io", "v1", "ingresses", "Ingress", stored=False),
    Kind(RBAC, "v1", "roles", "Role", fields={"rules": _READS}),
    Kind(RBAC, "v1", "rolebindings", "RoleBinding", fields={
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "one"}, "subjects": []}),
    Kind(CUSTOM, "v1", "widgets", "Widget", fields={"spec": {"replicas": 1}}, subresources=("status", "scale")),
    Kind("", "v1", "namespaces", "Namespace", False, fields={}, stored=False, subresources=("status", "finalize")),
    Kind("", "v1", "nodes", "Node", False, fields={}, stored=False, subresources=("status", "proxy")),
    Kind("", "v1", "persistentvolumes", "PersistentVolume", False, fields={"spec": _VOLUME}, subresources=("status",)),
    Kind("storage.k8s.io", "v1", "storageclasses", "StorageClass", False, fields={"provisioner": "none"}),
    Kind("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", False, fields={"value": 5}),
    Kind(RBAC, "v1", "clusterroles", "ClusterRole", False, fields={"rules": _READS}),
    Kind(RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", False, fields={
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "@one"}, "subjects": []}),
    Kind("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False, stored=False,
         subresources=("status",)),
    Kind(CUSTOM, "v1", "gadgets", "Gadget", False, fields={"spec": {"replicas": 1}}, subresources=("status", "scale")),
)  # fmt: skip
BY_PLURAL = {kind.plural: kind for kind in KINDS}
NAMESPACED = tuple(kind for kind in KINDS if kind.namespaced)
CLUSTER = tuple(kind for kind in KINDS if not kind.namespaced)

UNSERVED_SUBRESOURCES = (("pods", "resize"), ("nodes", "proxy"))

REVIEWS = {
    "selfsubjectaccessreviews": "SelfSubjectAccessReview",
    "subjectaccessreviews": "SubjectAccessReview",
    "localsubjectaccessreviews": "LocalSubjectAccessReview",
    "selfsubjectrulesreviews": "SelfSubjectRulesReview",
}


def definitions() -> list[dict[str, Any]]:
    """The CustomResourceDefinitions of the custom kinds."""
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": free, "status": free}}},
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
        },
    }
    return [
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{kind.plural}.{CUSTOM}"},
            "spec": {
                "group": CUSTOM,
                "scope": "Namespaced" if kind.namespaced else "Cluster",
                "names": {"plural": kind.plural, "kind": kind.kind},
                "versions": [version],
            },
        }
        for kind in KINDS
        if kind.group == CUSTOM
    ]
