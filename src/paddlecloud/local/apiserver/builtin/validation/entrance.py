"""What Kubernetes refuses in built-in objects beyond their types: the one entrance, and the small groups.

`validate_builtin` is called with a decoded, defaulted object whose types and choices have been checked, so the rules
read fields without caution. A kind without an entry in the table has no rules of its own.
"""

from __future__ import annotations

from collections.abc import Callable

from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.builtin.validation.core import (
    validate_claim,
    validate_config_map,
    validate_endpoints,
    validate_event,
    validate_limit_range,
    validate_namespace,
    validate_node,
    validate_quota,
    validate_secret,
    validate_service,
    validate_volume,
)
from paddlecloud.local.apiserver.builtin.validation.job import validate_cron_job, validate_job
from paddlecloud.local.apiserver.builtin.validation.networking import (
    validate_ingress,
    validate_ingress_class,
    validate_ingress_status,
)
from paddlecloud.local.apiserver.builtin.validation.pod import validate_pod, validate_pod_template
from paddlecloud.local.apiserver.builtin.validation.rules import Validator, immutable, in_range, label_selector
from paddlecloud.local.apiserver.builtin.validation.storage_drivers import (
    validate_attachment,
    validate_attachment_status,
    validate_driver,
    validate_node_drivers,
    validate_storage_capacity,
)
from paddlecloud.local.apiserver.builtin.validation.workload import (
    validate_daemon_set,
    validate_deployment,
    validate_disruption_budget,
    validate_replica_set,
    validate_replication_controller,
    validate_revision,
    validate_stateful_set,
)
from paddlecloud.local.apiserver.crd.install import validate_crd
from paddlecloud.local.apiserver.registry import KindInfo
from paddlecloud.local.apiserver.schema.causes import Cause, forbidden, invalid, not_supported, required, too_many

RBAC = "rbac.authorization.k8s.io"
HIGHEST_USER_PRIORITY = 1_000_000_000


def validate_builtin(new: Object, old: Object | None, info: KindInfo) -> list[Cause]:
    """Causes to refuse `new`, which replaces `old` or is created when that is None."""
    found: list[Cause] = []
    rules, of_status = _RULES.get(info.kind), _STATUS_RULES.get(info.kind)
    if rules is not None and (old is None or not _same_but_status(new, old)):
        found += rules(new, old)
    if of_status is not None and old is not None and new.get("status") != old.get("status"):
        found += of_status(new)
    return found


def _same_but_status(new: Object, old: Object) -> bool:
    """Most updates are of status: what did not change was judged when it did."""
    return all(new.get(key) == old.get(key) for key in {*new, *old} if key not in ("metadata", "status"))


# --- access ---------------------------------------------------------------------------------------------------------


def _validate_role(new: Object, old: Object | None) -> list[Cause]:
    found = _policy_rules(new)
    for index, rule in enumerate(new.get("rules") or ()):
        if rule.get("nonResourceURLs"):
            detail = "namespaced rules cannot apply to non-resource URLs"
            found.append(invalid(f"rules[{index}].nonResourceURLs", rule["nonResourceURLs"], detail))
    return found


def _validate_cluster_role(new: Object, old: Object | None) -> list[Cause]:
    found = _policy_rules(new)
    aggregation = new.get("aggregationRule")
    if aggregation is not None:
        selectors = aggregation.get("clusterRoleSelectors") or []
        if not selectors:
            detail = "at least one clusterRoleSelector required if aggregationRule is non-nil"
            found.append(required("aggregationRule.clusterRoleSelectors", detail))
        for index, selector in enumerate(selectors):
            found += label_selector(f"aggregationRule.clusterRoleSelectors[{index}]", selector)
    return found


def _policy_rules(role: Object) -> list[Cause]:
    rules = enumerate(role.get("rules") or ())
    return [cause for index, rule in rules for cause in _policy_rule(f"rules[{index}]", rule)]


def _policy_rule(path: str, rule: Object) -> list[Cause]:
    found: list[Cause] = []
    if not rule.get("verbs"):
        found.append(required(f"{path}.verbs", "verbs must contain at least one value"))
    if rule.get("nonResourceURLs"):
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            detail = "rules cannot apply to both regular resources and non-resource URLs"
            found.append(invalid(f"{path}.nonResourceURLs", rule["nonResourceURLs"], detail))
        return found
    if not rule.get("apiGroups"):
        found.append(required(f"{path}.apiGroups", "resource rules must supply at least one api group"))
    if not rule.get("resources"):
        found.append(required(f"{path}.resources", "resource rules must supply at least one resource"))
    return found


def _binding(kinds: list[str], *, namespaced: bool) -> Validator:
    def validate(new: Object, old: Object | None) -> list[Cause]:
        role = new.get("roleRef") or {}
        found: list[Cause] = []
        if role.get("apiGroup") != RBAC:
            found.append(not_supported("roleRef.apiGroup", role.get("apiGroup", ""), [RBAC]))
        if role.get("kind") not in kinds:
            found.append(not_supported("roleRef.kind", role.get("kind", ""), kinds))
        if not role.get("name"):
            found.append(required("roleRef.name"))
        for index, subject in enumerate(new.get("subjects") or ()):
            found += _subject(f"subjects[{index}]", subject, namespaced=namespaced)
        if old is not None and role != old.get("roleRef"):
            found.append(invalid("roleRef", role, "cannot change roleRef"))
        return found

    return validate


def _subject(path: str, subject: Object, *, namespaced: bool) -> list[Cause]:
    found = [] if subject.get("name") else [required(f"{path}.name")]
    kind, group = subject.get("kind", ""), subject.get("apiGroup", "")
    if kind == "ServiceAccount":
        if group:
            found.append(not_supported(f"{path}.apiGroup", group, [""]))
        if not namespaced and not subject.get("namespace"):
            found.append(required(f"{path}.namespace"))
    elif kind in ("User", "Group"):
        if group != RBAC:
            found.append(not_supported(f"{path}.apiGroup", group, [RBAC]))
    else:
        found.append(not_supported(f"{path}.kind", kind, ["ServiceAccount", "User", "Group"]))
    return found


# --- the rest -------------------------------------------------------------------------------------------------------


def _validate_storage_class(new: Object, old: Object | None) -> list[Cause]:
    if old is None:
        return [] if new.get("provisioner") else [required("provisioner")]
    found = [
        forbidden(name, f"updates to {name} are forbidden.")
        for name in ("parameters", "provisioner", "reclaimPolicy")
        if (new.get(name) or "") != (old.get(name) or "")
    ]
    return found + immutable(new, old, "", "volumeBindingMode")


def _validate_priority_class(new: Object, old: Object | None) -> list[Cause]:
    value, name = new.get("value", 0), (new.get("metadata") or {}).get("name", "")
    found: list[Cause] = []
    if value > HIGHEST_USER_PRIORITY and not name.startswith("system-"):
        detail = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
        found.append(forbidden("value", detail))
    if old is not None:
        if value != old.get("value", 0):
            found.append(forbidden("value", "may not be changed in an update."))
        found += immutable(new, old, "", "preemptionPolicy")
    return found


def _validate_lease(new: Object, old: Object | None) -> list[Cause]:
    spec = new.get("spec") or {}
    found: list[Cause] = []
    if spec.get("leaseDurationSeconds", 1) <= 0:
        found.append(invalid("spec.leaseDurationSeconds", spec["leaseDurationSeconds"], "must be greater than 0"))
    if spec.get("leaseTransitions", 0) < 0:
        detail = "must be greater than or equal to 0"
        found.append(invalid("spec.leaseTransitions", spec["leaseTransitions"], detail))
    return found


def _validate_endpoint_slice(new: Object, old: Object | None) -> list[Cause]:
    found: list[Cause] = []
    endpoints = new.get("endpoints") or []
    if len(endpoints) > 1000:
        found.append(too_many("endpoints", len(endpoints), 1000))
    for index, endpoint in enumerate(endpoints):
        if not endpoint.get("addresses"):
            found.append(required(f"endpoints[{index}].addresses", "must contain at least 1 address"))
    for index, entry in enumerate(new.get("ports") or ()):
        if entry.get("port") is not None:
            found += in_range(f"ports[{index}].port", entry["port"], low=1, high=65535)
    return found + (immutable(new, old, "", "addressType") if old is not None else [])


_RULES: dict[str, Validator] = {
    "CSIDriver": validate_driver,
    "CSINode": validate_node_drivers,
    "CSIStorageCapacity": validate_storage_capacity,
    "ClusterRole": _validate_cluster_role,
    "ClusterRoleBinding": _binding(["ClusterRole"], namespaced=False),
    "ConfigMap": validate_config_map,
    "ControllerRevision": validate_revision,
    "CronJob": validate_cron_job,
    "CustomResourceDefinition": validate_crd,
    "DaemonSet": validate_daemon_set,
    "Deployment": validate_deployment,
    "EndpointSlice": _validate_endpoint_slice,
    "Endpoints": validate_endpoints,
    "Event": validate_event,
    "Ingress": validate_ingress,
    "IngressClass": validate_ingress_class,
    "Job": validate_job,
    "Lease": _validate_lease,
    "LimitRange": validate_limit_range,
    "Namespace": validate_namespace,
    "Node": validate_node,
    "PersistentVolume": validate_volume,
    "PersistentVolumeClaim": validate_claim,
    "Pod": validate_pod,
    "PodDisruptionBudget": validate_disruption_budget,
    "PodTemplate": validate_pod_template,
    "PriorityClass": _validate_priority_class,
    "ReplicaSet": validate_replica_set,
    "ReplicationController": validate_replication_controller,
    "ResourceQuota": validate_quota,
    "Role": _validate_role,
    "RoleBinding": _binding(["Role", "ClusterRole"], namespaced=True),
    "Secret": validate_secret,
    "Service": validate_service,
    "StatefulSet": validate_stateful_set,
    "StorageClass": _validate_storage_class,
    "VolumeAttachment": validate_attachment,
}
_STATUS_RULES: dict[str, Callable[[Object], list[Cause]]] = {
    "Ingress": validate_ingress_status,
    "VolumeAttachment": validate_attachment_status,
}
