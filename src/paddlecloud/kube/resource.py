"""Names of things in the API: which collection (`Resource`) and which object in it (`Key`)."""

from __future__ import annotations

from typing import Any, NamedTuple

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
CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")
SECRETS = Resource("", "v1", "secrets", "Secret")
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
EVENTS = Resource("", "v1", "events", "Event")
SERVICEACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
PERSISTENTVOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
PERSISTENTVOLUMECLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
PODGROUPS = Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")
QUEUES = Resource("scheduling.volcano.sh", "v1beta1", "queues", "Queue", namespaced=False)
STATEFULSETS = Resource("apps", "v1", "statefulsets", "StatefulSet")
CSIDRIVERS = Resource("storage.k8s.io", "v1", "csidrivers", "CSIDriver", namespaced=False)
SAMPLESETS = Resource("batch.paddlepaddle.org", "v1alpha1", "samplesets", "SampleSet")
SAMPLEJOBS = Resource("batch.paddlepaddle.org", "v1alpha1", "samplejobs", "SampleJob")
PADDLEJOBS = Resource("batch.paddlepaddle.org", "v1", "paddlejobs", "PaddleJob")
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)

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
