"""The built-in kinds this server serves, as a table; their types are read from `builtin/types` when first needed.

Only what the platform and its users need is here; a kind that is not in the table is refused like any unknown one.
Printer columns of built-in kinds are computed from several fields and belong to the Table code, so `columns` is empty.
"""

from __future__ import annotations

from typing import NamedTuple

from paddlecloud.kube.resource import Resource
from paddlecloud.local.apiserver.builtin.defaults import default_builtin
from paddlecloud.local.apiserver.builtin.types import DEFINITIONS, type_name
from paddlecloud.local.apiserver.objects import conversion
from paddlecloud.local.apiserver.registry import ALL_VERBS, KindInfo, ScalePaths, Schema
from paddlecloud.local.apiserver.schema.node import REF

__all__ = ["SUBRESOURCE_KINDS", "SubresourceKind", "builtin_kinds", "default_builtin", "type_schema"]

_TABLE = """
#  plural                     kind                      scope       short names  categories
v1
  pods                       Pod                       namespaced  po           all
  services                   Service                   namespaced  svc          all
  configmaps                 ConfigMap                 namespaced  cm           -
  secrets                    Secret                    namespaced  -            -
  namespaces                 Namespace                 cluster     ns           -
  nodes                      Node                      cluster     no           -
  events                     Event                     namespaced  ev           -
  serviceaccounts            ServiceAccount            namespaced  sa           -
  persistentvolumes          PersistentVolume          cluster     pv           -
  persistentvolumeclaims     PersistentVolumeClaim     namespaced  pvc          -
  endpoints                  Endpoints                 namespaced  ep           -
  replicationcontrollers     ReplicationController     namespaced  rc           all
  resourcequotas             ResourceQuota             namespaced  quota        -
  limitranges                LimitRange                namespaced  limits       -
  podtemplates               PodTemplate               namespaced  -            -
  bindings                   Binding                   namespaced  -            -
apps/v1
  deployments                Deployment                namespaced  deploy       all
  replicasets                ReplicaSet                namespaced  rs           all
  statefulsets               StatefulSet               namespaced  sts          all
  daemonsets                 DaemonSet                 namespaced  ds           all
  controllerrevisions        ControllerRevision        namespaced  -            -
batch/v1
  jobs                       Job                       namespaced  -            all
  cronjobs                   CronJob                   namespaced  cj           all
coordination.k8s.io/v1
  leases                     Lease                     namespaced  -            -
events.k8s.io/v1
  events                     Event                     namespaced  ev           -
discovery.k8s.io/v1
  endpointslices             EndpointSlice             namespaced  -            -
networking.k8s.io/v1
  ingresses                  Ingress                   namespaced  ing          -
  ingressclasses             IngressClass              cluster     -            -
rbac.authorization.k8s.io/v1
  roles                      Role                      namespaced  -            -
  rolebindings               RoleBinding               namespaced  -            -
  clusterroles               ClusterRole               cluster     -            -
  clusterrolebindings        ClusterRoleBinding        cluster     -            -
storage.k8s.io/v1
  storageclasses             StorageClass              cluster     sc           -
  csidrivers                 CSIDriver                 cluster     -            -
  csinodes                   CSINode                   cluster     -            -
  csistoragecapacities       CSIStorageCapacity        namespaced  -            -
  volumeattachments          VolumeAttachment          cluster     -            -
scheduling.k8s.io/v1
  priorityclasses            PriorityClass             cluster     pc           -
policy/v1
  poddisruptionbudgets       PodDisruptionBudget       namespaced  pdb          -
apiextensions.k8s.io/v1
  customresourcedefinitions  CustomResourceDefinition  cluster     crd,crds     api-extensions
authentication.k8s.io/v1
  tokenreviews               TokenReview               cluster     -            -
  selfsubjectreviews         SelfSubjectReview         cluster     -            -
authorization.k8s.io/v1
  subjectaccessreviews       SubjectAccessReview       cluster     -            -
  selfsubjectaccessreviews   SelfSubjectAccessReview   cluster     -            -
  selfsubjectrulesreviews    SelfSubjectRulesReview    cluster     -            -
  localsubjectaccessreviews  LocalSubjectAccessReview  namespaced  -            -
"""

_SUBRESOURCES = {
    "pods": "status log exec attach portforward proxy eviction binding ephemeralcontainers",
    "services": "status proxy",
    "namespaces": "status finalize",
    "nodes": "status",
    "serviceaccounts": "token",
    "persistentvolumes": "status",
    "persistentvolumeclaims": "status",
    "resourcequotas": "status",
    "replicationcontrollers": "status scale",
    "deployments": "status scale",
    "replicasets": "status scale",
    "statefulsets": "status scale",
    "daemonsets": "status",
    "jobs": "status",
    "cronjobs": "status",
    "poddisruptionbudgets": "status",
    "ingresses": "status",
    "volumeattachments": "status",
    "customresourcedefinitions": "status",
}

_CREATE_ONLY = frozenset(
    {
        "bindings",
        "tokenreviews",
        "selfsubjectreviews",
        "subjectaccessreviews",
        "selfsubjectaccessreviews",
        "selfsubjectrulesreviews",
        "localsubjectaccessreviews",
    }
)
"""Answered when created, never stored: there is nothing to get, list or watch."""

_CONVERSIONS = {("events.k8s.io", "events"): conversion.EVENTS}

_SCALE = ScalePaths("spec.replicas", "status.replicas", "spec.selector")
"""Unlike in a custom kind the selector here is a LabelSelector or a map of labels, not its text."""


class SubresourceKind(NamedTuple):
    """What a subresource takes and gives where that is not the object itself."""

    group: str
    version: str
    kind: str


SUBRESOURCE_KINDS: dict[str, SubresourceKind] = {
    "scale": SubresourceKind("autoscaling", "v1", "Scale"),
    "eviction": SubresourceKind("policy", "v1", "Eviction"),
    "binding": SubresourceKind("", "v1", "Binding"),
    "token": SubresourceKind("authentication.k8s.io", "v1", "TokenRequest"),
}


def type_schema(group: str, version: str, kind: str) -> Schema:
    """The schema of a built-in type, also of Scale, Eviction and TokenRequest; it resolves in `DEFINITIONS`."""
    return {"$ref": REF + type_name(group, version, kind)}


def builtin_kinds() -> list[KindInfo]:
    """One entry per row of the table. Cheap: no type is read."""
    kinds = []
    group = version = ""
    for line in _TABLE.splitlines():
        if line.startswith("  "):
            kinds.append(_kind(group, version, line.split()))
        elif line and not line.startswith("#"):
            group, _, version = line.rpartition("/")
    return kinds


def _kind(group: str, version: str, row: list[str]) -> KindInfo:
    plural, kind, scope, short, categories = row
    subresources = frozenset(_SUBRESOURCES.get(plural, "").split())
    return KindInfo(
        resource=Resource(group, version, plural, kind, namespaced=scope == "namespaced"),
        singular=kind.lower(),
        short_names=_words(short),
        categories=_words(categories),
        verbs=_verbs(plural),
        subresources=subresources,
        schema=type_schema(group, version, kind),
        definitions=DEFINITIONS,
        scale=_SCALE if "scale" in subresources else None,
        conversion=_CONVERSIONS.get((group, plural)),
    )


def _verbs(plural: str) -> tuple[str, ...]:
    if plural in _CREATE_ONLY:
        return ("create",)
    if plural == "namespaces":  # Kubernetes does not let one request delete many namespaces
        return tuple(verb for verb in ALL_VERBS if verb != "deletecollection")
    return ALL_VERBS


def _words(cell: str) -> tuple[str, ...]:
    return () if cell == "-" else tuple(cell.split(","))
