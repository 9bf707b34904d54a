"""What the chart lets its accounts do, and what they did: rules of rendered roles beside an API server's audit log.

Both are sets of (group, resource, verb), by account; the audit log has the form of Kubernetes' own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

ROLES = ("Role", "ClusterRole")


class Right(NamedTuple):
    group: str
    resource: str
    """With its subresource, as rules write it: `pods/log`."""
    verb: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{'.' if self.group else ''}{self.group}"


HPA = ("autoscaling", "horizontalpodautoscalers")
KINDS = ("apiextensions.k8s.io", "customresourcedefinitions")
ON_A_CLUSTER = frozenset(
    {("paddle-serving-sa", Right(*HPA, verb)) for verb in ("list", "watch", "create", "patch")}
    | {("paddlejob-sa", Right("", "pods", "patch"))}
    | {("paddle-serving-sa", Right("", "pods", "list")), ("paddle-serving-sa", Right("", "pods/proxy", "get"))}
    # Definitions are applied: where one is new the authoriser is also asked about creating it, and no log says so. They
    # are watched only where they are not established at once.
    | {("pdc-paddlecloud-crds", Right(*KINDS, verb)) for verb in ("create", "watch")}
)
"""Rights that the embedded platform gives no cause to use: account and right."""


def granted(objects: Iterable[dict[str, Any]]) -> dict[str, set[Right]]:
    """By account, from the bindings and roles among rendered objects."""
    given = list(objects)
    roles = {(each["kind"], each["metadata"]["name"]): each["rules"] for each in given if each["kind"] in ROLES}
    found: dict[str, set[Right]] = {}
    for binding in given:
        if binding["kind"] not in ("RoleBinding", "ClusterRoleBinding"):
            continue
        rules = roles[binding["roleRef"]["kind"], binding["roleRef"]["name"]]
        for subject in binding["subjects"]:
            found.setdefault(subject["name"], set()).update(right for rule in rules for right in _rights(rule))
    return found


def used(log: Path, namespace: str) -> dict[str, set[Right]]:
    """By account of a namespace: what was asked for and allowed. Requests for no resource (discovery) need no rule."""
    prefix = f"system:serviceaccount:{namespace}:"
    found: dict[str, set[Right]] = {}
    for event in _events(log):
        user, about = event["user"]["username"], event.get("objectRef")
        if user.startswith(prefix) and about and "resource" in about:
            resource = "/".join(filter(None, (about["resource"], about.get("subresource"))))
            right = Right(about.get("apiGroup", ""), resource, event["verb"])
            found.setdefault(user.removeprefix(prefix), set()).add(right)
    return found


def refused(log: Path, namespace: str) -> list[str]:
    """Requests of a namespace's accounts that a rule would have allowed and none did."""
    prefix = f"system:serviceaccount:{namespace}:"
    return sorted(
        {
            f"{event['user']['username'].removeprefix(prefix)}: {event['verb']} {event['requestURI']}"
            for event in _events(log)
            if event["user"]["username"].startswith(prefix) and event["responseStatus"]["code"] == 403
        }
    )


def _rights(rule: dict[str, Any]) -> Iterable[Right]:
    for group in rule["apiGroups"]:
        for resource in rule["resources"]:
            for verb in rule["verbs"]:
                yield Right(group, resource, verb)


def _events(log: Path) -> Iterable[dict[str, Any]]:
    for line in log.read_text().splitlines():
        event: dict[str, Any] = json.loads(line)
        if event["stage"] == "ResponseComplete":
            yield event
