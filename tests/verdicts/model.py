"""What a generated world consists of. Plain data that knows no server.

Names of users, groups, namespaces and other objects that are not inside a namespace begin with `@`, which is replaced
by a prefix of the world's own (`named`), so that many worlds share a server.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

RBAC = "rbac.authorization.k8s.io"
CUSTOM = "verdicts.example.org"

Body = dict[str, Any] | list[Any] | None


@dataclass(frozen=True)
class Actor:
    """Somebody who asks. An account uses its own token; others are impersonated by the administrator.

    Without a name no credentials are sent.
    """

    name: str
    groups: tuple[str, ...] = ()
    namespace: str = ""  # of the ServiceAccount

    @property
    def user(self) -> str:
        return f"system:serviceaccount:{self.namespace}:{self.name}" if self.namespace else self.name


ANN = Actor("@ann")
BOB = Actor("@bob", ("@team", "@night"))
ROBOT = Actor("robot", namespace="@a")
OTHER = Actor("robot", namespace="@b")
ADMIN = Actor("@root", ("system:masters",))
NOBODY = Actor("")
ACTORS = (ANN, BOB, ROBOT, OTHER)


@dataclass(frozen=True)
class Rule:
    verbs: tuple[str, ...]
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()

    def body(self) -> dict[str, list[str]]:
        if self.urls:
            return {"verbs": list(self.verbs), "nonResourceURLs": list(self.urls)}
        rule = {"verbs": list(self.verbs), "apiGroups": list(self.groups), "resources": list(self.resources)}
        return {**rule, "resourceNames": list(self.names)} if self.names else rule

    def __str__(self) -> str:
        if self.urls:
            return f"{','.join(self.verbs)} {','.join(self.urls)}"
        groups = ",".join(group or "core" for group in self.groups)
        names = f" named {','.join(self.names)}" if self.names else ""
        return f"{','.join(self.verbs)} {','.join(self.resources)} of {groups}{names}"


@dataclass(frozen=True)
class Grant:
    """A role and its binding: in the namespace `where`, or cluster-wide if that is empty."""

    subjects: tuple[tuple[str, str, str], ...]  # kind, namespace, name
    where: str
    rules: tuple[Rule, ...] = ()
    cluster_role: bool = False
    aggregated: bool = False
    """The ClusterRole that is bound has no rules: it selects the one that has them."""
    role: str = ""
    """Bind this ClusterRole, which is there already, instead of one with `rules`."""

    def __str__(self) -> str:
        kind = "aggregated ClusterRole" if self.aggregated else "ClusterRole" if self.cluster_role else "Role"
        what = f"ClusterRole {self.role}" if self.role else f"{kind} [{'; '.join(map(str, self.rules))}]"
        whom = ", ".join(f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"
                         for kind, namespace, name in self.subjects)  # fmt: skip
        return f"{what} bound {f'in {self.where}' if self.where else 'cluster-wide'} to {whom}"


@dataclass(frozen=True)
class Case:
    """One request."""

    actor: Actor
    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    content_type: str = "application/json"
    body: Body = None
    live: bool = False
    """`body` is merged into the object as it is now, which is then sent whole."""
    pages: bool = False
    """A list in pages: what is compared is all of them together."""

    @property
    def target(self) -> str:
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path

    def __str__(self) -> str:
        headers = "".join(f" {name}: {value};" for name, value in self.headers).rstrip(";")
        body = ""
        if self.body is not None:
            live = "live object with " if self.live else ""
            body = f" {self.content_type.rpartition('/')[2]} {live}{json.dumps(self.body, separators=(',', ':'))}"
        pages = " in pages" if self.pages else ""
        return f"{self.actor.user}: {self.method} {self.target}{pages}{headers}{body}"


@dataclass(frozen=True)
class AccessScenario:
    grants: tuple[Grant, ...]
    cases: tuple[Case, ...]


@dataclass(frozen=True)
class Verdict:
    """The status code, and what else must be equal: names that were listed, what a review says."""

    code: int
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.code} {self.detail}".rstrip()


def named(value: Any, prefix: str) -> Any:
    """`value` with the names of one world."""
    if isinstance(value, str):
        return value.replace("@", f"{prefix}-")
    if isinstance(value, dict):
        return {named(key, prefix): named(inner, prefix) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [named(inner, prefix) for inner in value]
    return value
