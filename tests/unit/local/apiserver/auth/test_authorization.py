"""Authorisation on a store: bootstrap roles, refusals, reviews, impersonation."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.kube import errors
from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.auth import authorization
from paddlecloud.local.apiserver.auth.authentication import ADMIN, ANONYMOUS, User
from paddlecloud.local.apiserver.auth.authorization import Attributes, Authorizer, forbidden, impersonate
from paddlecloud.local.store.record import ObjectAddress
from paddlecloud.local.store.store import Store

GROUP = "rbac.authorization.k8s.io"
PLURALS = {
    "Role": "roles",
    "ClusterRole": "clusterroles",
    "RoleBinding": "rolebindings",
    "ClusterRoleBinding": "clusterrolebindings",
}


def authenticated(name: str, *groups: str) -> User:
    return User(name, groups=(*groups, "system:authenticated"))


ALICE = authenticated("alice")


def address(obj: Object) -> ObjectAddress:
    return ObjectAddress(
        f"{GROUP}/{PLURALS[obj['kind']]}", obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
    )


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = Store(tmp_path / "state.db")
    for obj in authorization.bootstrap_objects():
        await store.put(address(obj), obj, expect=0)
    yield store
    await store.close()


async def bind(store: Store, role: str, *users: str, namespace: str = "") -> None:
    obj: Object = {
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": {"name": f"{role}-test", "namespace": namespace},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "User", "apiGroup": GROUP, "name": user} for user in users],
    }
    await store.put(address(obj), obj, expect=0)


# --- bootstrap ---


def test_bootstrap_objects_are_well_formed_and_bind_what_exists() -> None:
    objects = authorization.bootstrap_objects()
    roles = [o["metadata"]["name"] for o in objects if o["kind"] == "ClusterRole"]
    assert len(roles) == len(set(roles))
    expected = {"cluster-admin", "admin", "edit", "view", "system:basic-user", "system:discovery", "system:node"}
    assert expected <= set(roles)
    for obj in objects:
        assert obj["apiVersion"] == "rbac.authorization.k8s.io/v1"
        if obj["kind"] == "ClusterRoleBinding":
            assert obj["roleRef"]["name"] in roles
            assert obj["subjects"]
        for rule in obj.get("rules", ()):
            assert rule["verbs"]
            assert rule.get("nonResourceURLs") or (rule["apiGroups"] and rule["resources"])


@pytest.mark.parametrize(
    ("role", "wanted", "allowed"),
    [
        ("view", Attributes("get", "", "pods", namespace="ns"), True),
        ("view", Attributes("get", "", "pods", "log", namespace="ns"), True),
        ("view", Attributes("get", "", "secrets", namespace="ns"), False),
        ("view", Attributes("create", "", "pods", namespace="ns"), False),
        ("edit", Attributes("create", "", "pods", namespace="ns"), True),
        ("edit", Attributes("create", "", "pods", "exec", namespace="ns"), True),
        ("edit", Attributes("get", "", "secrets", namespace="ns"), True),
        ("edit", Attributes("get", "", "pods", namespace="ns"), True),
        ("edit", Attributes("patch", "apps", "deployments", "scale", namespace="ns"), True),
        ("edit", Attributes("get", "", "endpoints", namespace="ns"), True),
        ("edit", Attributes("update", "", "endpoints", namespace="ns"), False),
        ("edit", Attributes("patch", "apps", "controllerrevisions", namespace="ns"), False),
        ("edit", Attributes("create", "", "pods", "eviction", namespace="ns"), True),
        ("edit", Attributes("delete", "", "pods", "eviction", namespace="ns"), False),
        ("edit", Attributes("delete", "", "events", namespace="ns"), True),
        ("edit", Attributes("create", GROUP, "roles", namespace="ns"), False),
        ("edit", Attributes("update", "", "resourcequotas", namespace="ns"), False),
        ("admin", Attributes("create", GROUP, "rolebindings", namespace="ns"), True),
        ("admin", Attributes("create", "", "pods", namespace="ns"), True),
        ("admin", Attributes("update", "", "resourcequotas", namespace="ns"), False),
        ("admin", Attributes("create", "", "pods", namespace="other"), False),
        ("cluster-admin", Attributes("delete", "any.group", "things", namespace="ns"), True),
        ("cluster-admin", Attributes("get", "", "nodes"), False),
    ],
)
async def test_user_facing_roles(store: Store, role: str, wanted: Attributes, allowed: bool) -> None:
    await bind(store, role, "alice", namespace="ns")
    assert Authorizer(store).allowed(ALICE, wanted).allowed is allowed


@pytest.mark.parametrize(
    ("who", "wanted", "allowed"),
    [
        (ALICE, Attributes("get", path="/apis/apps/v1"), True),
        (ALICE, Attributes("get", path="/openapi/v3"), True),
        (ALICE, Attributes("get", path="/metrics"), False),
        (ALICE, Attributes("create", "authorization.k8s.io", "selfsubjectaccessreviews"), True),
        (ALICE, Attributes("create", "authorization.k8s.io", "subjectaccessreviews"), False),
        (ALICE, Attributes("list", "", "pods", namespace="ns"), False),
        (ANONYMOUS, Attributes("get", path="/version"), True),
        (ANONYMOUS, Attributes("get", path="/api"), False),
        (ANONYMOUS, Attributes("get", "", "pods", namespace="ns"), False),
        (authenticated("n1", "system:nodes"), Attributes("patch", "", "pods", "status", namespace="ns"), True),
        (authenticated("n1", "system:nodes"), Attributes("create", "apps", "deployments", namespace="ns"), False),
        (authenticated("system:kube-scheduler"), Attributes("create", "", "pods", "binding", namespace="ns"), True),
        (
            authenticated("system:serviceaccount:kube-system:job-controller"),
            Attributes("create", "", "pods", namespace="ns"),
            True,
        ),
        (authenticated("system:serviceaccount:ns:default"), Attributes("get", "", "pods", namespace="ns"), False),
    ],
)
async def test_system_roles(store: Store, who: User, wanted: Attributes, allowed: bool) -> None:
    assert Authorizer(store).allowed(who, wanted).allowed is allowed


# --- following the store ---


async def test_a_grant_counts_when_its_write_is_acknowledged_and_ends_with_it(store: Store) -> None:
    authorizer = Authorizer(store)
    wanted = Attributes("get", "", "pods", namespace="ns")
    assert not authorizer.allowed(ALICE, wanted).allowed
    await bind(store, "view", "alice", namespace="ns")
    assert authorizer.allowed(ALICE, wanted).allowed
    where = ObjectAddress(f"{GROUP}/rolebindings", "ns", "view-test")
    record = store.get(where)
    assert record is not None
    await store.delete(where, record.object, expect=record.rev)
    assert not authorizer.allowed(ALICE, wanted).allowed


@pytest.mark.parametrize("rules", ["text", [7], [{"verbs": 7}], None])
async def test_a_role_that_is_not_understood_grants_nothing_and_breaks_nothing(store: Store, rules: Any) -> None:
    authorizer = Authorizer(store)
    await bind(store, "odd", "alice")
    odd: Object = {"kind": "ClusterRole", "metadata": {"name": "odd"}, "rules": rules}
    await store.put(address(odd), odd, expect=0)
    assert not authorizer.allowed(ALICE, Attributes("get", "", "pods")).allowed


# --- refusals ---


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (
            Attributes("get", "", "pods", namespace="ns", name="x"),
            'pods "x" is forbidden: User "alice" cannot get resource "pods" in API group "" in the namespace "ns"',
        ),
        (
            Attributes("list", "apps", "deployments"),
            'deployments.apps is forbidden: User "alice" cannot list resource "deployments" in API group "apps" '
            "at the cluster scope",
        ),
        (
            Attributes("create", "", "pods", "exec", "ns", "x"),
            'pods "x" is forbidden: User "alice" cannot create resource "pods/exec" in API group "" '
            'in the namespace "ns"',
        ),
        (Attributes("get", path="/metrics"), 'forbidden: User "alice" cannot get path "/metrics"'),
    ],
)
def test_refusals_read_as_kubernetes_writes_them(wanted: Attributes, message: str) -> None:
    assert forbidden(ALICE, wanted).message == message


# --- reviews ---


def review(**spec: Any) -> Object:
    return {"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "metadata": {}, "spec": spec}


async def test_can_i(store: Store) -> None:
    await bind(store, "view", "alice", namespace="ns")
    authorizer = Authorizer(store)
    asked = review(resourceAttributes={"verb": "list", "resource": "pods", "namespace": "ns"})
    answer = authorization.self_subject_access_review(authorizer, ALICE, asked)
    assert answer["status"]["allowed"] is True
    assert 'RoleBinding "view-test/ns"' in answer["status"]["reason"]
    assert answer["spec"] == asked["spec"]
    nowhere = review(resourceAttributes={"verb": "list", "resource": "pods"})
    assert authorization.self_subject_access_review(authorizer, ALICE, nowhere)["status"] == {"allowed": False}
    path = review(nonResourceAttributes={"verb": "get", "path": "/api"})
    assert authorization.self_subject_access_review(authorizer, ALICE, path)["status"]["allowed"] is True


async def test_can_they(store: Store) -> None:
    await bind(store, "view", "alice", namespace="ns")
    authorizer = Authorizer(store)
    asked = review(user="alice", resourceAttributes={"verb": "list", "resource": "pods", "namespace": "ns"})
    assert authorization.subject_access_review(authorizer, asked)["status"]["allowed"] is True
    masters = review(groups=["system:masters"], resourceAttributes={"verb": "*", "resource": "*", "group": "*"})
    assert authorization.subject_access_review(authorizer, masters)["status"]["allowed"] is True
    local = authorization.local_subject_access_review(authorizer, asked, namespace="ns")
    assert local["status"]["allowed"] is True


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({}, "exactly one of nonResourceAttributes or resourceAttributes must be specified"),
        ({"resourceAttributes": {}, "nonResourceAttributes": {}}, "exactly one of"),
        ({"resourceAttributes": "pods"}, "must be an object"),
        ({"resourceAttributes": {"verb": 7}}, "attribute verb of a review must be a string"),
    ],
)
async def test_bad_reviews_are_refused(store: Store, spec: dict[str, Any], message: str) -> None:
    with pytest.raises(errors.ApiError) as caught:
        authorization.self_subject_access_review(Authorizer(store), ALICE, review(**spec))
    assert message in caught.value.message


async def test_reviews_of_nobody_and_of_another_namespace_are_refused(store: Store) -> None:
    authorizer = Authorizer(store)
    attributes = {"verb": "get", "resource": "pods", "namespace": "ns"}
    with pytest.raises(errors.Invalid, match="at least one of user or group"):
        authorization.subject_access_review(authorizer, review(resourceAttributes=attributes))
    asked = review(user="alice", resourceAttributes=attributes)
    with pytest.raises(errors.Invalid, match=r"must match metadata\.namespace"):
        authorization.local_subject_access_review(authorizer, asked, namespace="other")


async def test_what_may_i(store: Store) -> None:
    await bind(store, "view", "alice", namespace="ns")
    asked: Object = {"kind": "SelfSubjectRulesReview", "spec": {"namespace": "ns"}}
    status = authorization.self_subject_rules_review(Authorizer(store), ALICE, asked)["status"]
    assert status["incomplete"] is False
    assert any("pods" in rule["resources"] and "get" in rule["verbs"] for rule in status["resourceRules"])
    assert any("/api" in rule["nonResourceURLs"] for rule in status["nonResourceRules"])
    with pytest.raises(errors.BadRequest, match="no namespace"):
        authorization.self_subject_rules_review(Authorizer(store), ALICE, {"spec": {}})


# --- impersonation ---


async def test_the_administrator_may_be_anybody(store: Store) -> None:
    authorizer = Authorizer(store)
    assert impersonate(authorizer, ADMIN, {}) is ADMIN
    user = impersonate(authorizer, ADMIN, {"impersonate-user": "bob", "impersonate-group": "dev"})
    assert user == User("bob", groups=("dev", "system:authenticated"))


@pytest.mark.parametrize(
    "headers",
    [
        {"impersonate-user": "bob"},
        {"impersonate-user": "carol", "impersonate-group": "system:masters"},
        {"impersonate-user": "carol", "impersonate-uid": "1"},
        {"impersonate-user": "carol", "impersonate-extra-scopes": "all"},
        {"impersonate-user": "system:serviceaccount:ns:robot"},
    ],
)
async def test_others_may_be_only_whom_they_were_granted(store: Store, headers: dict[str, str]) -> None:
    role: Object = {
        "kind": "ClusterRole",
        "metadata": {"name": "actor"},
        "rules": [{"verbs": ["impersonate"], "apiGroups": [""], "resources": ["users"], "resourceNames": ["carol"]}],
    }
    await store.put(address(role), role, expect=0)
    await bind(store, "actor", "alice")
    authorizer = Authorizer(store)
    assert impersonate(authorizer, ALICE, {"impersonate-user": "carol"}).name == "carol"
    with pytest.raises(errors.Forbidden, match="cannot impersonate resource"):
        impersonate(authorizer, ALICE, headers)
