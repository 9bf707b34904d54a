"""What a tenant has: its namespace and the objects in it, made from its Profile. Pure.

Names are Kubeflow's where it has the same object (`default-editor`, `kf-resource-quota`), so that pods and programs
that name them find them. What is in the namespace is owned by the Profile and goes with it. The namespace itself has
its uid as an annotation: a deletion of the Profile in the foreground deletes what it owns at once, data included.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from paddlecloud.api.fields import Resources
from paddlecloud.api.names import OWNER_ANNOTATION, PROFILE_LABEL, PROFILE_UID, QUEUE_NAME
from paddlecloud.api.problems import encode
from paddlecloud.api.profile import RBAC, Contributor, Profile, ProfileSpec, Subject
from paddlecloud.kube import quantity
from paddlecloud.kube.quota_names import quota_name_problem
from paddlecloud.kube.resource import (
    LIMITRANGES,
    NAMESPACES,
    NETWORKPOLICIES,
    QUEUES,
    RESOURCEQUOTAS,
    ROLEBINDINGS,
    SERVICEACCOUNTS,
    Object,
    Resource,
    owner_reference,
)

EDITOR, VIEWER = "default-editor", "default-viewer"
ACCOUNTS = (EDITOR, VIEWER)
QUOTA = "kf-resource-quota"
CLOSED = "tenant-closed"
"""The quota of a namespace whose Profile was deleted: what runs may end, and nothing new starts."""
NOTEBOOKS_ROLE = "paddlecloud-notebooks"
"""The ClusterRole of JupyterHub's account in the namespace of each tenant."""
POD_SECURITY = "pod-security.kubernetes.io/enforce"
_PART_OF = {"app.kubernetes.io/part-of": "kubeflow-profile"}
_DEFAULT_REQUESTS = {"cpu": "100m", "memory": "256Mi"}
_DEFAULT_LIMITS = {"cpu": "1", "memory": "2Gi"}


class TenantSettings(NamedTuple):
    """What the operator decides for all tenants."""

    pod_security: str = ""
    """The level that PodSecurity enforces in their namespaces, where these have none yet; empty for no label."""
    reached_from: tuple[str, ...] | None = None
    """Namespaces whose pods may open connections to theirs; None for no NetworkPolicies."""
    hub: tuple[str, str] | None = None
    """Namespace and name of the account that starts notebooks for their people; None where there is no JupyterHub."""

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> TenantSettings:
        """`PADDLECLOUD_TENANT_POD_SECURITY`, `PADDLECLOUD_TENANT_REACHED_FROM`: names with commas between them, and
        `PADDLECLOUD_TENANT_HUB`: NAMESPACE/ACCOUNT."""
        reached = environment.get("PADDLECLOUD_TENANT_REACHED_FROM")
        names = None if reached is None else tuple(name for name in reached.split(",") if name)
        namespace, _, account = environment.get("PADDLECLOUD_TENANT_HUB", "").partition("/")
        hub = (namespace, account) if namespace and account else None
        return cls(environment.get("PADDLECLOUD_TENANT_POD_SECURITY", ""), names, hub)


def identity(subject: Subject) -> str:
    """Who it is, as the annotation of a namespace says it: a user by name, as Kubeflow writes it."""
    if subject.kind == "ServiceAccount":
        return f"system:serviceaccount:{subject.namespace}:{subject.name}"
    return str(subject.name) if subject.kind == "User" else f"{subject.kind}/{subject.name}"


def namespace(profile: Object, spec: ProfileSpec, settings: TenantSettings, *, queue: bool) -> Object:
    meta: Object = {
        "name": profile["metadata"]["name"],
        "labels": {**_PART_OF, PROFILE_LABEL: profile["metadata"]["name"]},
        "annotations": {
            OWNER_ANNOTATION: identity(spec.owner or Subject()),
            PROFILE_UID: profile["metadata"]["uid"],
        },
    }
    if settings.pod_security:
        meta["labels"][POD_SECURITY] = settings.pod_security
    if queue:
        meta["annotations"][QUEUE_NAME] = profile["metadata"]["name"]
    return {"apiVersion": NAMESPACES.api_version, "kind": NAMESPACES.kind, "metadata": meta}


def in_namespace(profile: Object, spec: ProfileSpec, settings: TenantSettings, *, policies: bool) -> Iterator[Object]:
    """Everything in it. `policies`: whether NetworkPolicies are served."""

    def made(resource: Resource, name: str, **body: Any) -> Object:
        return _owned(profile, resource, name, namespace=profile["metadata"]["name"], **body)

    for account, role in ((EDITOR, "edit"), (VIEWER, "view")):
        yield made(SERVICEACCOUNTS, account)
        own = Subject(kind="ServiceAccount", name=account, namespace=profile["metadata"]["name"])
        yield made(ROLEBINDINGS, account, **_binding(role, [own]))
    yield made(ROLEBINDINGS, "tenant-owner", **_binding("edit", [spec.owner or Subject()]))
    for role in ("edit", "view"):
        if people := [each for each in spec.contributors or () if (each.role or "edit") == role]:
            yield made(ROLEBINDINGS, f"tenant-{role}", **_binding(role, people))
    if settings.hub is not None:
        at, account = settings.hub
        hub = Subject(kind="ServiceAccount", name=account, namespace=at)
        yield made(ROLEBINDINGS, "tenant-notebooks", **_binding(NOTEBOOKS_ROLE, [hub]))
    hard = _hard(spec)
    if spec.resource_quota_spec is not None and hard:
        yield made(RESOURCEQUOTAS, QUOTA, spec={**encode(spec.resource_quota_spec), "hard": hard})
    if limits := spec.limit_range_spec or _limits(hard):
        yield made(LIMITRANGES, "tenant-defaults", spec=limits)
    if policies and settings.reached_from is not None:
        yield made(NETWORKPOLICIES, "tenant", spec=_isolation(settings.reached_from))


def queue(profile: Object, spec: ProfileSpec) -> Object:
    given = spec.queue
    capability = _capability(spec) or _countable(_hard(spec))
    body = {"weight": (given and given.weight) or 1, **({"capability": capability} if capability else {})}
    return _owned(profile, QUEUES, profile["metadata"]["name"], spec=body)


def closed(profile: Object) -> Object:
    """Nobody's: it stays when the Profile goes."""
    name = profile["metadata"]["name"]
    meta = {"name": CLOSED, "namespace": name, "labels": {PROFILE_LABEL: name}}
    kind = {"apiVersion": RESOURCEQUOTAS.api_version, "kind": RESOURCEQUOTAS.kind}
    return {**kind, "metadata": meta, "spec": {"hard": {"pods": "0"}}}


def amount_problem(spec: ProfileSpec) -> str:
    """What is wrong with an amount of the quota or the queue, or with a name of the quota, beyond its form."""
    try:
        hard, _ = _hard(spec), _capability(spec)
    except quantity.QuantityError as error:
        return str(error)
    return next(filter(None, map(quota_name_problem, hard)), "")


def covers(found: Any, wanted: Any) -> bool:
    """Whether everything that is wanted is there; what the API server added does not count.

    >>> covers({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"c": 2}})
    True
    """
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(name in found and covers(found[name], wanted[name]) for name in wanted)
    if isinstance(wanted, list):
        return isinstance(found, list) and len(found) == len(wanted) and all(map(covers, found, wanted))
    return bool(found == wanted)


def _owned(profile: Object, resource: Resource, name: str, *, namespace: str = "", **body: Any) -> Object:
    meta: Object = {"name": name, "labels": {PROFILE_LABEL: profile["metadata"]["name"]}}
    if namespace:
        meta["namespace"] = namespace
    meta["ownerReferences"] = [owner_reference(profile)]
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, **body}


def _binding(role: str, people: list[Subject] | list[Contributor]) -> Object:
    return {
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [_subject(each) for each in people],
    }


def _subject(subject: Subject) -> Object:
    if subject.kind == "ServiceAccount":
        return {"kind": subject.kind, "name": subject.name, "namespace": subject.namespace}
    return {"apiGroup": RBAC, "kind": subject.kind, "name": subject.name}


def _hard(spec: ProfileSpec) -> dict[str, str]:
    return _canonical(spec.resource_quota_spec.hard if spec.resource_quota_spec else None)


def _capability(spec: ProfileSpec) -> dict[str, str]:
    return _canonical(spec.queue.capability if spec.queue else None)


def _canonical(amounts: Resources | None) -> dict[str, str]:
    """As API servers write them: what is compared later is the same text."""
    return {name: quantity.canonical(value) for name, value in (amounts or {}).items()}


def _limits(hard: Mapping[str, str]) -> Object | None:
    """Defaults for what the quota limits: it refuses pods that say nothing of it."""
    names = ("cpu", "memory")
    requests = {
        name: _DEFAULT_REQUESTS[name] for name in names if {name, f"requests.{name}", f"limits.{name}"} & set(hard)
    }
    limits = {name: _DEFAULT_LIMITS[name] for name in names if f"limits.{name}" in hard}
    if not requests:
        return None
    defaults = {"defaultRequest": requests, **({"default": limits} if limits else {})}
    return {"limits": [{"type": "Container", **defaults}]}


def _countable(hard: Mapping[str, str]) -> dict[str, str]:
    """What of a quota is a resource of nodes, which queues count."""
    found = {name.removeprefix("requests."): amount for name, amount in hard.items() if name.startswith("requests.")}
    found |= {name: hard[name] for name in ("cpu", "memory") if name in hard}
    return {name: amount for name, amount in found.items() if "storage" not in name}


def _isolation(reached_from: tuple[str, ...]) -> Object:
    """Connections come from the namespace itself and from those of the platform; what pods open is not limited."""
    sources: list[Object] = [{"podSelector": {}}]
    if reached_from:
        one_of = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": list(reached_from)}
        sources.append({"namespaceSelector": {"matchExpressions": [one_of]}})
    return {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{"from": sources}]}


def same_spec(profile: Profile) -> bool:
    """Whether the last pass was about this spec: then only what others changed is written again."""
    return profile.status is not None and profile.status.observed_generation == profile.metadata.get("generation")
