"""Parts of the API server that only show their effect when they are plugged in: each test fails without its wire."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from embedded.raw import Raw, raw_client
from harness import eventually
from paddlecloud.kube import errors
from paddlecloud.kube.client import Client
from paddlecloud.kube.resource import NODES, PODS, SERVICEACCOUNTS, Resource
from paddlecloud.local.control_plane import ControlPlane
from paddlecloud.local.workloads.metrics.api import serve_metrics

QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")
RANGES = Resource("", "v1", "limitranges", "LimitRange")
CLUSTERROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)
RBAC = "/apis/rbac.authorization.k8s.io/v1"


@pytest.fixture
async def raw(inner: ControlPlane) -> AsyncIterator[Raw]:
    async with raw_client(inner) as found:
        yield found


def pod(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


async def test_a_quota_refuses_what_exceeds_it_and_shows_what_is_used(client: Client) -> None:
    await client.create(QUOTAS, {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "1"}}}, namespace="default")
    await client.create(PODS, pod("first"), namespace="default")
    with pytest.raises(errors.Forbidden, match=r'"second" is forbidden: exceeded quota: few'):
        await client.create(PODS, pod("second"), namespace="default")

    async def used() -> Any:
        return (await client.get(QUOTAS, "few", "default")).get("status", {}).get("used")

    await eventually(used, {"pods": "1"})


async def test_a_limit_range_gives_pods_their_defaults(client: Client) -> None:
    limits = [{"type": "Container", "default": {"memory": "64Mi"}, "defaultRequest": {"memory": "32Mi"}}]
    await client.create(RANGES, {"metadata": {"name": "small"}, "spec": {"limits": limits}}, namespace="default")
    made = await client.create(PODS, pod("p"), namespace="default")
    resources = made["spec"]["containers"][0]["resources"]
    assert resources == {"limits": {"memory": "64Mi"}, "requests": {"memory": "32Mi"}}
    assert made["status"]["qosClass"] == "Burstable"


async def test_aggregated_roles_show_their_rules(client: Client) -> None:
    async def groups() -> bool:
        role = await client.get(CLUSTERROLES, "admin")
        return any("apps" in rule["apiGroups"] for rule in role.get("rules") or ())

    await eventually(groups, True)


ROLE_WRITER = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "role-writer"},
    "rules": [
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["*"], "verbs": ["create", "update", "patch"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
    ],
}


async def test_nobody_grants_what_they_do_not_hold(raw: Raw) -> None:
    assert (await raw("POST", f"{RBAC}/clusterroles", ROLE_WRITER)).status == 201
    binding = {
        "kind": "ClusterRoleBinding",
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "metadata": {"name": "alice"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "role-writer"},
        "subjects": [{"kind": "User", "name": "alice", "apiGroup": "rbac.authorization.k8s.io"}],
    }
    assert (await raw("POST", f"{RBAC}/clusterrolebindings", binding)).status == 201

    grab = {**binding, "metadata": {"name": "grab"}, "roleRef": {**binding["roleRef"], "name": "cluster-admin"}}
    refused = await raw.as_user("alice", method="POST", path=f"{RBAC}/clusterrolebindings", body=grab)
    assert refused.status == 403
    assert "attempting to grant RBAC permissions not currently held" in refused.json["message"]

    more = {**ROLE_WRITER, "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]}
    refused = await raw.as_user("alice", method="PUT", path=f"{RBAC}/clusterroles/role-writer", body=more)
    assert refused.status == 403
    held = {
        "kind": "Role",
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "metadata": {"name": "held"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    }
    allowed = await raw.as_user("alice", method="POST", path=f"{RBAC}/namespaces/default/roles", body=held)
    assert allowed.status == 201


async def test_every_impersonated_group_counts(raw: Raw) -> None:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    reply = await raw.as_user("bob", "one", "two", method="POST", path=path, body=review)
    assert reply.status == 201
    assert reply.json["status"]["userInfo"] == {"username": "bob", "groups": ["one", "two", "system:authenticated"]}


@pytest.mark.parametrize("token", [None, "wrong", "a.b.c"])
async def test_requests_that_were_not_let_in_are_in_the_audit_log(
    raw: Raw, inner: ControlPlane, token: str | None
) -> None:
    reply = await raw("GET", "/api/v1/namespaces/default/secrets/s", token=token)
    assert (reply.status, reply.json["reason"]) == (401, "Unauthorized")
    inner.audit.flush()
    last = json.loads((inner.data / "audit.log").read_text().splitlines()[-1])
    assert last["responseStatus"]["code"] == 401
    assert last["objectRef"]["resource"] == "secrets"
    assert last["user"]["username"] == "system:anonymous"


async def test_the_audit_log_names_who_acted_and_as_whom(raw: Raw, inner: ControlPlane) -> None:
    await raw.as_user("jane", "dev", method="GET", path="/api/v1/namespaces/default/secrets/s")
    inner.audit.flush()
    last = json.loads((inner.data / "audit.log").read_text().splitlines()[-1])
    assert last["user"]["username"] == "kubernetes-admin"
    assert "system:masters" in last["user"]["groups"]
    assert last["impersonatedUser"] == {"username": "jane", "groups": ["dev", "system:authenticated"]}
    assert last["responseStatus"]["code"] == 403
    await raw("GET", "/api/v1/namespaces/default/secrets/s")
    inner.audit.flush()
    last = json.loads((inner.data / "audit.log").read_text().splitlines()[-1])
    assert "impersonatedUser" not in last


async def test_others_can_verify_tokens_by_the_published_keys(raw: Raw, client: Client) -> None:
    assert (await raw("GET", "/openid/v1/jwks", token=None)).status == 401

    async def account() -> bool:
        return any(a["metadata"]["name"] == "default" for a in (await client.list(SERVICEACCOUNTS, "default")).items)

    await eventually(account, True)
    path = "/api/v1/namespaces/default/serviceaccounts/default/token"
    token = (await raw("POST", path, {"spec": {}})).json["status"]["token"]
    configuration = (await raw("GET", "/.well-known/openid-configuration", token=token)).json
    assert configuration["jwks_uri"] == f"{raw.url}/openid/v1/jwks"
    keys = await raw("GET", "/openid/v1/jwks", token=token)
    assert keys.headers["Content-Type"] == "application/jwk-set+json"
    header = json.loads(_decode(token.split(".")[0]))
    assert [key["kid"] for key in keys.json["keys"]] == [header["kid"]]
    assert configuration["issuer"] == json.loads(_decode(token.split(".")[1]))["iss"]


def _decode(part: str) -> bytes:
    import base64

    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


async def test_metrics_show_requests_watchers_and_the_store(raw: Raw, inner: ControlPlane) -> None:
    before = inner.store.revision
    await raw("GET", "/api/v1/namespaces/default/pods/none")
    await raw("GET", "/api/v1/namespaces/default/pods/none")
    await raw("GET", "/apis/no.such.group/v1/inventions/x")
    reply = await raw("GET", "/metrics")
    assert reply.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    text = reply.body.decode()
    pods = 'verb="GET",group="",version="v1",resource="pods",subresource=""'
    assert f'apiserver_request_total{{{pods},code="404"}} 2' in text
    assert f"apiserver_request_duration_seconds_count{{{pods}}} 2" in text
    assert "inventions" not in text
    reported = re.search(r"^apiserver_storage_revision (\d+)$", text, re.MULTILINE)
    assert reported is not None
    assert before <= int(reported[1]) <= inner.store.revision
    assert 'apiserver_storage_objects{resource="namespaces"} 4' in text
    for name in ("apiserver_registered_watchers", "apiserver_watchers_dropped 0", "apiserver_audit_dropped 0"):
        assert f"\n{name}" in text
    assert (await raw("GET", "/metrics", token=None)).status == 401
    assert (await raw.as_user("nobody", method="GET", path="/metrics")).status == 403


async def test_metrics_of_one_name_are_a_list_of_that_name(raw: Raw, inner: ControlPlane, client: Client) -> None:
    """Kinds that are answered, not stored, select by the name that the request was authorised for."""
    serve_metrics(inner)
    for name in ("a", "b"):
        await client.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    reply = await raw("GET", "/apis/metrics.k8s.io/v1beta1/nodes?fieldSelector=metadata.name=a")
    assert (reply.status, reply.json["kind"]) == (200, "NodeMetricsList")
    assert [item["metadata"]["name"] for item in reply.json["items"]] == ["a"]
