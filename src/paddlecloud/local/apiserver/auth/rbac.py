"""Role-based access control: from roles and bindings to an answer, in a microsecond once asked before.

`RbacIndex` holds the rules of every Role and ClusterRole and who is bound to them, and is kept current object by
object. It answers for (user, attributes); answers are remembered until any role or binding changes. It knows nothing
of stores or requests, and grants only: there are no rules that deny.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from paddlecloud.kube.resource import Object
from paddlecloud.kube.selectors import LabelSelector
from paddlecloud.local.apiserver.auth.authentication import MASTERS, User
from paddlecloud.local.apiserver.auth.tokens import account_user_name

GROUP = "rbac.authorization.k8s.io"
_REMEMBERED = 8192
_Where = tuple[str, str]
"""Namespace and name; the namespace of cluster-wide objects is empty."""


class Attributes(NamedTuple):
    """What somebody wants to do. Either `resource` or `path` is set."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


class Decision(NamedTuple):
    allowed: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of a role. A star stands for everything."""

    verbs: frozenset[str]
    groups: frozenset[str] = frozenset()
    resources: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    urls: frozenset[str] = frozenset()

    @staticmethod
    def of(rule: Mapping[str, Any]) -> Rule:
        fields = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")
        return Rule(*(frozenset(rule.get(field) or ()) for field in fields))

    def body(self) -> Object:
        """The rule as an object of the API."""
        parts = {
            "verbs": self.verbs,
            "apiGroups": self.groups,
            "resources": self.resources,
            "resourceNames": self.names,
            "nonResourceURLs": self.urls,
        }
        return {key: sorted(values) for key, values in parts.items() if values}

    def matches_but_name(self, wanted: Attributes) -> bool:
        """Whether the rule grants what is wanted, were it not for resource names."""
        if "*" not in self.verbs and wanted.verb not in self.verbs:
            return False
        if not wanted.resource:
            return any(url_matches(url, wanted.path) for url in self.urls)
        if "*" not in self.groups and wanted.group not in self.groups:
            return False
        return resource_matches(self.resources, wanted.resource, wanted.subresource)


def resource_matches(resources: frozenset[str], resource: str, subresource: str) -> bool:
    """`pods` does not grant `pods/log`; `*/scale` grants the scale of everything; `*` grants all."""
    if "*" in resources:
        return True
    if not subresource:
        return resource in resources
    return f"{resource}/{subresource}" in resources or f"*/{subresource}" in resources


def url_matches(pattern: str, path: str) -> bool:
    return pattern == path or (pattern.endswith("*") and path.startswith(pattern[:-1]))


@dataclass(frozen=True, slots=True)
class _Role:
    rules: tuple[Rule, ...]
    labels: Mapping[str, str]
    aggregates: tuple[LabelSelector, ...]


@dataclass(frozen=True, slots=True)
class _Binding:
    where: _Where
    role_kind: str
    role_name: str
    subjects: tuple[tuple[str, str], ...]  # (User or Group, name)
    descriptions: Mapping[tuple[str, str], str]

    @property
    def role(self) -> _Where | None:
        return referred_role(self.where[0], self.role_kind, self.role_name)

    def reason(self, subject: tuple[str, str]) -> str:
        namespace, name = self.where
        kind = f'RoleBinding "{name}/{namespace}"' if namespace else f'ClusterRoleBinding "{name}"'
        return f'RBAC: allowed by {kind} of {self.role_kind} "{self.role_name}" to {self.descriptions[subject]}'


class _Decisions(NamedTuple):
    """The decision for every name at once: some rules grant single objects only."""

    always: Decision | None
    by_name: Mapping[str, Decision]
    otherwise: Decision


_BY_MASTERS = Decision(True, 'RBAC: allowed to members of Group "system:masters"')


class RbacIndex:
    """Roles and bindings, indexed by whom they are about."""

    def __init__(self) -> None:
        self._roles: dict[_Where, _Role] = {}
        self._bindings: dict[_Where, _Binding] = {}
        self._of_subject: dict[tuple[str, str], dict[_Where, _Binding]] = {}
        self._effective: dict[_Where, tuple[Rule, ...]] = {}
        self._decisions: dict[tuple[Any, ...], _Decisions] = {}

    # --- keeping current ---

    def upsert(self, obj: Object) -> None:
        """Take in a Role, ClusterRole, RoleBinding or ClusterRoleBinding. Other kinds are not its business."""
        where = _where(obj)
        if obj["kind"] in ("Role", "ClusterRole"):
            role = _compile_role(obj)
            if self._roles.get(where) != role:
                self._roles[where] = role
                self._forget()
        elif obj["kind"] in ("RoleBinding", "ClusterRoleBinding"):
            binding = _compile_binding(obj)
            if self._bindings.get(where) != binding:
                self._unbind(where)
                self._bindings[where] = binding
                for subject in binding.subjects:
                    self._of_subject.setdefault(subject, {})[where] = binding
                self._forget()

    def delete(self, obj: Object) -> None:
        where = _where(obj)
        if obj["kind"] in ("Role", "ClusterRole"):
            self._roles.pop(where, None)
        elif obj["kind"] in ("RoleBinding", "ClusterRoleBinding"):
            self._unbind(where)
        self._forget()

    def _unbind(self, where: _Where) -> None:
        binding = self._bindings.pop(where, None)
        for subject in binding.subjects if binding else ():
            entries = self._of_subject[subject]
            entries.pop(where, None)
            if not entries:
                del self._of_subject[subject]

    def _forget(self) -> None:
        self._effective.clear()
        self._decisions.clear()

    # --- answering ---

    def allowed(self, user: User, wanted: Attributes) -> Decision:
        if MASTERS in user.groups:
            return _BY_MASTERS
        verb, group, resource, subresource, namespace, name, path = wanted
        key = (user.name, user.groups, verb, group, resource, subresource, namespace, "" if resource else path)
        decisions = self._decisions.get(key)
        if decisions is None:
            if len(self._decisions) >= _REMEMBERED:
                self._decisions.clear()
            decisions = self._decisions[key] = self._judge(user, wanted)
        return decisions.always or decisions.by_name.get(name, decisions.otherwise)

    def _judge(self, user: User, wanted: Attributes) -> _Decisions:
        by_name: dict[str, Decision] = {}
        missing: list[str] = []
        for subject, binding in self._bindings_of(user, wanted.namespace if wanted.resource else ""):
            rules = self.role_rules(binding.role)
            if rules is None:
                missing.append(f'RBAC: {binding.role_kind.lower()}.{GROUP} "{binding.role_name}" not found')
                continue
            for rule in rules:
                if not rule.matches_but_name(wanted):
                    continue
                decision = Decision(True, binding.reason(subject))
                if not rule.names or not wanted.resource:
                    return _Decisions(decision, {}, decision)
                for name in rule.names:
                    by_name.setdefault(name, decision)
        return _Decisions(None, by_name, Decision(False, ", ".join(dict.fromkeys(missing))))

    def _bindings_of(self, user: User, namespace: str) -> Iterator[tuple[tuple[str, str], _Binding]]:
        """Cluster-wide bindings of the user, then those in the namespace."""
        subjects = [("User", user.name), *(("Group", group) for group in user.groups)]
        for place in ("",) if not namespace else ("", namespace):
            for subject in subjects:
                for where, binding in self._of_subject.get(subject, {}).items():
                    if where[0] == place:
                        yield subject, binding

    def rules_for(self, user: User, namespace: str) -> list[Rule]:
        """Everything the user may do in a namespace (or cluster-wide, where it is empty)."""
        found = dict.fromkeys(map(Rule.of, EVERYTHING) if MASTERS in user.groups else ())
        for _, binding in self._bindings_of(user, namespace):
            found.update(dict.fromkeys(self.role_rules(binding.role) or ()))
        return list(found)

    def role_rules(self, where: _Where | None) -> tuple[Rule, ...] | None:
        """The rules in force of a role, aggregation included; None if there is no such role."""
        if where is None:
            return None
        known = self._effective.get(where)
        if known is None and where in self._roles:
            known = self._effective[where] = tuple(dict.fromkeys(self._collect(where, set())))
        return known

    def _collect(self, where: _Where, visited: set[_Where]) -> Iterator[Rule]:
        visited.add(where)
        role = self._roles[where]
        if not role.aggregates:
            yield from role.rules
            return
        for other, candidate in sorted(self._roles.items(), key=lambda item: item[0]):  # the same after a restart
            if other[0] or other in visited:
                continue  # only ClusterRoles aggregate, and each once: rings of them are legal
            if any(selector.matches(candidate.labels) for selector in role.aggregates):
                yield from self._collect(other, visited)


def referred_role(namespace: str, kind: str, name: str) -> _Where | None:
    """Where the role a binding refers to is. A cluster-wide binding cannot refer to a Role: those have a namespace."""
    if kind == "ClusterRole":
        return ("", name)
    return (namespace, name) if kind == "Role" and namespace else None


EVERYTHING: Sequence[Mapping[str, Any]] = (
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
)


def _where(obj: Object) -> _Where:
    meta = obj["metadata"]
    return (meta.get("namespace") or "", meta["name"])


def _compile_role(obj: Object) -> _Role:
    aggregation = (obj.get("aggregationRule") or {}).get("clusterRoleSelectors") or ()
    if obj["kind"] == "Role":
        aggregation = ()  # an unknown field there
    return _Role(
        tuple(Rule.of(rule) for rule in obj.get("rules") or ()),
        obj["metadata"].get("labels") or {},
        tuple(LabelSelector.from_dict(selector) for selector in aggregation),
    )


def _compile_binding(obj: Object) -> _Binding:
    where = _where(obj)
    subjects: dict[tuple[str, str], str] = {}
    for subject in obj.get("subjects") or ():
        kind, name = subject.get("kind"), subject.get("name") or ""
        if kind == "ServiceAccount":
            namespace = subject.get("namespace") or where[0]
            subjects["User", account_user_name(namespace, name)] = f'ServiceAccount "{name}/{namespace}"'
        elif kind in ("User", "Group"):
            subjects[kind, name] = f'{kind} "{name}"'
    reference = obj.get("roleRef") or {}
    return _Binding(where, reference.get("kind") or "", reference.get("name") or "", tuple(subjects), subjects)
