"""Kubernetes' roles `edit` and `view` cover this project's kinds, by the chart and on the embedded platform alike."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
import yaml
from rendered import template

from paddlecloud.api.catalogue import KINDS
from paddlecloud.api.names import MODEL
from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.auth.bootstrap_roles import bootstrap_objects, completed
from paddlecloud.platform.chart import user_roles

AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-"
VERBS = {"edit": {"create", "delete", "deletecollection", "patch", "update"}, "view": {"get", "list", "watch"}}
GROUPS = {kind.group for kind in KINDS}

Rights = set[tuple[str, str, str]]


def rights(objects: Iterable[Object], role: str) -> Rights:
    """What the parts of an aggregated role grant, of this project's groups."""
    rules = [
        rule
        for obj in objects
        if obj["kind"] == "ClusterRole" and (obj["metadata"].get("labels") or {}).get(f"{AGGREGATE}{role}") == "true"
        for rule in obj["rules"]
    ]
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule.get("apiGroups", ())
        for resource in rule["resources"]
        for verb in rule["verbs"]
        if group in GROUPS
    }


def wanted(role: str) -> Rights:
    """Every kind and its scale; nobody but controllers writes a status."""
    names = {(kind.group, kind.plural) for kind in KINDS}
    names |= {(kind.group, f"{kind.plural}/scale") for kind in KINDS if kind.scale}
    return {(group, resource, verb) for group, resource in names for verb in VERBS[role]}


@pytest.mark.parametrize("role", ["edit", "view"])
def test_the_chart_adds_its_kinds_to_the_roles_of_kubernetes_and_nothing_else(role: str) -> None:
    objects = [obj for obj in yaml.safe_load_all(template([])) if obj]
    assert rights(objects, role) == wanted(role)
    parts = [obj for obj in objects if f"{AGGREGATE}{role}" in (obj["metadata"].get("labels") or {})]
    granted = {group for part in parts for rule in part["rules"] for group in rule["apiGroups"]}
    assert granted == GROUPS, "no rights on anything but its own kinds"


@pytest.mark.parametrize("role", ["edit", "view"])
def test_models_without_services_are_for_users_too(role: str) -> None:
    made = template(["serving.enabled=false", "models.enabled=true", "models.store=s3://models/all"])
    granted = rights((obj for obj in yaml.safe_load_all(made) if obj), role)
    both = ("models", "modelversions")
    assert {(MODEL.group, kind, verb) for kind in both for verb in VERBS[role]} <= granted


@pytest.mark.parametrize("role", ["edit", "view"])
def test_the_embedded_platform_grants_what_the_chart_grants(role: str) -> None:
    assert rights([*bootstrap_objects(), *user_roles()], role) == wanted(role)


def test_nobody_who_may_edit_writes_endpoints_or_a_status() -> None:
    """As Kubernetes: endpoints lead requests of others anywhere, and controllers act on what a status says."""
    parts = [
        obj
        for obj in [*bootstrap_objects(), *user_roles()]
        if f"{AGGREGATE}edit" in (obj["metadata"].get("labels") or {})
    ]
    writable = {
        resource
        for part in parts
        for rule in part["rules"]
        if VERBS["edit"] & set(rule["verbs"])
        for resource in rule["resources"]
    }
    assert not {name for name in writable if name.startswith("endpoint") or name.endswith("/status") or name == "*"}


def test_what_an_earlier_release_granted_too_much_is_taken_back_and_what_others_added_stays() -> None:
    verbs = ["create", "delete", "deletecollection", "patch", "update"]
    statuses = {"verbs": verbs, "apiGroups": ["batch.paddlepaddle.org"], "resources": ["*"]}
    others = {"verbs": verbs, "apiGroups": ["example.com"], "resources": ["widgets"]}
    default = next(obj for obj in bootstrap_objects() if obj["metadata"]["name"] == "system:aggregate-to-edit")
    rules = completed({**default, "rules": [statuses, others]}, default)["rules"]
    assert statuses not in rules
    assert others in rules
    assert all(rule in rules for rule in default["rules"])
