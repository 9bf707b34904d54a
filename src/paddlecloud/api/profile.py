"""Profile of Kubeflow (`kubeflow.org/v1`): a tenant, with its namespace, its people and its share.

Kubeflow's own fields are accepted as they are. Those that it does not have say who else may work in the namespace
(`contributors`, which Kubeflow's access management keeps as RoleBindings), the share in Volcano, defaults of containers
and what becomes of the data. On a cluster with Kubeflow the kind and what is done for it are Kubeflow's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

from paddlecloud.api import names
from paddlecloud.api.fields import Conditions, Embedded, Int32, Int64, Resources, Root, Rule, Wire, doc
from paddlecloud.api.kind import AGE, Column, KindDeclaration
from paddlecloud.api.name_rules import DNS_LABEL, MAX_LABEL, no_longer_than
from paddlecloud.api.problems import Problem, declared_problems, decode_as, invalid, required

RIGHTS = ("edit", "view")
KEEP, DELETE = "Keep", "Delete"
MOST_CONTRIBUTORS = 500
RBAC = "rbac.authorization.k8s.io"
_NOBODY = ("system:anonymous", "system:unauthenticated")
_RESERVED = "kube-"


class Subject(Wire):
    """A person, a group or an account, as in a RoleBinding."""

    kind: Annotated[str | None, doc("What it is.", required=True, enum=["User", "Group", "ServiceAccount"])] = None
    name: Annotated[str | None, doc("Its name.", required=True, minLength=1, maxLength=253)] = None
    api_group: Annotated[str | None, doc(f"`{RBAC}`, or empty for a ServiceAccount.", enum=["", RBAC])] = None
    namespace: Annotated[str | None, doc("Of a ServiceAccount.", maxLength=MAX_LABEL)] = None


class Contributor(Subject):
    """Somebody who works in the namespace besides its owner."""

    role: Annotated[str | None, doc("What they may do there; `edit` when left out.", enum=list(RIGHTS))] = None


class QuotaSpec(Wire):
    """The spec of a ResourceQuota."""

    hard: Annotated[Resources | None, doc("Most that the namespace may use or have, by name of the resource.")] = None
    scopes: Annotated[list[str] | None, doc("Which objects count; all when left out.")] = None
    scope_selector: Annotated[Embedded | None, doc("The same, as an expression.")] = None


class TenantQueue(Wire):
    """The share of the tenant in Volcano."""

    weight: Annotated[Int32 | None, doc("Share beside other queues; 1 when left out.", minimum=1, maximum=65535)] = None
    capability: Annotated[
        Resources | None, doc("Most that gangs of the tenant use; what the quota allows when left out.")
    ] = None


class Plugin(Wire):
    """An extension of Kubeflow's profile controller."""

    api_version: str | None = None
    kind: str | None = None
    spec: Embedded | None = None


class ProfileSpec(Wire):
    """Whose the namespace is, who else works there, and how much of the cluster it may use."""

    owner: Annotated[Subject | None, doc("Who gets the role `edit` in the namespace.", required=True)] = None
    contributors: Annotated[list[Contributor] | None, doc("Who else works there.", maxItems=MOST_CONTRIBUTORS)] = None
    resource_quota_spec: Annotated[QuotaSpec | None, doc("A ResourceQuota of the namespace.")] = None
    limit_range_spec: Annotated[
        Embedded | None,
        doc(
            "A LimitRange of the namespace. Without it containers get default requests of what the quota limits, since "
            "such a quota refuses pods that request nothing."
        ),
    ] = None
    queue: Annotated[TenantQueue | None, doc("The share in Volcano, where there is Volcano.")] = None
    deletion_policy: Annotated[
        str | None,
        doc(
            "What becomes of the namespace when the Profile is deleted: `Keep` (when left out) takes the people's "
            "rights away and lets no new pods start; `Delete` deletes it with everything in it.",
            enum=[KEEP, DELETE],
        ),
    ] = None
    plugins: Annotated[
        list[Plugin] | None, doc("Accepted and not carried out; the condition `PluginsIgnored` names them.")
    ] = None


class ProfileStatus(Wire):
    """What was done for the tenant."""

    observed_generation: Annotated[Int64 | None, doc("The generation of the spec this status is about.")] = None
    message: Annotated[
        str | None, doc("What keeps the tenant from being ready, or what its quota has no room for.")
    ] = None
    conditions: Annotated[Conditions | None, doc("Ready, OwnerMissing, QuotaExceeded, QueueTaken, PluginsIgnored.")] = (
        None
    )


class Profile(Root):
    """A tenant: a namespace of the same name, and who may do what there."""

    RULES: ClassVar[tuple[Rule, ...]] = (DNS_LABEL, no_longer_than(MAX_LABEL, "the namespace is called so"))

    spec: Annotated[ProfileSpec | None, doc("Whose it is and what it may use.", required=True)] = None
    status: Annotated[ProfileStatus | None, doc("What was done; written by the controller.")] = None


DECLARATION = KindDeclaration(
    group=names.PROFILE.group,
    versions=(names.PROFILE.version, "v1beta1"),
    kind=names.PROFILE.kind,
    plural=names.PROFILE.plural,
    singular="profile",
    scope="Cluster",
    type=Profile,
    doc="A tenant: a namespace of its own with its people, quota and queue. Kubeflow's kind.",
    conditions=("Ready", "OwnerMissing", "QuotaExceeded", "QueueTaken", "PluginsIgnored"),
    columns=(
        Column("Owner", "string", ".spec.owner.name"),
        Column("Ready", "string", ".status.conditions[?(@.type=='Ready')].status"),
        AGE,
        Column("Message", "string", ".status.message", priority=1),
    ),
    foreign=True,
)


def decode(obj: Any) -> Profile:
    """Read a Profile; `DecodeError` names the field that has the wrong shape."""
    return decode_as(Profile, obj)


def validate(profile: Profile) -> list[Problem]:
    """What is wrong with it that can be seen without a server."""
    spec = profile.spec
    if spec is None or spec.owner is None:
        return [required("spec.owner", "say who gets the namespace")]
    return [*_named(profile.name), *declared_problems(spec, "spec"), *_people(spec)]


def _named(name: str) -> Iterator[Problem]:
    if name.startswith(_RESERVED):
        yield invalid("metadata.name", name, f"names that begin with {_RESERVED} are Kubernetes' own")
    if len(name) > MAX_LABEL or "." in name:
        yield invalid("metadata.name", name, f"the namespace is called so: {MAX_LABEL} characters, without dots")


def _people(spec: ProfileSpec) -> Iterator[Problem]:
    people = {"spec.owner": spec.owner} | {
        f"spec.contributors[{number}]": each for number, each in enumerate(spec.contributors or ())
    }
    for field, each in people.items():
        if each is None:
            continue
        if each.name in _NOBODY:
            yield invalid(f"{field}.name", each.name, "requests without credentials get no rights")
        if each.kind == "ServiceAccount" and not each.namespace:
            yield required(f"{field}.namespace", "an account is of a namespace")
