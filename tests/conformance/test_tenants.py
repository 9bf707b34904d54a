"""A tenant who may do everything in one namespace, and what that must not reach: all that lies outside of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from paddlecloud.kube.resource import CONFIGMAPS, NAMESPACES, SECRETS, Object, Resource

from . import widgets as kinds
from .world import CRDS, Api, ScratchNamespace, a, eventually

RBAC = "rbac.authorization.k8s.io"
ROLES = Resource(RBAC, "v1", "roles", "Role")
BINDINGS = Resource(RBAC, "v1", "rolebindings", "RoleBinding")
EVERYTHING = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
APPLY = "application/apply-patch+yaml"


def acting_as(here: ScratchNamespace, user: str, *rules: Object) -> Api:
    """The API as `user` sees it, to whom a Role of the namespace grants `rules`."""
    here.make(ROLES, user, rules=list(rules))
    here.make(
        BINDINGS, user,
        roleRef={"apiGroup": RBAC, "kind": "Role", "name": user},
        subjects=[{"apiGroup": RBAC, "kind": "User", "name": user}],
    )  # fmt: skip
    made = here.api.sending(("Impersonate-User", user))
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
    rule = rules[0]
    wanted = {"namespace": here.namespace, "verb": rule["verbs"][0], "resource": rule["resources"][0]}
    wanted |= {"group": rule["apiGroups"][0], "name": (rule.get("resourceNames") or [""])[0]}
    spec = {"spec": {"resourceAttributes": wanted}}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    eventually(lambda: made.post(path, {**body, **spec})["status"]["allowed"], True)
    return made


@pytest.fixture
def tenant(here: ScratchNamespace) -> Iterator[Api]:
    """May do everything in the test's namespace."""
    made = acting_as(here, "tenant", EVERYTHING)
    yield made
    made.close()


@pytest.fixture
def victim(clusterwide: ScratchNamespace, namespace: str) -> Iterator[str]:
    name = f"{namespace}-victim"
    clusterwide.make(NAMESPACES, name)
    yield name
    clusterwide.delete(NAMESPACES, name)


@pytest.mark.parametrize(
    ("method", "tail"),
    [
        ("GET", ""), ("POST", ""), ("DELETE", ""),
        ("GET", "/{victim}"), ("PUT", "/{victim}"), ("PATCH", "/{victim}"), ("DELETE", "/{victim}"),
        ("GET", "/{victim}/status"), ("PUT", "/{victim}/status"), ("PUT", "/{victim}/finalize"),
        ("GET", "/{victim}/secrets"), ("DELETE", "/{own}"),
    ],
)  # fmt: skip
def test_a_namespace_is_not_reached_through_another(
    here: ScratchNamespace, tenant: Api, victim: str, clusterwide: ScratchNamespace, method: str, tail: str
) -> None:
    path = f"/api/v1/namespaces/{here.namespace}/namespaces" + tail.format(victim=victim, own=here.namespace)
    body = a(NAMESPACES, f"{victim}-made") if method in ("POST", "PUT", "PATCH") else None
    options = {"content_type": "application/merge-patch+json"} if method == "PATCH" else {}
    assert tenant.send(method, path, body, **options).status in (404, 405)
    assert clusterwide.get(NAMESPACES, victim)["status"]["phase"] == "Active"
    assert clusterwide.get(NAMESPACES, here.namespace)["status"]["phase"] == "Active"
    assert not clusterwide.exists(NAMESPACES, f"{victim}-made")
    assert here.api.send(method, path, body, **options).status in (404, 405), "not even for the administrator"


def test_a_tenant_keeps_its_own_namespace_object(here: ScratchNamespace, tenant: Api) -> None:
    """As in Kubernetes: /namespaces/N and its subresources are judged by the rules of N."""
    assert tenant.fetch(f"/api/v1/namespaces/{here.namespace}")["metadata"]["name"] == here.namespace
    assert tenant.fetch(f"/api/v1/namespaces/{here.namespace}/status")["kind"] == "Namespace"


def cluster_scoped(api: Api) -> list[tuple[str, str]]:
    """(path of the group version, plural or plural/subresource) of everything outside of namespaces."""
    found = [("/api/v1", resource) for resource in api.fetch("/api/v1")["resources"]]
    for group in api.fetch("/apis")["groups"]:
        base = f"/apis/{group['preferredVersion']['groupVersion']}"
        found += [(base, resource) for resource in api.fetch(base)["resources"]]
    return [(base, resource["name"]) for base, resource in found if not resource["namespaced"]]


def test_no_cluster_scoped_kind_is_served_below_a_namespace(here: ScratchNamespace, tenant: Api) -> None:
    resources = cluster_scoped(here.api)
    assert {"nodes", "persistentvolumes", "clusterroles", "customresourcedefinitions", "storageclasses"} <= {
        name for _, name in resources
    }
    for base, name in resources:
        plural, _, subresource = name.partition("/")
        if (base, plural) == ("/api/v1", "namespaces"):
            continue  # above, form by form
        collection = f"{base}/namespaces/{here.namespace}/{plural}"
        item = f"{collection}/x/{subresource}" if subresource else f"{collection}/x"
        for method, path in [
            ("GET", collection), ("POST", collection), ("DELETE", collection),
            ("GET", item), ("PUT", item), ("PATCH", item), ("DELETE", item), ("POST", item),
        ]:  # fmt: skip
            body = {} if method in ("POST", "PUT", "PATCH") else None
            assert tenant.send(method, path, body).status == 404, (method, path)
        assert tenant.send("GET", f"{base}/{plural}").status in (403, 405), (base, plural)


def test_a_custom_kind_of_cluster_scope_is_not_served_below_a_namespace(
    here: ScratchNamespace, tenant: Api, clusterwide: ScratchNamespace, group: str
) -> None:
    definition = kinds.definition(group, "beacons", "Beacon")
    definition["spec"]["scope"] = "Cluster"
    made = kinds.install(here.api, definition)
    try:
        beacon = made.path(None)
        below = f"/apis/{group}/{made.version}/namespaces/{here.namespace}/beacons"
        for method, path in [("GET", below), ("POST", below), ("DELETE", below), ("DELETE", f"{below}/x")]:
            body = a(made, "x") if method == "POST" else None
            assert tenant.send(method, path, body).status == 404, (method, path)
        assert tenant.refuse("GET", beacon)["code"] == 403
    finally:
        clusterwide.delete(CRDS, f"beacons.{group}")


def test_a_namespaced_kind_is_written_in_a_namespace_only(here: ScratchNamespace, widgets: Resource) -> None:
    here.make(SECRETS, "s")
    assert here.api.send("POST", "/api/v1/secrets", a(SECRETS, "t")).status == 405
    assert here.api.send("DELETE", "/api/v1/secrets", query={"labelSelector": "no=such"}).status == 405
    assert here.api.send("GET", "/api/v1/secrets/s").status == 404
    assert here.api.send("DELETE", "/api/v1/secrets/s").status == 404
    everywhere = widgets.path(None)
    assert here.api.send("POST", everywhere, a(widgets, "w")).status == 404
    assert here.api.send("DELETE", everywhere).status == 404
    assert here.names(SECRETS) == ["s"]


# Writes that need more than one right --------------------------------------------------------------------------------


def test_applying_what_is_not_there_needs_the_right_to_create(here: ScratchNamespace) -> None:
    here.make(CONFIGMAPS, "there")
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch", "update", "get"]}
    patcher = acting_as(here, "patcher", rule)

    def apply(user: Api, name: str, **query: str) -> int:
        path = here.path(CONFIGMAPS, name)
        body = a(CONFIGMAPS, name, data={"k": "v"})
        return user.send("PATCH", path, body, query={"fieldManager": "m", **query}, content_type=APPLY).status

    assert apply(patcher, "absent") == 403
    assert apply(patcher, "absent", dryRun="All") == 403
    assert apply(patcher, "absent", force="true") == 403
    assert apply(patcher, "there") == 200
    assert here.names(CONFIGMAPS) == ["there"]
    patcher.close()
    creator = acting_as(here, "creator", {**rule, "verbs": ["patch", "create"]})
    assert apply(creator, "absent") == 201
    creator.close()
    named = acting_as(here, "named", {**rule, "verbs": ["patch", "create"], "resourceNames": ["this"]})
    assert (apply(named, "this"), apply(named, "that")) == (201, 403)
    named.close()


CLUSTER_ROLES = Resource(RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False)
CLUSTER_BINDINGS = Resource(RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)


def test_a_role_is_not_labelled_into_another_by_who_does_not_hold_its_rules(
    here: ScratchNamespace, clusterwide: ScratchNamespace
) -> None:
    """Who may edit ClusterRoles, and holds none of their rules, must not have `view` take one up."""
    strong, editor = f"{here.namespace}-strong", f"{here.namespace}-editor"
    secrets = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
    editing = {"apiGroups": [RBAC], "resources": ["clusterroles"], "verbs": ["get", "patch", "update"]}
    clusterwide.make(CLUSTER_ROLES, strong, rules=[secrets])
    clusterwide.make(CLUSTER_ROLES, editor, rules=[editing])
    clusterwide.make(
        CLUSTER_BINDINGS, editor,
        roleRef={"apiGroup": RBAC, "kind": "ClusterRole", "name": editor},
        subjects=[{"apiGroup": RBAC, "kind": "User", "name": editor}],
    )  # fmt: skip
    user = here.api.sending(("Impersonate-User", editor))
    path = CLUSTER_ROLES.path(None, strong)
    try:
        eventually(lambda: user.send("GET", path).status, 200)

        def patch(meta: Object) -> int:
            return user.send("PATCH", path, {"metadata": meta}, content_type="application/merge-patch+json").status

        assert patch({"labels": {f"{RBAC}/aggregate-to-view": "true"}}) == 403
        assert patch({"annotations": {"a": "b"}}) == 403
        assert "labels" not in clusterwide.get(CLUSTER_ROLES, strong)["metadata"]
        assert patch({"finalizers": ["example.org/held"]}) == 200
        assert patch({"finalizers": None}) == 200
    finally:
        user.close()
        clusterwide.delete(CLUSTER_BINDINGS, editor)
        clusterwide.delete(CLUSTER_ROLES, editor)
        clusterwide.delete(CLUSTER_ROLES, strong)


def bound(name: str, role: str, user: str) -> Object:
    return a(
        BINDINGS, name,
        roleRef={"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
        subjects=[{"apiGroup": RBAC, "kind": "User", "name": user}],
    )  # fmt: skip


def test_the_administrator_of_one_namespace_may_share_it_and_nothing_else(here: ScratchNamespace, victim: str) -> None:
    here.create(BINDINGS, bound("owner", "cluster-admin", "owner"))
    owner = here.api.sending(("Impersonate-User", "owner"))
    eventually(lambda: owner.send("GET", here.path(BINDINGS)).status, 200)
    assert owner.send("POST", here.path(BINDINGS), bound("friend", "cluster-admin", "friend")).status == 201
    assert owner.send("POST", BINDINGS.path(victim), bound("friend", "view", "friend")).status == 403
    everywhere = {**bound("friend", "view", "friend"), "kind": "ClusterRoleBinding"}
    assert owner.send("POST", CLUSTER_BINDINGS.path(None), everywhere).status == 403
    assert owner.send("GET", "/metrics").status == 403, "a URL is in no namespace"
    owner.close()


def test_a_right_to_escalate_one_role_covers_changing_it_and_not_creating_it(here: ScratchNamespace) -> None:
    writing = {"apiGroups": [RBAC], "resources": ["roles"], "verbs": ["create", "patch"]}
    escalating = {**writing, "verbs": ["escalate"], "resourceNames": ["special"]}
    writer = acting_as(here, "writer", writing, escalating)
    special = a(ROLES, "special", rules=[{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}])
    assert writer.send("POST", here.path(ROLES), special).status == 403
    here.make(ROLES, "special", rules=[])
    path, merge = here.path(ROLES, "special"), "application/merge-patch+json"
    assert writer.send("PATCH", path, {"rules": special["rules"]}, content_type=merge).status == 200
    writer.close()


# Single objects by resourceNames -------------------------------------------------------------------------------------


def test_a_rule_for_one_name_grants_lists_and_watches_of_that_name(here: ScratchNamespace) -> None:
    here.make(SECRETS, "mine")
    here.make(SECRETS, "other")
    rule = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["mine"], "verbs": ["list", "watch"]}
    user = acting_as(here, "reader", rule)
    path = here.path(SECRETS)
    found = user.fetch(path, fieldSelector="metadata.name=mine")
    assert [item["metadata"]["name"] for item in found["items"]] == ["mine"]
    watched = user.send("GET", path, query={"fieldSelector": "metadata.name=mine", "watch": "1", "timeoutSeconds": "1"})
    assert (watched.status, watched.body.count(b'"ADDED"'), b'"other"' in watched.body) == (200, 1, False)
    for selector in ("", "metadata.name=other", "metadata.name!=other", "metadata.name==mine,metadata.name=other"):
        answer = user.send("GET", path, query={"fieldSelector": selector} if selector else {})
        assert answer.status == 403 or b'"other"' not in answer.body, selector
    assert user.refuse("GET", path)["code"] == 403
    assert user.refuse("GET", f"{path}/mine", query={"watch": "1"})["code"] == 403, "a get, whatever is asked of it"
    user.close()


def test_a_watch_in_the_path_is_a_watch(here: ScratchNamespace) -> None:
    here.make(SECRETS, "mine")
    here.make(SECRETS, "other")
    reader = acting_as(here, "reader", {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list"]})
    path = f"/api/v1/watch/namespaces/{here.namespace}/secrets/mine"
    assert reader.refuse("GET", path)["code"] == 403
    reader.close()
    watched = here.api.send("GET", path, query={"timeoutSeconds": "1"})
    assert (watched.status, watched.body.count(b'"ADDED"'), b'"other"' in watched.body) == (200, 1, False)
