"""Nobody gives away power they do not have: the check on every write to a role or a binding.

A role may be written by a user who holds all of its rules, or is explicitly allowed to `escalate`; a binding by one who
holds all rules of the role it refers to, or is allowed to `bind` that role. Both as in Kubernetes, wording included.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from paddlecloud.kube import errors
from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.auth.authentication import MASTERS, User
from paddlecloud.local.apiserver.auth.rbac import EVERYTHING, GROUP, Attributes, RbacIndex, Rule, referred_role
from paddlecloud.local.apiserver.auth.rule_cover import uncovered
from paddlecloud.local.apiserver.objects.admission import WriteOptions
from paddlecloud.local.apiserver.registry import KindInfo

_PLURALS = {
    "Role": "roles",
    "ClusterRole": "clusterroles",
    "RoleBinding": "rolebindings",
    "ClusterRoleBinding": "clusterrolebindings",
}
_COLLECTION_FIELDS = ("ownerReferences", "finalizers", "managedFields", "resourceVersion")
"""Metadata that garbage collection changes, and that changes along with it. All other metadata may grant: labels decide
which roles aggregate this one."""
_MOST_SHOWN = 20


def check_write(index: RbacIndex, user: User, new: Object, old: Object | None = None, *, by_name: bool = False) -> None:
    """Raise `Forbidden` if the write would give anybody more than `user` has. Other kinds pass.

    `by_name`: the URL names the object, although it is created.
    """
    if new.get("kind") not in _PLURALS or MASTERS in user.groups:
        return
    if old is not None and _without_collection(new) == _without_collection(old):
        return  # as Kubernetes' IsOnlyMutatingGCFields: an object must be deletable by somebody who cannot grant it
    # By kind, never by the fields there are: a role may carry a `roleRef` that means nothing.
    if new["kind"] in ("RoleBinding", "ClusterRoleBinding"):
        _check_binding(index, user, new)
    else:
        _check_role(index, user, new, old, by_name=by_name or old is not None)


def policy(index: RbacIndex, info: KindInfo, new: Object, old: Object | None, options: WriteOptions) -> None:
    """`check_write` in the form admission calls it."""
    if info.resource.group == GROUP:
        check_write(index, options.user, new, old, by_name=options.by_name)


def _without_collection(obj: Object) -> Object:
    kept = {key: value for key, value in obj["metadata"].items() if key not in _COLLECTION_FIELDS}
    return {**obj, "metadata": kept}


def _check_role(index: RbacIndex, user: User, role: Object, old: Object | None, *, by_name: bool) -> None:
    meta = role["metadata"]
    namespace, plural = meta.get("namespace") or "", _PLURALS[role["kind"]]
    # A POST has no name in its URL, so a right to escalate roles of certain names does not cover it.
    name = meta["name"] if by_name else ""
    if index.allowed(user, Attributes("escalate", GROUP, plural, "", namespace, name)).allowed:
        return
    held = index.rules_for(user, namespace)
    _check_held(user, role, held, [Rule.of(rule) for rule in role.get("rules") or ()])
    aggregates = role.get("aggregationRule") or (old or {}).get("aggregationRule")
    if role["kind"] == "ClusterRole" and aggregates and uncovered(held, map(Rule.of, EVERYTHING)):
        raise _forbidden(role, "must have cluster-admin privileges to use an aggregationRule")


def _check_binding(index: RbacIndex, user: User, binding: Object) -> None:
    namespace, reference = binding["metadata"].get("namespace") or "", binding.get("roleRef") or {}
    kind, name = reference.get("kind") or "", reference.get("name") or ""
    plural = _PLURALS.get(kind, "roles")
    if index.allowed(user, Attributes("bind", GROUP, plural, "", namespace, name)).allowed:
        return
    role = referred_role(namespace, kind, name)
    if role is None:
        raise errors.BadRequest(f"a {binding['kind']} cannot refer to a {kind or 'role without a kind'}")
    rules = index.role_rules(role)
    if rules is None:
        raise errors.not_found(plural, name, group=GROUP)
    _check_held(user, binding, index.rules_for(user, namespace), rules)


def _check_held(user: User, obj: Object, held: list[Rule], wanted: Iterable[Rule]) -> None:
    missing = uncovered(held, wanted)
    if not missing:
        return
    shown = sorted({_shown(rule) for rule in _joined(missing)})
    more = [f"and {len(shown) - _MOST_SHOWN} more"] if len(shown) > _MOST_SHOWN else []
    listing = "\n".join([*shown[:_MOST_SHOWN], *more])
    groups = json.dumps(list(user.groups), separators=(" ", ""))
    raise _forbidden(
        obj,
        f'user "{user.name}" (groups={groups}) is attempting to grant RBAC permissions not currently held:\n{listing}',
    )


def _joined(rules: Iterable[Rule]) -> list[Rule]:
    """Pieces that differ in the verb alone as one rule, for reading."""
    verbs: dict[Rule, set[str]] = {}
    for rule in rules:
        rest = Rule(frozenset(), rule.groups, rule.resources, rule.names, rule.urls)
        verbs.setdefault(rest, set()).update(rule.verbs)
    return [Rule(frozenset(v), rest.groups, rest.resources, rest.names, rest.urls) for rest, v in verbs.items()]


def _shown(rule: Rule) -> str:
    parts = [
        ("APIGroups", rule.groups),
        ("Resources", rule.resources),
        ("ResourceNames", rule.names),
        ("NonResourceURLs", rule.urls),
        ("Verbs", rule.verbs),
    ]
    return "{" + ", ".join(f"{name}:{_quoted(values)}" for name, values in parts if values) + "}"


def _quoted(values: frozenset[str]) -> str:
    names = sorted(values)
    listed = " ".join(json.dumps(name) for name in names[:_MOST_SHOWN])
    return f"[{listed} …]" if len(names) > _MOST_SHOWN else f"[{listed}]"


def _forbidden(obj: Object, why: str) -> errors.Forbidden:
    return errors.forbidden(_PLURALS[obj["kind"]], obj["metadata"].get("name", ""), why, group=GROUP)
