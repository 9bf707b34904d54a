"""What every cluster has from the start, and what pods find of it: namespaces, the API's own Service, accounts."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from embedded.raw import Raw, raw_client
from harness import eventually
from paddlecloud.kube import errors
from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import FakeClock
from paddlecloud.kube.resource import NAMESPACES, PODS, SERVICEACCOUNTS, SERVICES, Resource
from paddlecloud.local.control_plane import ControlPlane
from paddlecloud.local.kubelet.pod.service_account import api_tokens

SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"


@pytest.fixture
async def raw(inner: ControlPlane) -> AsyncIterator[Raw]:
    async with raw_client(inner) as found:
        yield found


async def existing(client: Client, resource: Resource, name: str, namespace: str | None = None) -> dict[str, Any]:
    async def look() -> Any:
        try:
            return await client.get(resource, name, namespace)
        except errors.NotFound:
            return None

    found: dict[str, Any] = await eventually(look)
    return found


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
async def test_namespaces_everything_rests_on_cannot_be_deleted(client: Client, name: str) -> None:
    with pytest.raises(errors.Forbidden, match=f'namespaces "{name}" is forbidden: this namespace may not be deleted'):
        await client.delete(NAMESPACES, name)
    assert (await client.get(NAMESPACES, name))["status"]["phase"] == "Active"


async def test_the_namespace_of_node_leases_comes_back_when_it_is_deleted(client: Client) -> None:
    before = await client.get(NAMESPACES, "kube-node-lease")
    await client.delete(NAMESPACES, "kube-node-lease")

    async def made_again() -> bool:
        try:
            found = await client.get(NAMESPACES, "kube-node-lease")
        except errors.NotFound:
            return False
        return bool(found["metadata"]["uid"] != before["metadata"]["uid"])

    await eventually(made_again)
    assert (await client.get(NAMESPACES, "kube-node-lease"))["status"]["phase"] == "Active"


async def test_the_api_has_a_service_that_leads_to_it_and_comes_back(client: Client, inner: ControlPlane) -> None:
    service = await existing(client, SERVICES, "kubernetes", "default")
    assert service["spec"]["clusterIP"].startswith("127.")
    assert service["spec"]["ports"] == [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": inner.port}]
    piece = await existing(client, SLICES, "kubernetes", "default")
    assert piece["endpoints"][0]["addresses"] == ["127.0.0.1"]
    assert piece["ports"][0]["port"] == inner.port

    await client.delete(SERVICES, "kubernetes", namespace="default")
    again = await existing(client, SERVICES, "kubernetes", "default")
    assert again["metadata"]["uid"] != service["metadata"]["uid"]
    assert again["spec"]["clusterIP"] == service["spec"]["clusterIP"]


async def test_services_get_addresses_of_their_own(client: Client) -> None:
    own = (await existing(client, SERVICES, "kubernetes", "default"))["spec"]["clusterIP"]
    seen = {own}
    for number in range(5):
        body = {"metadata": {"name": f"s{number}"}, "spec": {"ports": [{"port": 80}]}}
        seen.add((await client.create(SERVICES, body, namespace="default"))["spec"]["clusterIP"])
    assert len(seen) == 6
    assert {address.rsplit(".", 2)[0] for address in seen} == {own.rsplit(".", 2)[0]}


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("127.0.0.1", "is not in the valid range. The range of valid IPs is 127."),
        ("10.0.0.1", "is not in the valid range"),
        ("taken", "provided IP is already allocated"),
    ],
)
async def test_a_service_has_no_address_of_the_machine_or_of_another(client: Client, address: str, why: str) -> None:
    """The proxy would listen there, in the place of the program that does."""
    other = {"metadata": {"name": "victim"}, "spec": {"ports": [{"port": 80}]}}
    taken = (await client.create(SERVICES, other, namespace="default"))["spec"]["clusterIP"]
    chosen = taken if address == "taken" else address
    body = {"metadata": {"name": "thief"}, "spec": {"clusterIP": chosen, "ports": [{"port": 80}]}}
    with pytest.raises(errors.Invalid, match=re.escape(f"failed to allocate IP {chosen}: ") + f".*{re.escape(why)}"):
        await client.create(SERVICES, body, namespace="kube-system")
    await client.delete(SERVICES, "victim", namespace="default")
    if address == "taken":
        made = await client.create(SERVICES, body, namespace="kube-system")
        assert made["spec"]["clusterIP"] == taken, "an address that is free again may be chosen"


def pod(name: str = "p", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "i"}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}


NAMESPACE_FILE = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}


async def test_a_pod_gets_its_token_volume_in_every_container(client: Client) -> None:
    body = pod(initContainers=[{"name": "first", "image": "i"}])
    made = await client.create(PODS, body, namespace="default")
    [volume] = made["spec"]["volumes"]
    assert volume["name"].startswith("kube-api-access-")
    assert volume["projected"] == {
        "defaultMode": 420,
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [NAMESPACE_FILE]}},
        ],
    }
    for container in (*made["spec"]["containers"], *made["spec"]["initContainers"]):
        [mount] = container["volumeMounts"]
        assert mount == {"name": volume["name"], "readOnly": True, "mountPath": TOKEN_PATH}


ACCOUNT = {"metadata": {"name": "quiet"}, "automountServiceAccountToken": False}
OWN = [{"name": "mine", "mountPath": TOKEN_PATH}]


@pytest.mark.parametrize(
    ("spec", "volumes"),
    [
        ({"automountServiceAccountToken": False}, 0),
        ({"serviceAccountName": "quiet"}, 0),
        ({"serviceAccountName": "quiet", "automountServiceAccountToken": True}, 1),
        (
            {
                "containers": [{"name": "c", "image": "i", "volumeMounts": OWN}],
                "volumes": [{"name": "mine", "emptyDir": {}}],
            },
            1,
        ),
    ],
    ids=["pod says no", "account says no", "the pod takes precedence", "mounts its own"],
)
async def test_who_decides_on_the_token(client: Client, spec: dict[str, Any], volumes: int) -> None:
    await client.create(SERVICEACCOUNTS, ACCOUNT, namespace="default")
    made = await client.create(PODS, pod(**spec), namespace="default")
    assert len(made["spec"].get("volumes", [])) == volumes


async def test_a_pod_of_an_unknown_account_is_refused(client: Client) -> None:
    with pytest.raises(errors.Forbidden, match=r'service account default/who: serviceaccount "who" not found'):
        await client.create(PODS, pod(serviceAccountName="who"), namespace="default")


async def test_the_token_of_a_pod_is_its_accounts_and_ends_with_it(
    client: Client, raw: Raw, inner: ControlPlane, clock: FakeClock
) -> None:
    await existing(client, SERVICEACCOUNTS, "default", "default")
    made = await client.create(PODS, pod(), namespace="default")
    token = await api_tokens(client)(made, "", 3607)

    async def whoami() -> tuple[int, Any]:
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        reply = await raw("POST", path, review, token=token)
        return reply.status, reply.json

    status, body = await whoami()
    assert status == 201
    assert body["status"]["userInfo"]["username"] == "system:serviceaccount:default:default"
    assert body["status"]["userInfo"]["extra"]["authentication.kubernetes.io/pod-name"] == ["p"]
    await clock.advance(2 * 3600)  # programs that read their token once still work after the time they asked for
    assert (await whoami())[0] == 201
    await client.delete(PODS, "p", namespace="default")
    assert (await whoami())[0] == 401


PROGRAM = """
import json, os, ssl, urllib.request
place = "/var/run/secrets/kubernetes.io/serviceaccount/"
url = "https://%s:%s" % (os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"])
headers = {"Authorization": "Bearer " + open(place + "token").read(), "Content-Type": "application/json"}
body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
request = urllib.request.Request(
    url + "/apis/authentication.k8s.io/v1/selfsubjectreviews", json.dumps(body).encode(), headers)
tls = ssl.create_default_context(cafile=place + "ca.crt")
answer = json.load(urllib.request.urlopen(request, context=tls))
print(json.dumps([open(place + "namespace").read(), answer["status"]["userInfo"]["username"]]))
"""


def test_a_program_in_a_pod_reaches_the_api_as_itself(kubectl: Callable[..., Any], namespace: str) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        **pod(
            "caller",
            restartPolicy="Never",
            containers=[{"name": "c", "image": "python", "command": ["python3", "-c", PROGRAM]}],
        ),
    }
    kubectl("apply", "-f", "-", input=json.dumps(body))
    kubectl("wait", "pod/caller", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=60s")
    logs = kubectl("logs", "caller")
    assert json.loads(logs.stdout) == [namespace, f"system:serviceaccount:{namespace}:default"]
