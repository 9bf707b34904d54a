"""A tenant from its Profile to the end: rights, quota and people; what it must not take, and what stays of its data."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from harness import Kubectl, Target, until

from .hands import read

pytestmark = [pytest.mark.core, pytest.mark.timeout(300), pytest.mark.usefixtures("operators")]

READY = "jsonpath={.status.conditions[?(@.type=='Ready')]['status','reason']}"


@pytest.fixture(autouse=True)
def controller(server: Target, operators: None) -> Iterator[None]:
    if server.embedded:
        yield
        return
    from cluster.operators import upgraded

    with upgraded(server, tenants__enabled="true"):
        yield


@pytest.fixture
def name(kubectl: Kubectl, namespace: str) -> Iterator[str]:
    name = f"{namespace}-t"
    yield name
    kubectl("delete", "profile", name, "--ignore-not-found", "--timeout=50s")  # its controller goes next
    kubectl("delete", "namespace", name, "--ignore-not-found", "--wait=false")


def profile(name: str, owner: str = "ada", **spec: Any) -> str:
    kind = {"apiVersion": "kubeflow.org/v1", "kind": "Profile", "metadata": {"name": name}}
    return json.dumps({**kind, "spec": {"owner": {"kind": "User", "name": owner}, **spec}})


def claim(name: str) -> str:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    kind = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}}
    return json.dumps({**kind, "spec": spec})


class Tenant:
    def __init__(self, kubectl: Kubectl, name: str) -> None:
        self._kubectl, self.name = kubectl, name

    def apply(self, **spec: Any) -> None:
        self._kubectl("apply", "-f", "-", input=profile(self.name, **spec))

    def awaits(self, state: str) -> None:
        until(lambda: self._kubectl("get", "profile", self.name, "-o", READY).stdout == state, timeout=60, every=0.2)

    def may(self, who: str, *words: str, where: str = "") -> bool:
        done = self._kubectl("auth", "can-i", *words, "-n", where or self.name, "--as", who, check=False)
        return done.stdout.strip() == "yes"

    def token(self, account: str) -> str:
        return self._kubectl("create", "token", account, "-n", self.name, "--duration=1h").stdout.strip()

    def knows(self, token: str) -> bool:
        """Whether the API server still takes it for a user."""
        kind = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        done = self._kubectl("create", "-f", "-", "-o", "json", input=json.dumps(kind))
        return bool(json.loads(done.stdout)["status"].get("authenticated"))


@pytest.fixture
def tenant(kubectl: Kubectl, name: str) -> Tenant:
    return Tenant(kubectl, name)


def test_its_people_work_in_the_namespace_and_nowhere_else(kubectl: Kubectl, namespace: str, tenant: Tenant) -> None:
    bob = {"kind": "User", "name": "bob", "role": "view"}
    tenant.apply(resourceQuotaSpec={"hard": {"pods": "3", "requests.cpu": "1000m"}}, contributors=[bob])
    tenant.awaits("True Done")
    editor = f"system:serviceaccount:{tenant.name}:default-editor"
    for who in ("ada", editor):
        assert tenant.may(who, "create", "paddlejobs.batch.paddlepaddle.org")
        assert not tenant.may(who, "list", "pods", where=namespace)
        assert not tenant.may(who, "create", "profiles.kubeflow.org")
        for kind in ("resourcequotas", "limitranges", "rolebindings.rbac.authorization.k8s.io"):
            assert not tenant.may(who, "delete", kind), kind
    assert tenant.may("bob", "list", "samplesets.batch.paddlepaddle.org")
    assert not tenant.may("bob", "create", "pods")
    assert not tenant.may("bob", "get", "secrets")

    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "plain"}}
    container = {"name": "main", "image": "busybox", "command": ["true"]}
    pod["spec"] = {"nodeSelector": {"tenants": "nowhere"}, "containers": [container]}
    kubectl("create", "-n", tenant.name, "--as", "ada", "-f", "-", input=json.dumps(pod))
    made = read(kubectl, "pod", "plain", "-n", tenant.name)["spec"]["containers"][0]
    assert made["resources"]["requests"] == {"cpu": "100m"}, "the quota would have refused it"
    queue = read(kubectl, "queues.scheduling.volcano.sh", tenant.name)["spec"]
    assert (queue["weight"], queue["capability"]) == (1, {"cpu": "1"})

    kubectl("delete", "rolebinding", "tenant-owner", "-n", tenant.name)
    until(lambda: tenant.may("ada", "create", "pods"), timeout=30, every=0.2)
    tenant.apply(resourceQuotaSpec={"hard": {"pods": "0"}})
    until(lambda: not tenant.may("bob", "list", "pods"), timeout=30, every=0.2)
    until(lambda: "pods 1 of 0" in kubectl("get", "profile", tenant.name, "-o", "wide").stdout, timeout=30, every=0.2)


def test_a_namespace_of_somebody_else_is_refused_until_it_is_handed_over(kubectl: Kubectl, tenant: Tenant) -> None:
    kubectl("create", "namespace", tenant.name)
    tenant.apply()
    tenant.awaits("False NamespaceTaken")
    assert not tenant.may("ada", "list", "pods")
    kubectl("annotate", "namespace", tenant.name, "owner=ada")
    tenant.awaits("True Done")
    assert tenant.may("ada", "create", "pods")


def test_tokens_of_those_who_were_there_before_give_no_rights_of_the_next_tenant(
    kubectl: Kubectl, tenant: Tenant
) -> None:
    """Also where they keep their account from being deleted, and take its label off."""
    kubectl("create", "namespace", tenant.name)
    kubectl("create", "serviceaccount", "default-editor", "-n", tenant.name)
    tokens = [tenant.token("default-editor")]
    kubectl("annotate", "namespace", tenant.name, "owner=ada")
    tenant.apply()
    tenant.awaits("True Done")
    tokens.append(tenant.token("default-editor"))
    kept = {"finalizers": ["tenant.example/stays"], "labels": None, "ownerReferences": None}
    patch = ("patch", "serviceaccount", "default-editor", "-n", tenant.name, "--as", "ada", "-p")
    kubectl(*patch, json.dumps({"metadata": kept}))
    kubectl("delete", "profile", tenant.name, "--timeout=60s")
    kubectl("annotate", "namespace", tenant.name, "--overwrite", "owner=grace")
    tenant.apply(owner="grace")
    tenant.awaits("True Done")
    for token in tokens:
        until(lambda token=token: not tenant.knows(token), timeout=30, every=0.2)  # API servers remember it for seconds


@pytest.mark.parametrize("cascade", ["background", "foreground"])
def test_data_outlives_the_profile_and_its_owner_gets_it_back(kubectl: Kubectl, tenant: Tenant, cascade: str) -> None:
    tenant.apply()
    tenant.awaits("True Done")
    kubectl("create", "-n", tenant.name, "--as", "ada", "-f", "-", input=claim("work"))
    kubectl("delete", "profile", tenant.name, f"--cascade={cascade}", "--timeout=60s")
    until(lambda: not tenant.may("ada", "list", "pods"), timeout=30, every=0.2)
    assert read(kubectl, "pvc", "work", "-n", tenant.name)["metadata"].get("deletionTimestamp") is None
    refused = kubectl("run", "late", "--image=busybox", "-n", tenant.name, check=False)
    assert "exceeded quota: tenant-closed" in refused.stderr

    tenant.apply(owner="mallory")
    tenant.awaits("False NamespaceTaken")
    tenant.apply(owner="ada", deletionPolicy="Delete")
    tenant.awaits("True Done")
    assert tenant.may("ada", "get", "persistentvolumeclaims")
    kubectl("delete", "profile", tenant.name, "--timeout=120s")
    assert kubectl("get", "namespace", tenant.name, "--ignore-not-found").stdout == ""


def test_what_a_profile_must_not_say_is_refused_or_reported(kubectl: Kubectl, tenant: Tenant) -> None:
    for spec, text in (
        ({"contributors": [{"kind": "User", "name": "eve", "role": "cluster-admin"}]}, "spec.contributors[0].role"),
        ({"queue": {"weight": 0}}, "spec.queue.weight"),
        ({"deletionPolicy": "Perhaps"}, "spec.deletionPolicy"),
    ):
        done = kubectl("create", "-f", "-", input=profile(tenant.name, **spec), check=False)
        assert (done.returncode, text in done.stderr) == (1, True), done.stderr
    tenant.apply(owner="system:anonymous")
    tenant.awaits("False InvalidSpec")
    assert kubectl("get", "namespace", tenant.name, "--ignore-not-found").stdout == ""
    robot = {"kind": "ServiceAccount", "name": "robot", "namespace": "default"}
    kubectl("apply", "-f", "-", input=json.dumps({**json.loads(profile(tenant.name)), "spec": {"owner": robot}}))
    tenant.awaits("True Done")
    assert "system:serviceaccount:default:robot does not exist" in json.dumps(read(kubectl, "profile", tenant.name))
