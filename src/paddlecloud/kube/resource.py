"""Names of things in the API: which collection (`Resource`) and which object in it (`Key`)."""

from __future__ import annotations

from typing import Any, NamedTuple

from paddlecloud.api import names

Object = dict[str, Any]
"""A Kubernetes object stays a plain dict; typed structs exist only for the kinds of this project."""


class Resource(NamedTuple):
    """One collection of the API, for example deployments in apps/v1."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def full_name(self) -> str:
        """`deployments.apps`: what people write where a plural alone could mean two collections."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """The URL path. Without a namespace a namespaced collection is addressed across all namespaces."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        parts = [root]
        if self.namespaced and namespace:
            parts.append(f"namespaces/{namespace}")
        parts.append(self.plural)
        if name:
            parts.append(name)
        if subresource:
            parts.append(subresource)
        return "/".join(parts)


class Key(NamedTuple):
    """What a work queue carries: never the object, only where to find its newest state."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def key_of(obj: Object) -> Key:
    meta = obj["metadata"]
    return Key(meta.get("namespace", ""), meta["name"])


def controller_of(obj: Object) -> Object | None:
    """The owner reference marked as controller, if any."""
    for ref in obj["metadata"].get("ownerReferences", ()):
        if ref.get("controller"):
            return dict(ref)
    return None


def is_owned_by(obj: Object, uid: str) -> bool:
    """Whether one of its owner references names the object with this uid, as controller or not."""
    return any(ref.get("uid") == uid for ref in obj["metadata"].get("ownerReferences") or ())


def owner_reference(owner: Object) -> Object:
    """To the controlling owner, from what is made for it."""
    meta = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


PODS = Resource("", "v1", "pods", "Pod")
SERVICES = Resource("", "v1", "services", "Service")
ENDPOINTS = Resource("", "v1", "endpoints", "Endpoints")
REPLICATIONCONTROLLERS = Resource("", "v1", "replicationcontrollers", "ReplicationController")
CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")
SECRETS = Resource("", "v1", "secrets", "Secret")
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
EVENTS = Resource("", "v1", "events", "Event")
RESOURCEQUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")
LIMITRANGES = Resource("", "v1", "limitranges", "LimitRange")
SERVICEACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
PERSISTENTVOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
PERSISTENTVOLUMECLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
REPLICASETS = Resource("apps", "v1", "replicasets", "ReplicaSet")
STATEFULSETS = Resource("apps", "v1", "statefulsets", "StatefulSet")
DAEMONSETS = Resource("apps", "v1", "daemonsets", "DaemonSet")
CONTROLLERREVISIONS = Resource("apps", "v1", "controllerrevisions", "ControllerRevision")
JOBS = Resource("batch", "v1", "jobs", "Job")
CRONJOBS = Resource("batch", "v1", "cronjobs", "CronJob")
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
ENDPOINTSLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
INGRESSES = Resource("networking.k8s.io", "v1", "ingresses", "Ingress")
INGRESSCLASSES = Resource("networking.k8s.io", "v1", "ingressclasses", "IngressClass", namespaced=False)
NETWORKPOLICIES = Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy")
ROLEBINDINGS = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")
PODDISRUPTIONBUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
PRIORITYCLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)
STORAGECLASSES = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False)
CSIDRIVERS = Resource("storage.k8s.io", "v1", "csidrivers", "CSIDriver", namespaced=False)
CSINODES = Resource("storage.k8s.io", "v1", "csinodes", "CSINode", namespaced=False)
CSISTORAGECAPACITIES = Resource("storage.k8s.io", "v1", "csistoragecapacities", "CSIStorageCapacity")
VOLUMEATTACHMENTS = Resource("storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", namespaced=False)
HORIZONTALPODAUTOSCALERS = Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
SELFSUBJECTREVIEWS = Resource(
    "authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False
)
SELFSUBJECTACCESSREVIEWS = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
POD_METRICS = Resource("metrics.k8s.io", "v1beta1", "pods", "PodMetrics")
NODE_METRICS = Resource("metrics.k8s.io", "v1beta1", "nodes", "NodeMetrics", namespaced=False)

PODGROUPS = Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")
QUEUES = Resource("scheduling.volcano.sh", "v1beta1", "queues", "Queue", namespaced=False)
COSCHEDULING_PODGROUPS = Resource("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup")
KNATIVE_SERVICES = Resource("serving.knative.dev", "v1", "services", "Service")
KNATIVE_CONFIGURATIONS = Resource("serving.knative.dev", "v1", "configurations", "Configuration")
KNATIVE_REVISIONS = Resource("serving.knative.dev", "v1", "revisions", "Revision")
KNATIVE_ROUTES = Resource("serving.knative.dev", "v1", "routes", "Route")

PADDLEJOBS = Resource(*names.PADDLEJOB)
SAMPLESETS = Resource(*names.SAMPLESET)
SAMPLEJOBS = Resource(*names.SAMPLEJOB)
PADDLESERVICES = Resource(*names.PADDLESERVICE)
MODELS = Resource(*names.MODEL)
MODELVERSIONS = Resource(*names.MODELVERSION)
EARLIER_PADDLESERVICES = Resource(*names.EARLIER_PADDLESERVICE)
KUBEFLOW_PADDLEJOBS = Resource(*names.KUBEFLOW_PADDLEJOB)
PROFILES = Resource(*names.PROFILE, namespaced=False)

_KNOWN = {(r.api_version, r.kind): r for r in list(globals().values()) if isinstance(r, Resource)}
_SAME_IN_PLURAL = frozenset({"endpoints"})


def resource_of(obj: Object) -> Resource:
    """The collection an object belongs to, by its own words and without asking a server.

    Kinds not named above follow the rule Kubernetes itself guesses plurals by, and are namespaced if the object is.
    Where a kind with an irregular plural may occur, ask `discovery.Discovery.for_kind` instead.
    """
    api_version, kind = obj["apiVersion"], obj["kind"]
    known = _KNOWN.get((api_version, kind))
    if known is not None:
        return known
    group, _, version = api_version.rpartition("/")
    return Resource(group, version, guess_plural(kind), kind, bool(obj["metadata"].get("namespace")))


def guess_plural(kind: str) -> str:
    singular = kind.lower()
    if singular in _SAME_IN_PLURAL:
        return singular
    if singular.endswith("s"):
        return f"{singular}es"
    if singular.endswith("y"):
        return f"{singular[:-1]}ies"
    return f"{singular}s"
