"""Who is asking: service accounts and their tokens, RBAC, access reviews, impersonation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from paddlecloud.kube import errors
from paddlecloud.kube.resource import CONFIGMAPS, LEASES, PODS, SECRETS, SERVICEACCOUNTS, Object, Resource

from .world import Api, ScratchNamespace, a, eventually, sleeping_pod

RBAC, AUTHN, AUTHZ = "rbac.authorization.k8s.io", "authentication.k8s.io", "authorization.k8s.io"
ROLES = Resource(RBAC, "v1", "roles", "Role")
BINDINGS = Resource(RBAC, "v1", "rolebindings", "RoleBinding")
CLUSTER_ROLES = Resource(RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False)


def token_for(here: ScratchNamespace, account: str, **spec: Any) -> Object:
    """The answer to a TokenRequest."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    return here.api.post(here.path(SERVICEACCOUNTS, account, "token"), body)


def ask(api: Api, kind: str, spec: Object | None = None, *, group: str = AUTHZ, namespace: str = "") -> Object:
    """The status of a review."""
    place = f"namespaces/{namespace}/" if namespace else ""
    body = {"apiVersion": f"{group}/v1", "kind": kind, "spec": spec or {}}
    status: Object = api.post(f"/apis/{group}/v1/{place}{kind.lower()}s", body)["status"]
    return status


def who(api: Api) -> Object:
    user: Object = ask(api, "SelfSubjectReview", group=AUTHN)["userInfo"]
    return user


def review(api: Api, token: str, *audiences: str) -> Object:
    return ask(api, "TokenReview", {"token": token, "audiences": list(audiences)}, group=AUTHN)


@pytest.fixture
def account(here: ScratchNamespace) -> str:
    here.make(SERVICEACCOUNTS, "robot")
    return "robot"


@pytest.fixture
def robot(here: ScratchNamespace, account: str) -> Iterator[ScratchNamespace]:
    """The API as a new service account sees it, in the test's namespace."""
    token = token_for(here, account)["status"]["token"]
    api = here.api.bearing(token)
    yield ScratchNamespace(api, here.namespace)
    api.close()


def grant(
    here: ScratchNamespace, *, verbs: list[str], resources: list[str], names: list[str] | None = None, group: str = ""
) -> None:
    rule: Object = {"apiGroups": [group], "resources": resources, "verbs": verbs}
    if names:
        rule["resourceNames"] = names
    here.make(ROLES, "r", rules=[rule])
    here.make(
        BINDINGS, "b",
        roleRef={"apiGroup": RBAC, "kind": "Role", "name": "r"},
        subjects=[{"kind": "ServiceAccount", "name": "robot", "namespace": here.namespace}],
    )  # fmt: skip


def allowed(of: ScratchNamespace, verb: str, resource: str, name: str = "", *, group: str = "") -> bool:
    """Whether the server lets it happen now; permissions may take a moment to arrive."""
    wanted = {"namespace": of.namespace, "verb": verb, "group": group, "resource": resource, "name": name}
    return bool(ask(of.api, "SelfSubjectAccessReview", {"resourceAttributes": wanted})["allowed"])


# Tokens --------------------------------------------------------------------------------------------------------------


def test_a_token_says_who_it_is_for(here: ScratchNamespace, robot: ScratchNamespace) -> None:
    user = who(robot.api)
    assert user["username"] == f"system:serviceaccount:{here.namespace}:robot"
    assert set(user["groups"]) == {
        "system:serviceaccounts",
        f"system:serviceaccounts:{here.namespace}",
        "system:authenticated",
    }


def test_a_token_lives_as_long_as_asked(here: ScratchNamespace, account: str) -> None:
    answer = token_for(here, account, expirationSeconds=3600)
    assert answer["spec"]["expirationSeconds"] == 3600
    assert answer["status"]["expirationTimestamp"] > here.get(SERVICEACCOUNTS, account)["metadata"]["creationTimestamp"]


@pytest.mark.parametrize("seconds", [1, 599, -5, 1 << 33])
def test_a_token_must_live_at_least_ten_minutes(here: ScratchNamespace, account: str, seconds: int) -> None:
    with pytest.raises(errors.Invalid, match="expirationSeconds"):
        token_for(here, account, expirationSeconds=seconds)


def test_a_token_dies_with_its_account(here: ScratchNamespace, robot: ScratchNamespace) -> None:
    assert who(robot.api)
    here.delete(SERVICEACCOUNTS, "robot")
    eventually(lambda: robot.api.send("GET", here.path(CONFIGMAPS)).status, 401)


def test_a_token_is_not_bound_to_a_pod_of_another_account(here: ScratchNamespace, account: str) -> None:
    here.create(PODS, sleeping_pod("p"))
    with pytest.raises(errors.BadRequest, match="different serviceaccount name"):
        token_for(here, account, boundObjectRef={"kind": "Pod", "apiVersion": "v1", "name": "p"})


def test_a_token_may_be_bound_to_a_pod(here: ScratchNamespace, account: str) -> None:
    pod = here.create(PODS, sleeping_pod("p", spec={"serviceAccountName": "robot"}))
    bound = {"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": pod["metadata"]["uid"]}
    token = token_for(here, account, boundObjectRef=bound)["status"]["token"]
    seen = review(here.api, token)
    assert seen["authenticated"] is True
    assert seen["user"]["extra"]["authentication.kubernetes.io/pod-name"] == ["p"]
    here.delete(PODS, "p", grace_period=0)
    eventually(lambda: bool(review(here.api, token).get("authenticated")), False)


def test_a_token_of_a_pod_names_its_node(here: ScratchNamespace, account: str) -> None:
    spec = {"serviceAccountName": "robot", "nodeName": "nowhere.example.org"}
    here.create(PODS, sleeping_pod("p", spec=spec))
    bound = {"kind": "Pod", "apiVersion": "v1", "name": "p"}
    extra = review(here.api, token_for(here, account, boundObjectRef=bound)["status"]["token"])["user"]["extra"]
    assert extra["authentication.kubernetes.io/node-name"] == ["nowhere.example.org"]
    assert "authentication.kubernetes.io/node-uid" not in extra  # there is no such node


def test_a_token_for_another_audience_is_refused(here: ScratchNamespace, account: str) -> None:
    token = token_for(here, account, audiences=["elsewhere.example.org"])["status"]["token"]
    api = here.api.bearing(token)
    assert api.send("GET", here.path(CONFIGMAPS)).status == 401
    api.close()
    seen = review(here.api, token, "elsewhere.example.org")
    assert (seen["authenticated"], seen["audiences"]) == (True, ["elsewhere.example.org"])


def test_there_is_no_token_for_nobody(here: ScratchNamespace) -> None:
    with pytest.raises(errors.NotFound, match='serviceaccounts "nobody" not found'):
        token_for(here, "nobody")


@pytest.mark.parametrize("token", ["nonsense", "a.b.c", ""])
def test_a_forged_token_is_no_token(here: ScratchNamespace, token: str) -> None:
    api = here.api.bearing(token or " ")
    assert api.send("GET", here.path(CONFIGMAPS)).status in (401, 403)
    api.close()


def test_a_pod_needs_its_account(here: ScratchNamespace) -> None:
    with pytest.raises(errors.Forbidden, match='serviceaccount "ghost" not found'):
        here.create(PODS, sleeping_pod("p", spec={"serviceAccountName": "ghost"}))


# RBAC ----------------------------------------------------------------------------------------------------------------


def test_nothing_is_allowed_unless_granted(here: ScratchNamespace, robot: ScratchNamespace) -> None:
    robots_name = f"system:serviceaccount:{here.namespace}:robot"
    with pytest.raises(errors.Forbidden) as refused:
        robot.names(CONFIGMAPS)
    assert refused.value.message == (
        f'configmaps is forbidden: User "{robots_name}" cannot list resource "configmaps" in API group "" '
        f'in the namespace "{here.namespace}"'
    )


def test_a_role_grants_verbs_on_resources(here: ScratchNamespace, robot: ScratchNamespace) -> None:
    here.make(CONFIGMAPS, "c")
    grant(here, verbs=["get", "list"], resources=["configmaps"])
    eventually(lambda: allowed(robot, "list", "configmaps"), True)
    assert robot.names(CONFIGMAPS) == ["c"]
    for attempt in (
        lambda: robot.make(CONFIGMAPS, "d"),
        lambda: robot.delete(CONFIGMAPS, "c"),
        lambda: robot.names(SECRETS),
        lambda: next(robot.watch(CONFIGMAPS, timeout=1)),
    ):
        with pytest.raises(errors.Forbidden):
            attempt()


def test_a_role_may_name_single_objects(here: ScratchNamespace, robot: ScratchNamespace) -> None:
    here.make(SECRETS, "mine")
    here.make(SECRETS, "other")
    grant(here, verbs=["get", "delete"], resources=["secrets"], names=["mine"])
    eventually(lambda: allowed(robot, "get", "secrets", "mine"), True)
    assert robot.get(SECRETS, "mine")
    with pytest.raises(errors.Forbidden, match='secrets "other" is forbidden'):
        robot.get(SECRETS, "other")


def test_subresources_are_granted_apart(here: ScratchNamespace, robot: ScratchNamespace) -> None:
    grant(here, verbs=["*"], resources=["pods"])
    eventually(lambda: allowed(robot, "create", "pods"), True)
    robot.create(PODS, sleeping_pod("p"))
    with pytest.raises(errors.Forbidden, match="pods/status"):
        robot.patch(PODS, "p", {"status": {"phase": "Running"}}, subresource="status")


def test_a_role_holds_in_its_namespace_only(here: ScratchNamespace, robot: ScratchNamespace) -> None:
    grant(here, verbs=["*"], resources=["*"])
    eventually(lambda: allowed(robot, "list", "configmaps"), True)
    assert robot.api.send("GET", "/api/v1/namespaces/default/configmaps").status == 403
    assert robot.api.send("GET", "/api/v1/configmaps").status == 403
    assert robot.api.send("GET", "/api/v1/nodes").status == 403


def test_what_was_granted_can_be_taken_away(here: ScratchNamespace, robot: ScratchNamespace) -> None:
    grant(here, verbs=["list"], resources=["configmaps"])
    eventually(lambda: allowed(robot, "list", "configmaps"), True)
    here.delete(BINDINGS, "b")
    eventually(lambda: robot.api.send("GET", here.path(CONFIGMAPS)).status, 403)


def test_nobody_grants_what_he_does_not_hold(here: ScratchNamespace, robot: ScratchNamespace) -> None:
    rule = {"apiGroups": [RBAC], "resources": ["roles", "rolebindings"], "verbs": ["create", "get"]}
    here.make(ROLES, "granter", rules=[rule])
    here.make(
        BINDINGS, "granter", roleRef={"apiGroup": RBAC, "kind": "Role", "name": "granter"},
        subjects=[{"kind": "ServiceAccount", "name": "robot", "namespace": here.namespace}],
    )  # fmt: skip

    def refused() -> str:
        try:
            robot.make(ROLES, "more", rules=[{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}])
        except errors.Forbidden as error:
            return error.message
        return ""

    eventually(refused, lambda text: "attempting to grant RBAC permissions not currently held" in text)


def test_who_may_not_grant_is_refused_before_what_else_is_wrong(
    here: ScratchNamespace, robot: ScratchNamespace
) -> None:
    grant(here, verbs=["create", "update"], resources=["roles", "rolebindings"], group=RBAC)
    eventually(lambda: allowed(robot, "create", "roles", group=RBAC), True)
    rules = [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}, {"verbs": ["get"]}]
    with pytest.raises(errors.Forbidden, match="attempting to grant RBAC permissions not currently held"):
        robot.make(ROLES, "more", rules=rules)
    with pytest.raises(errors.Invalid):
        here.make(ROLES, "more", rules=rules)


def test_an_update_that_creates_needs_both_verbs(here: ScratchNamespace, robot: ScratchNamespace) -> None:
    grant(here, verbs=["update"], resources=["leases"], group="coordination.k8s.io")
    eventually(lambda: allowed(robot, "update", "leases", group="coordination.k8s.io"), True)
    path, lease = here.path(LEASES, "l"), a(LEASES, "l", spec={"holderIdentity": "me"})
    assert robot.api.send("PUT", path, lease).status == 403
    assert not here.exists(LEASES, "l")
    assert here.api.send("PUT", path, lease).status == 201
    assert here.exists(LEASES, "l")
    assert here.api.send("PUT", here.path(CONFIGMAPS, "c"), a(CONFIGMAPS, "c")).status == 404


@pytest.mark.parametrize(
    ("method", "path"), [("HEAD", "/api"), ("POST", "/version"), ("PUT", "/readyz"), ("GET", "/healthz/ping")]
)
def test_a_url_is_granted_for_its_method_and_itself(robot: ScratchNamespace, method: str, path: str) -> None:
    assert robot.api.send("GET", "/" + path.split("/")[1]).status == 200
    assert robot.api.send(method, path).status == 403


def test_the_role_of_a_binding_cannot_be_exchanged(here: ScratchNamespace) -> None:
    grant(here, verbs=["get"], resources=["pods"])
    with pytest.raises(errors.Invalid, match="roleRef"):
        here.patch(BINDINGS, "b", {"roleRef": {"name": "other"}})


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ({"apiGroups": [""], "resources": ["pods"], "verbs": []}, "verbs must contain at least one value"),
        ({"resources": ["pods"], "verbs": ["get"]}, "resource rules must supply at least one api group"),
        ({"apiGroups": [""], "verbs": ["get"]}, "resource rules must supply at least one resource"),
        ({"nonResourceURLs": ["/x"], "verbs": ["get"]}, "namespaced rules cannot apply to non-resource URLs"),
    ],
)
def test_a_rule_must_say_what_it_is_about(here: ScratchNamespace, rule: Object, why: str) -> None:
    with pytest.raises(errors.Invalid, match=why):
        here.make(ROLES, "r", rules=[rule])


def test_the_usual_cluster_roles_are_there(clusterwide: ScratchNamespace) -> None:
    assert {"cluster-admin", "admin", "edit", "view", "system:discovery"} <= set(clusterwide.names(CLUSTER_ROLES))


# Reviews -------------------------------------------------------------------------------------------------------------


def test_the_administrator_may_do_everything(here: ScratchNamespace) -> None:
    assert allowed(here, "delete", "secrets")


def test_one_can_ask_for_others(here: ScratchNamespace, account: str) -> None:
    grant(here, verbs=["get"], resources=["pods"])
    user = f"system:serviceaccount:{here.namespace}:robot"
    wanted = {"namespace": here.namespace, "verb": "get", "resource": "pods"}
    spec = {"user": user, "resourceAttributes": wanted}
    eventually(lambda: ask(here.api, "SubjectAccessReview", spec)["allowed"], True)
    spec = {"user": user, "resourceAttributes": {**wanted, "verb": "delete"}}
    assert ask(here.api, "LocalSubjectAccessReview", spec, namespace=here.namespace)["allowed"] is False


def test_rules_are_listed(here: ScratchNamespace, robot: ScratchNamespace) -> None:
    grant(here, verbs=["get"], resources=["pods"])

    def granted() -> bool:
        status = ask(robot.api, "SelfSubjectRulesReview", {"namespace": here.namespace})
        return any(rule["resources"] == ["pods"] and rule["verbs"] == ["get"] for rule in status["resourceRules"])

    eventually(granted, True)


def test_a_review_must_say_what_it_asks(here: ScratchNamespace) -> None:
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {}}
    status = here.api.refuse("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body)
    assert status["code"] == 422


@pytest.mark.parametrize("path", ["/serviceaccounts/robot/token", "/serviceaccounts/nobody/token"])
def test_a_token_is_not_asked_for_with_another_kind(here: ScratchNamespace, account: str, path: str) -> None:
    body = a(SERVICEACCOUNTS, account)
    assert here.api.send("POST", f"/api/v1/namespaces/{here.namespace}{path}", body).status == 400


def test_a_review_of_another_kind_is_refused(api: Api) -> None:
    body = {"apiVersion": f"{AUTHZ}/v1", "kind": "SubjectAccessReview", "spec": {"namespace": "default"}}
    assert api.send("POST", f"/apis/{AUTHZ}/v1/selfsubjectrulesreviews", body).status == 400


def test_the_administrator_may_act_as_another(here: ScratchNamespace) -> None:
    jane = here.api.sending(("Impersonate-User", "jane"), ("Impersonate-Group", "developers"))
    user = who(jane)
    assert user["username"] == "jane"
    assert set(user["groups"]) == {"developers", "system:authenticated"}
    assert jane.refuse("GET", here.path(CONFIGMAPS))["reason"] == "Forbidden"
    jane.close()


def test_others_may_not(here: ScratchNamespace, robot: ScratchNamespace) -> None:
    pretender = robot.api.sending(("Impersonate-User", "jane"))
    status = pretender.refuse("GET", here.path(CONFIGMAPS))
    assert status["reason"] == "Forbidden"
    assert "cannot impersonate resource" in status["message"]
    pretender.close()


@pytest.mark.parametrize("path", ["/api/v1/pods", "/apis", "/openapi/v3", "/api/v1/namespaces/default/secrets"])
def test_nobody_in_particular_sees_nothing(api: Api, path: str) -> None:
    anonymous = api.bearing(None)
    assert anonymous.send("GET", path).status in (401, 403)
    anonymous.close()


def test_service_accounts_are_named_like_subdomains(here: ScratchNamespace) -> None:
    with pytest.raises(errors.Invalid, match="metadata.name"):
        here.create(SERVICEACCOUNTS, a(SERVICEACCOUNTS, "Not_Valid"))
