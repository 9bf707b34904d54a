"""Table columns of the built-in kinds, as `kubectl get` prints them against a real cluster.

One entry per (group, plural) in `VIEWS`: a tuple of columns, each a name and a function from (object, now) to a cell.
Custom kinds bring their columns as JSON paths in their CRD and are not listed here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from paddlecloud.kube.resource import Object
from paddlecloud.kube.selectors import LabelSelector
from paddlecloud.local.apiserver.table import cells
from paddlecloud.local.apiserver.table.cells import CellFunction, get
from paddlecloud.local.apiserver.table.humanize import NONE, UNKNOWN, UNSET, labels_text, since
from paddlecloud.local.apiserver.table.pods import pod_row


@dataclass(frozen=True, slots=True)
class CellColumn:
    """A column whose cell is computed. `priority` above zero shows only with `-o wide`."""

    name: str
    cell: CellFunction
    type: str = "string"
    format: str = ""
    priority: int = 0
    description: str = ""


@dataclass(frozen=True, slots=True)
class View:
    """How one kind is tabulated. `row`, where given, makes all cells of a row in one go."""

    columns: tuple[CellColumn, ...]
    row: CellFunction | None = None

    def cells(self, obj: Object, now: float) -> list[Any]:
        if self.row is not None:
            return list(self.row(obj, now))
        return [column.cell(obj, now) for column in self.columns]


# --- makers of columns ---


def _text(name: str, path: str, default: str = "") -> CellColumn:
    parts = path.split(".")
    return CellColumn(name, lambda obj, now: get(obj, *parts) or default)


def _count(name: str, path: str) -> CellColumn:
    parts = path.split(".")
    return CellColumn(name, lambda obj, now: get(obj, *parts) or 0, type="integer")


def _size(name: str, *paths: str) -> CellColumn:
    """How many entries lists or maps hold."""
    split = [path.split(".") for path in paths]
    return CellColumn(name, lambda obj, now: sum(len(get(obj, *path) or ()) for path in split), type="integer")


def _flag(name: str, path: str) -> CellColumn:
    parts = path.split(".")
    return CellColumn(name, lambda obj, now: bool(get(obj, *parts)), type="boolean")


def _wide(*columns: CellColumn) -> tuple[CellColumn, ...]:
    return tuple(replace(column, priority=1) for column in columns)


_NAME = CellColumn("Name", lambda obj, now: obj["metadata"]["name"], format="name", description="Name of the object.")
_AGE = CellColumn(
    "Age",
    lambda obj, now: since(obj["metadata"].get("creationTimestamp"), now),
    description="Time since the object was created.",
)
_CREATED_AT = CellColumn("Created At", lambda obj, now: obj["metadata"].get("creationTimestamp") or UNKNOWN)


def _containers(*path: str) -> tuple[CellColumn, ...]:
    def listing(field: str) -> CellFunction:
        return lambda obj, now: ",".join(c.get(field) or "" for c in get(obj, *path) or ()) or NONE

    return CellColumn("Containers", listing("name")), CellColumn("Images", listing("image"))


_TEMPLATE = _wide(*_containers("spec", "template", "spec", "containers"))


def _selector(name: str = "Selector", *, path: str = "spec.selector") -> CellColumn:
    parts = path.split(".")
    return CellColumn(name, lambda obj, now: str(LabelSelector.from_dict(get(obj, *parts) or {})) or NONE)


def _labels(name: str, path: str) -> CellColumn:
    parts = path.split(".")
    return CellColumn(name, lambda obj, now: labels_text(get(obj, *parts)))


# --- the table of kinds ---


def _view(*columns: CellColumn) -> View:
    return View((_NAME, *columns))


def _pod_cell(at: int) -> CellFunction:
    return lambda pod, now: pod_row(pod, now)[at]


_POD_HEADERS = ("Ready", "Status", "Restarts", "Age", "IP", "Node", "Nominated Node", "Readiness Gates")
_PODS = View(
    (_NAME, *(CellColumn(name, _pod_cell(at), priority=int(at > 4)) for at, name in enumerate(_POD_HEADERS, 1))),
    row=pod_row,
)
_EVENTS = View(
    (
        CellColumn("Last Seen", lambda event, now: since(cells.event_times(event)[1], now)),
        _text("Type", "type"),
        _text("Reason", "reason"),
        CellColumn("Object", cells.event_object),
        *_wide(CellColumn("Subobject", cells.event_field_path), CellColumn("Source", cells.event_source)),
        CellColumn("Message", cells.event_message),
        *_wide(
            CellColumn("First Seen", lambda event, now: since(cells.event_times(event)[0], now)),
            CellColumn("Count", cells.event_count, type="integer"),
            _NAME,
        ),
    )
)
_REPLICAS = (
    _count("Desired", "spec.replicas"),
    _count("Current", "status.replicas"),
    _count("Ready", "status.readyReplicas"),
    _AGE,
    *_TEMPLATE,
)
_BINDINGS = _view(
    CellColumn("Role", cells.role_ref),
    _AGE,
    *_wide(
        CellColumn("Users", cells.subjects("User")),
        CellColumn("Groups", cells.subjects("Group")),
        CellColumn("ServiceAccounts", cells.subjects("ServiceAccount")),
    ),
)
DEFAULT = _view(_AGE)
"""For kinds without columns of their own."""

VIEWS: dict[tuple[str, str], View] = {
    ("", "pods"): _PODS,
    ("", "events"): _EVENTS,
    ("events.k8s.io", "events"): _EVENTS,
    ("", "services"): _view(
        _text("Type", "spec.type", "ClusterIP"),
        CellColumn("Cluster-IP", cells.cluster_ip),
        CellColumn("External-IP", cells.external_ip),
        CellColumn("Port(s)", cells.service_ports),
        _AGE,
        *_wide(_labels("Selector", "spec.selector")),
    ),
    ("", "podtemplates"): _view(
        *_containers("template", "spec", "containers"), _labels("Pod Labels", "template.metadata.labels")
    ),
    ("", "replicationcontrollers"): _view(*_REPLICAS, *_wide(_labels("Selector", "spec.selector"))),
    ("", "endpoints"): _view(CellColumn("Endpoints", cells.endpoints), _AGE),
    ("discovery.k8s.io", "endpointslices"): _view(
        _text("AddressType", "addressType"),
        CellColumn("Ports", cells.slice_ports),
        CellColumn("Endpoints", cells.slice_endpoints),
        _AGE,
    ),
    ("networking.k8s.io", "ingresses"): _view(
        CellColumn("Class", cells.ingress_class),
        CellColumn("Hosts", cells.ingress_hosts),
        CellColumn("Address", cells.ingress_address),
        CellColumn("Ports", lambda obj, now: "80, 443" if get(obj, "spec", "tls") else "80"),
        _AGE,
    ),
    ("networking.k8s.io", "ingressclasses"): _view(
        _text("Controller", "spec.controller"), CellColumn("Parameters", cells.ingress_parameters), _AGE
    ),
    ("", "nodes"): _view(
        CellColumn("Status", cells.node_status),
        CellColumn("Roles", cells.node_roles),
        _AGE,
        _text("Version", "status.nodeInfo.kubeletVersion"),
        *_wide(
            CellColumn("Internal-IP", cells.node_address("InternalIP")),
            CellColumn("External-IP", cells.node_address("ExternalIP")),
            _text("OS-Image", "status.nodeInfo.osImage", UNKNOWN),
            _text("Kernel-Version", "status.nodeInfo.kernelVersion", UNKNOWN),
            _text("Container-Runtime", "status.nodeInfo.containerRuntimeVersion", UNKNOWN),
        ),
    ),
    ("", "namespaces"): _view(_text("Status", "status.phase", "Active"), _AGE),
    ("", "configmaps"): _view(_size("Data", "data", "binaryData"), _AGE),
    ("", "secrets"): _view(_text("Type", "type", "Opaque"), _size("Data", "data"), _AGE),
    ("", "serviceaccounts"): _view(_size("Secrets", "secrets"), _AGE),
    ("", "persistentvolumes"): _view(
        _text("Capacity", "spec.capacity.storage"),
        CellColumn("Access Modes", cells.access_modes("spec.accessModes")),
        _text("Reclaim Policy", "spec.persistentVolumeReclaimPolicy"),
        CellColumn("Status", cells.phase_or_terminating),
        CellColumn("Claim", cells.pv_claim),
        _text("StorageClass", "spec.storageClassName"),
        _text("VolumeAttributesClass", "spec.volumeAttributesClassName", UNSET),
        _text("Reason", "status.reason"),
        _AGE,
        *_wide(_text("VolumeMode", "spec.volumeMode", UNSET)),
    ),
    ("", "persistentvolumeclaims"): _view(
        CellColumn("Status", cells.phase_or_terminating),
        _text("Volume", "spec.volumeName"),
        CellColumn("Capacity", cells.when_bound("status.capacity.storage")),
        CellColumn("Access Modes", cells.access_modes("status.accessModes")),
        _text("StorageClass", "spec.storageClassName"),
        _text("VolumeAttributesClass", "spec.volumeAttributesClassName", UNSET),
        _AGE,
        *_wide(_text("VolumeMode", "spec.volumeMode", UNSET)),
    ),
    ("", "resourcequotas"): _view(
        CellColumn("Request", cells.quota(limits=False)), CellColumn("Limit", cells.quota(limits=True)), _AGE
    ),
    ("", "limitranges"): _view(_CREATED_AT),
    ("apps", "deployments"): _view(
        CellColumn("Ready", cells.replicas_ready),
        _count("Up-to-date", "status.updatedReplicas"),
        _count("Available", "status.availableReplicas"),
        _AGE,
        *_TEMPLATE,
        *_wide(_selector()),
    ),
    ("apps", "replicasets"): _view(*_REPLICAS, *_wide(_selector())),
    ("apps", "statefulsets"): _view(CellColumn("Ready", cells.replicas_ready), _AGE, *_TEMPLATE),
    ("apps", "daemonsets"): _view(
        _count("Desired", "status.desiredNumberScheduled"),
        _count("Current", "status.currentNumberScheduled"),
        _count("Ready", "status.numberReady"),
        _count("Up-to-date", "status.updatedNumberScheduled"),
        _count("Available", "status.numberAvailable"),
        _labels("Node Selector", "spec.template.spec.nodeSelector"),
        _AGE,
        *_TEMPLATE,
        *_wide(_selector()),
    ),
    ("apps", "controllerrevisions"): _view(
        CellColumn("Controller", cells.controller), _count("Revision", "revision"), _AGE
    ),
    ("batch", "jobs"): _view(
        CellColumn("Status", cells.job_status),
        CellColumn("Completions", cells.job_completions),
        CellColumn("Duration", cells.job_duration),
        _AGE,
        *_TEMPLATE,
        *_wide(_selector()),
    ),
    ("batch", "cronjobs"): _view(
        _text("Schedule", "spec.schedule"),
        _text("Timezone", "spec.timeZone", NONE),
        CellColumn("Suspend", lambda obj, now: str(bool(get(obj, "spec", "suspend"))), type="boolean"),
        _size("Active", "status.active"),
        CellColumn("Last Schedule", cells.last_schedule),
        _AGE,
        *_wide(*_containers("spec", "jobTemplate", "spec", "template", "spec", "containers")),
        *_wide(_selector(path="spec.jobTemplate.spec.selector")),
    ),
    ("policy", "poddisruptionbudgets"): _view(
        CellColumn("Min Available", cells.budget("minAvailable")),
        CellColumn("Max Unavailable", cells.budget("maxUnavailable")),
        _count("Allowed Disruptions", "status.disruptionsAllowed"),
        _AGE,
    ),
    ("rbac.authorization.k8s.io", "roles"): _view(_CREATED_AT),
    ("rbac.authorization.k8s.io", "clusterroles"): _view(_CREATED_AT),
    ("rbac.authorization.k8s.io", "rolebindings"): _BINDINGS,
    ("rbac.authorization.k8s.io", "clusterrolebindings"): _BINDINGS,
    ("coordination.k8s.io", "leases"): _view(_text("Holder", "spec.holderIdentity"), _AGE),
    ("storage.k8s.io", "storageclasses"): View(
        (
            replace(_NAME, cell=cells.storage_class_name),
            _text("Provisioner", "provisioner"),
            _text("ReclaimPolicy", "reclaimPolicy", "Delete"),
            _text("VolumeBindingMode", "volumeBindingMode", "Immediate"),
            _flag("AllowVolumeExpansion", "allowVolumeExpansion"),
            _AGE,
        )
    ),
    ("storage.k8s.io", "csidrivers"): _view(
        CellColumn("AttachRequired", lambda obj, now: get(obj, "spec", "attachRequired") is not False, type="boolean"),
        _flag("PodInfoOnMount", "spec.podInfoOnMount"),
        _flag("StorageCapacity", "spec.storageCapacity"),
        CellColumn("TokenRequests", cells.token_audiences),
        _flag("RequiresRepublish", "spec.requiresRepublish"),
        CellColumn("Modes", lambda obj, now: ",".join(get(obj, "spec", "volumeLifecycleModes") or ()) or NONE),
        _AGE,
    ),
    ("storage.k8s.io", "csinodes"): _view(_size("Drivers", "spec.drivers"), _AGE),
    # kube-apiserver 1.34 has a printer for these, and does not use it (pkg/registry/storage/csistoragecapacity).
    ("storage.k8s.io", "csistoragecapacities"): _view(_CREATED_AT),
    ("storage.k8s.io", "volumeattachments"): _view(
        replace(_text("Attacher", "spec.attacher"), format="name"),
        _text("PV", "spec.source.persistentVolumeName"),
        _text("Node", "spec.nodeName"),
        _flag("Attached", "status.attached"),
        _AGE,
    ),
    ("scheduling.k8s.io", "priorityclasses"): _view(
        _count("Value", "value"),
        _flag("Global-Default", "globalDefault"),
        _AGE,
        _text("PreemptionPolicy", "preemptionPolicy", "PreemptLowerPriority"),
    ),
    ("apiextensions.k8s.io", "customresourcedefinitions"): _view(_CREATED_AT),
}
