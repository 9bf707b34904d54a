"""The roles and bindings every cluster begins with, as objects to be created at the first start.

Names, labels and aggregation are those of Kubernetes, so that charts and manifests that refer to `view`, `edit`,
`admin` or `system:node` find them. The rules cover what this platform serves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.auth.authentication import AUTHENTICATED, MASTERS, UNAUTHENTICATED
from paddlecloud.local.apiserver.auth.rbac import EVERYTHING, GROUP

READ = ("get", "list", "watch")
WRITE = ("create", "delete", "deletecollection", "patch", "update")
ALL = READ + WRITE

_API_VERSION = f"{GROUP}/v1"
_DEFAULTS = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"
_UPDATE = {_AUTOUPDATE: "true"}

Rules = Sequence[dict[str, Any]]


def _on(groups: str, resources: str, *verbs: str, names: str = "") -> dict[str, Any]:
    """A rule on resources; groups, resources and names are words, and `core` is the group without a name."""
    rule: dict[str, Any] = {
        "verbs": list(verbs),
        "apiGroups": ["" if group == "core" else group for group in groups.split()],
        "resources": resources.split(),
    }
    return {**rule, "resourceNames": names.split()} if names else rule


def _urls(*urls: str) -> dict[str, Any]:
    return {"verbs": ["get"], "nonResourceURLs": list(urls)}


_EVENTS = _on("core events.k8s.io", "events", "create", "patch", "update")
_LEASES = _on("coordination.k8s.io", "leases", "create", "get", "list", "update", "patch", "watch")

# --- what users are given ---

_WORKLOADS = (
    ("apps", "daemonsets deployments deployments/scale replicasets replicasets/scale "
     "statefulsets statefulsets/scale"),
    ("batch", "cronjobs jobs"),
    ("autoscaling", "horizontalpodautoscalers"),
    ("policy", "poddisruptionbudgets"),
    ("networking.k8s.io", "ingresses networkpolicies"),
)  # fmt: skip
_STATUSES = (
    ("core", "bindings events limitranges namespaces namespaces/status persistentvolumeclaims/status pods/log "
     "pods/status replicationcontrollers/status resourcequotas resourcequotas/status services/status"),
    ("apps", "daemonsets/status deployments/status replicasets/status statefulsets/status"),
    ("batch", "cronjobs/status jobs/status"),
    ("autoscaling", "horizontalpodautoscalers/status"),
    ("policy", "poddisruptionbudgets/status"),
    ("networking.k8s.io", "ingresses/status"),
    ("discovery.k8s.io", "endpointslices"),
)  # fmt: skip
_FOREIGN = (
    ("kubeflow.org", "paddlejobs paddlejobs/scale"),
    ("scheduling.volcano.sh", "podgroups"),
    ("serving.knative.dev", "configurations revisions routes services"),
    ("argoproj.io", "cronworkflows workflows workflowtemplates"),
)
"""Kinds that other projects bring to a cluster, with their roles. Never a status: controllers act on what it says."""
_WRITABLE = (
    "configmaps persistentvolumeclaims pods replicationcontrollers replicationcontrollers/scale serviceaccounts "
    "services"
)
"""Not endpoints, as in Kubernetes since 1.22: they lead others' requests to any address (CVE-2021-25740)."""
_VIEW = [
    _on("core", f"{_WRITABLE} endpoints", *READ),
    _on("apps", "controllerrevisions", *READ),
    _on("argoproj.io", "workflows/artifacts workflows/log", *READ),
    *(_on(group, resources, *READ) for group, resources in (*_WORKLOADS, *_STATUSES, *_FOREIGN)),
]
_EDIT = [
    _on("core", "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy", *READ),
    _on("core", "serviceaccounts", "impersonate"),
    _on("core", f"{_WRITABLE} secrets", *WRITE),
    _on("core", "pods/attach pods/exec pods/portforward pods/proxy services/proxy", *WRITE),
    _on("core", "events", *WRITE),
    _on("core", "pods/eviction serviceaccounts/token", "create"),
    *(_on(group, resources, *WRITE) for group, resources in (*_WORKLOADS, *_FOREIGN)),
    _on("coordination.k8s.io", "leases", *ALL),
]
_WITHDRAWN = [
    *(_on(f"{group}.paddlepaddle.org", "*", *WRITE) for group in ("batch", "elasticserving", "serving")),
    _on("kubeflow.org", "paddlejobs paddlejobs/scale paddlejobs/status", *WRITE),
    _on("scheduling.volcano.sh", "podgroups podgroups/status", *WRITE),
    _on(
        "core",
        "configmaps endpoints persistentvolumeclaims pods replicationcontrollers serviceaccounts services secrets",
        *WRITE,
    ),
]
"""What `edit` was granted by releases up to 0.1: statuses and Endpoints."""
_ADMIN = [
    _on("authorization.k8s.io", "localsubjectaccessreviews", "create"),
    _on(GROUP, "rolebindings roles", *ALL),
]

_ROLES: dict[str, Rules] = {
    "cluster-admin": [dict(rule) for rule in EVERYTHING],
    "system:aggregate-to-view": _VIEW,
    "system:aggregate-to-edit": _EDIT,
    "system:aggregate-to-admin": _ADMIN,
    "system:discovery": [
        _urls("/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", "/readyz",
              "/version", "/version/"),
    ],
    "system:public-info-viewer": [_urls("/healthz", "/livez", "/readyz", "/version", "/version/")],
    "system:service-account-issuer-discovery": [
        _urls("/.well-known/openid-configuration", "/.well-known/openid-configuration/", "/openid/v1/jwks",
              "/openid/v1/jwks/"),
    ],
    "system:monitoring": [_urls("/healthz", "/healthz/*", "/livez", "/livez/*", "/metrics", "/metrics/slis",
                                "/readyz", "/readyz/*")],
    "system:basic-user": [
        _on("authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews", "create"),
        _on("authentication.k8s.io", "selfsubjectreviews", "create"),
    ],
    "system:auth-delegator": [
        _on("authentication.k8s.io", "tokenreviews", "create"),
        _on("authorization.k8s.io", "subjectaccessreviews", "create"),
    ],
    "system:node": [
        _on("authentication.k8s.io", "tokenreviews", "create"),
        _on("authorization.k8s.io", "localsubjectaccessreviews subjectaccessreviews", "create"),
        _on("core", "services", *READ),
        _on("core", "nodes", "create", "delete", "get", "list", "patch", "update", "watch"),
        _on("core", "nodes/status", "patch", "update"),
        _on("core", "pods", "create", "delete", *READ),
        _on("core", "pods/status", "patch", "update"),
        _on("core", "pods/eviction", "create"),
        _on("core", "configmaps secrets", *READ),
        _on("core", "persistentvolumeclaims persistentvolumes", *READ),
        _on("core", "endpoints", "get"),
        _on("discovery.k8s.io", "endpointslices", *READ),
        _on("batch.paddlepaddle.org", "paddlejobs", "get"),  # for the logs of pods that are gone
        _on("argoproj.io", "workflows", "get"),  # likewise
        _on("core", "serviceaccounts/token", "create"),
        _on("storage.k8s.io", "csinodes volumeattachments", *READ),
        _LEASES,
        _EVENTS,
    ],
    "system:node-proxier": [
        _on("core", "endpoints services", "list", "watch"),
        _on("core", "nodes", *READ),
        _on("discovery.k8s.io", "endpointslices", "list", "watch"),
        _EVENTS,
    ],
    "system:kube-scheduler": [
        _on("core", "nodes", *READ),
        _on("core", "pods", "delete", *READ),
        _on("core", "bindings pods/binding", "create"),
        _on("core", "pods/status", "patch", "update"),
        _on("core", "namespaces persistentvolumeclaims persistentvolumes replicationcontrollers services", *READ),
        _on("apps", "replicasets statefulsets", *READ),
        _on("policy", "poddisruptionbudgets", *READ),
        _on("scheduling.k8s.io", "priorityclasses", *READ),
        _on("storage.k8s.io", "csinodes storageclasses", *READ),
        _on("scheduling.volcano.sh scheduling.x-k8s.io", "podgroups queues", *READ),
        _on("scheduling.volcano.sh scheduling.x-k8s.io", "podgroups/status queues/status", "patch", "update"),
        _LEASES,
        _EVENTS,
    ],
    "knative-serving-core": [
        _on("serving.knative.dev", "configurations revisions routes services", *ALL),
        _on("serving.knative.dev", "configurations/status revisions/status routes/status services/status", "patch"),
        _on("apps", "deployments", "create", "delete", "patch", *READ),
        _on("core", "services", "create", "delete", "patch", *READ),
        _on("discovery.k8s.io", "endpointslices", "create", "delete", "patch", *READ),
        _on("core", "configmaps pods", *READ),
        _EVENTS,
    ],
    "workflow-controller": [
        _on("argoproj.io", "workflows", "create", "delete", "patch", *READ),
        _on("argoproj.io", "cronworkflows", "patch", *READ),
        _on("argoproj.io", "clusterworkflowtemplates workflowtemplates", *READ),
        _on("core", "persistentvolumeclaims pods", "create", "delete", *READ),
        _on("policy", "poddisruptionbudgets", "create", "delete", *READ),
        _on("core", "configmaps", "create", "patch", *READ),
        _on("core", "namespaces", *READ),
        _EVENTS,
    ],
    "system:kube-controller-manager": [
        _on("*", "*", "list", "watch"),
        _on("core", "serviceaccounts", "create", "get", "update"),
        _on("core", "serviceaccounts/token", "create"),
        _on("core", "configmaps namespaces secrets", "create", "delete", "get", "update"),
        _on("authentication.k8s.io", "tokenreviews", "create"),
        _on("authorization.k8s.io", "subjectaccessreviews", "create"),
        _LEASES,
        _EVENTS,
    ],
}  # fmt: skip

# --- what controllers are given: a ServiceAccount each in kube-system ---

_OWN_PODS = _on("core", "pods", "create", "delete", "patch", "update", *READ)
_CONTROLLERS: dict[str, Rules] = {
    "deployment-controller": [
        _on("apps", "deployments", "get", "list", "update", "watch"),
        _on("apps", "deployments/finalizers deployments/status", "patch", "update"),
        _on("apps", "replicasets", "create", "delete", "patch", "update", *READ),
        _on("core", "pods", "get", "list", "update", "watch"),
    ],
    "replication-controller": [
        _on("core", "replicationcontrollers", "get", "list", "update", "watch"),
        _on("core", "replicationcontrollers/finalizers replicationcontrollers/status", "patch", "update"),
        _OWN_PODS,
    ],
    "replicaset-controller": [
        _on("apps", "replicasets", "get", "list", "update", "watch"),
        _on("apps", "replicasets/finalizers replicasets/status", "patch", "update"),
        _OWN_PODS,
    ],
    "statefulset-controller": [
        _on("apps", "statefulsets", *READ),
        _on("apps", "statefulsets/finalizers statefulsets/status", "patch", "update"),
        _on("apps", "controllerrevisions", "create", "delete", "patch", "update", *READ),
        _on("core", "persistentvolumeclaims", "create", "delete", "update", *READ),
        _OWN_PODS,
    ],
    "daemon-set-controller": [
        _on("apps", "daemonsets", *READ),
        _on("apps", "daemonsets/finalizers daemonsets/status", "patch", "update"),
        _on("apps", "controllerrevisions", "create", "delete", "patch", "update", *READ),
        _on("core", "nodes", "list", "watch"),
        _OWN_PODS,
    ],
    "job-controller": [
        _on("batch", "jobs", "get", "list", "patch", "update", "watch"),
        _on("batch", "jobs/finalizers jobs/status", "patch", "update"),
        _OWN_PODS,
    ],
    "cronjob-controller": [
        _on("batch", "cronjobs", "get", "list", "update", "watch"),
        _on("batch", "cronjobs/finalizers cronjobs/status", "patch", "update"),
        _on("batch", "jobs", "create", "delete", "patch", "update", *READ),
        _on("core", "pods", "delete", "list"),
    ],
    "ttl-after-finished-controller": [_on("batch", "jobs", "delete", *READ)],
    "endpoint-controller": [
        _on("core", "pods services", *READ),
        _on("core", "endpoints", "create", "delete", "patch", "update", *READ),
    ],
    "endpointslice-controller": [
        _on("core", "nodes pods services", *READ),
        _on("discovery.k8s.io", "endpointslices", "create", "delete", "patch", "update", *READ),
    ],
    "persistent-volume-binder": [
        _on("core", "persistentvolumes", "create", "delete", "patch", "update", *READ),
        _on("core", "persistentvolumeclaims", "get", "list", "patch", "update", "watch"),
        _on("core", "persistentvolumeclaims/status persistentvolumes/status", "patch", "update"),
        _on("core", "pods", *READ),
        _on("storage.k8s.io", "storageclasses", "create", *READ),
    ],
    "node-controller": [
        _on("core", "nodes", "create", "delete", "patch", "update", *READ),
        _on("core", "nodes/status pods/status", "patch", "update"),
        _on("core", "pods", "delete", *READ),
        _on("coordination.k8s.io", "leases", *READ),
    ],
    "generic-garbage-collector": [_on("*", "*", "delete", "patch", "update", *READ)],
    "namespace-controller": [
        _on("core", "namespaces", "delete", *READ),
        _on("core", "namespaces/finalize namespaces/status", "update"),
        _on("*", "*", "delete", "deletecollection", "get", "list"),
    ],
    "resourcequota-controller": [
        _on("*", "*", "list", "watch"),
        _on("core", "resourcequotas/status", "patch", "update"),
    ],
    "service-account-controller": [
        _on("core", "serviceaccounts", "create", *READ),
        _on("core", "namespaces", *READ),
    ],
    "disruption-controller": [
        _on("policy", "poddisruptionbudgets", *READ),
        _on("policy", "poddisruptionbudgets/status", "patch", "update"),
        _on("core", "pods replicationcontrollers", *READ),
        _on("apps", "deployments replicasets statefulsets", *READ),
    ],
    "horizontal-pod-autoscaler": [
        _on("autoscaling", "horizontalpodautoscalers", *READ),
        _on("autoscaling", "horizontalpodautoscalers/status", "patch", "update"),
        _on("*", "*/scale", "get", "update"),
        _on("core", "pods", "list"),
    ],
}

# --- who gets what ---

_GROUP_BINDINGS: dict[str, tuple[str, ...]] = {
    "cluster-admin": (MASTERS,),
    "system:discovery": (AUTHENTICATED,),
    "system:basic-user": (AUTHENTICATED,),
    "system:public-info-viewer": (AUTHENTICATED, UNAUTHENTICATED),
    "system:service-account-issuer-discovery": ("system:serviceaccounts",),
    "system:monitoring": ("system:monitoring",),
    "system:node": ("system:nodes",),
}
_USER_BINDINGS = {
    "system:kube-scheduler": "system:kube-scheduler",
    "system:kube-controller-manager": "system:kube-controller-manager",
    "system:node-proxier": "system:kube-proxy",
}
_ACCOUNT_BINDINGS = {
    "knative-serving-core": ("knative-serving", "controller"),
    "workflow-controller": ("kube-system", "workflow-controller"),
}
_AGGREGATED = {  # role: (label its parts carry, label that makes it a part of the next one)
    "view": ("view", "edit"),
    "edit": ("edit", "admin"),
    "admin": ("admin", None),
}


def bootstrap_objects() -> list[Object]:
    """ClusterRoles before the bindings that refer to them."""
    roles = [_aggregated(name, own, part_of) for name, (own, part_of) in _AGGREGATED.items()]
    for name, rules in _ROLES.items():
        prefix, _, target = name.rpartition("-to-")
        roles.append(_role(name, rules, _aggregate_label(target) if prefix == "system:aggregate" else {}))
    roles += [_role(f"system:controller:{name}", [*rules, _EVENTS]) for name, rules in _CONTROLLERS.items()]
    bindings = [
        _binding(role, [{"kind": "Group", "apiGroup": GROUP, "name": group} for group in groups])
        for role, groups in _GROUP_BINDINGS.items()
    ]
    bindings += [
        _binding(role, [{"kind": "User", "apiGroup": GROUP, "name": user}]) for role, user in _USER_BINDINGS.items()
    ]
    bindings += [
        _binding(role, [{"kind": "ServiceAccount", "namespace": namespace, "name": name}])
        for role, (namespace, name) in _ACCOUNT_BINDINGS.items()
    ]
    manager = {"kind": "User", "apiGroup": GROUP, "name": "system:kube-controller-manager"}
    bindings += [
        _binding(
            f"system:controller:{name}",
            [{"kind": "ServiceAccount", "namespace": "kube-system", "name": name}, manager],
        )
        for name in _CONTROLLERS
    ]
    return roles + bindings


def is_default(obj: Object) -> bool:
    return (obj["metadata"].get("annotations") or {}).get(_AUTOUPDATE) == "true"


def completed(current: Object, default: Object) -> Object:
    """As Kubernetes' auto-reconciliation: what a default role or binding lacks is added at the start.

    What earlier releases granted too much is taken back. What others added stays, and so does one whose annotation they
    have set to "false".
    """
    if not is_default(current) or current.get("aggregationRule"):
        return current
    part = "subjects" if "roleRef" in default else "rules"
    present = [item for item in current.get(part) or () if item not in _WITHDRAWN]
    return {**current, part: [*present, *(item for item in default[part] if item not in present)]}


def _aggregate_label(target: str) -> dict[str, str]:
    return {f"rbac.authorization.k8s.io/aggregate-to-{target}": "true"}


def _aggregated(name: str, own: str, part_of: str | None) -> Object:
    selectors = [{"matchLabels": _aggregate_label(own)}]
    role = _role(name, [], _aggregate_label(part_of) if part_of else {})
    return {**role, "aggregationRule": {"clusterRoleSelectors": selectors}}


def _role(name: str, rules: Rules, labels: dict[str, str] | None = None) -> Object:
    meta = {"name": name, "labels": {**_DEFAULTS, **(labels or {})}, "annotations": dict(_UPDATE)}
    return {"apiVersion": _API_VERSION, "kind": "ClusterRole", "metadata": meta, "rules": list(rules)}


def _binding(role: str, subjects: list[Object]) -> Object:
    return {
        "apiVersion": _API_VERSION,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": role, "labels": dict(_DEFAULTS), "annotations": dict(_UPDATE)},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": role},
        "subjects": subjects,
    }
