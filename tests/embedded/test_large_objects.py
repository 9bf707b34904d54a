"""Large objects: the limits that they have on a cluster, and writes that others overtake while they are computed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import msgspec
import pytest

from embedded.raw import Raw, raw_client
from paddlecloud.kube.resource import Object
from paddlecloud.kube.transport import Response
from paddlecloud.local.apiserver.auth.authentication import ADMIN
from paddlecloud.local.apiserver.http.inprocess import InProcessTransport
from paddlecloud.local.apiserver.objects.admission import WriteOptions
from paddlecloud.local.apiserver.objects.large import LARGE, MAX_BUILTIN, MAX_CUSTOM
from paddlecloud.local.apiserver.registry import KindInfo
from paddlecloud.local.apiserver.schema.causes import MAX_CAUSES
from paddlecloud.local.control_plane import ControlPlane
from paddlecloud.local.proxy.node_ports import FIRST, NodePorts
from paddlecloud.local.store.record import ObjectAddress

CORE = "/api/v1/namespaces/default"
MERGE = "application/merge-patch+json"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
GROWING: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "scope": "Namespaced",
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
            "type": "object", "properties": {"spec": {"type": "array", "items": {"type": "object", "properties": {
                "text": {"type": "string", "default": "x" * 100}}}}},
        }}}],
    },
}  # fmt: skip
"""A kind whose objects grow by their defaults."""


@pytest.fixture
async def raw(inner: ControlPlane) -> AsyncIterator[Raw]:
    async with raw_client(inner) as found:
        yield found


def config(name: str, keys: int, value: str = "") -> Object:
    return {"metadata": {"name": name}, "data": {f"k{number}": value for number in range(keys)}}


def service(name: str, ports: int, **spec: Any) -> Object:
    listed = [{"name": f"p{number}", "port": number + 1} for number in range(ports)]
    return {"metadata": {"name": name}, "spec": {"ports": listed, **spec}}


@pytest.mark.parametrize("elements", [20_000, 2_000_000 // 3], ids=["a small request", "a large request"])
async def test_an_object_that_grows_beyond_the_limit_is_refused(raw: Raw, elements: int) -> None:
    made = await raw("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", GROWING)
    assert made.status == 201, made.body[:300]
    wanted = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": [{}] * elements}
    refused = await raw("POST", WIDGETS, wanted)
    assert refused.status == 413
    assert refused.json["message"].startswith("etcdserver: request is too large: the object is")
    assert f"the limit is {MAX_CUSTOM}" in refused.json["message"]
    assert (await raw("GET", f"{WIDGETS}/w")).status == 404
    fits = await raw("POST", WIDGETS, {**wanted, "spec": [{}] * 1_000})
    assert fits.status == 201, fits.body[:300]
    grown = await raw("PATCH", f"{WIDGETS}/w", {"spec": [{}] * elements}, content_type=MERGE)
    assert grown.status == 413
    assert (await raw("GET", f"{WIDGETS}/w")).json["spec"] == fits.json["spec"]


async def test_a_full_config_map_and_a_full_secret_fit(raw: Raw) -> None:
    megabyte = 1024 * 1024
    text = await raw("POST", f"{CORE}/configmaps", {"metadata": {"name": "full"}, "data": {"k": '"' * megabyte}})
    assert text.status == 201, text.body[:300]
    assert MAX_CUSTOM < len(text.body) < MAX_BUILTIN, "as JSON it is longer than etcd's limit, as protobuf it is not"
    more = await raw("POST", f"{CORE}/configmaps", {"metadata": {"name": "more"}, "data": {"k": "x" * (megabyte + 1)}})
    assert more.status == 422
    assert "Too long: may not be more than 1048576 bytes" in more.json["message"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"metadata": {"name": "x", "labels": {f"-{number}": "-" for number in range(5_000)}}},
        {"metadata": {"name": "x", "ownerReferences": [{}] * 5_000}},
        {"metadata": {"name": "x", "finalizers": ["a"] * 5_000}},
        {"metadata": {"name": "x"}, "data": {f"/{number}": "" for number in range(5_000)}},
    ],
    ids=["labels", "owners", "finalizers", "keys"],
)
async def test_a_refusal_names_what_is_wrong_and_does_not_repeat_it_thousands_of_times(raw: Raw, wrong: Object) -> None:
    refused = await raw("POST", f"{CORE}/configmaps", wrong)
    assert refused.status == 422
    assert 1 <= len(refused.json["details"]["causes"]) <= MAX_CAUSES
    assert len(refused.body) < 200_000


async def test_unknown_fields_are_named_up_to_a_number(raw: Raw) -> None:
    unknown = {"metadata": {"name": "x"}, **{f"u{number}": 1 for number in range(5_000)}}
    refused = await raw("POST", f"{CORE}/configmaps?fieldValidation=Strict", unknown)
    assert refused.status == 400
    assert refused.json["message"].count("unknown field") == MAX_CAUSES


@pytest.mark.parametrize("name", ["two\r\nlines: 1", "nothing\x00"], ids=["line break", "null"])
async def test_an_unknown_field_whose_name_fits_into_no_header_is_dropped_without_a_warning(
    raw: Raw, name: str
) -> None:
    made = await raw("POST", f"{CORE}/configmaps", {"metadata": {"name": "x"}, name: 1, "other": 1})
    assert (made.status, made.headers.get("Warning")) == (201, '299 - "unknown field \\"other\\""')


# --- changed by others while they are computed ------------------------------------------------------------------------


async def test_patches_of_one_large_object_at_the_same_time_all_hold(raw: Raw) -> None:
    made = await raw("POST", f"{CORE}/configmaps", config("shared", 20_000))
    assert len(made.body) > LARGE
    patches = [{"data": {f"new{number}": "x"}} for number in range(3)]
    replies = await asyncio.gather(
        *(raw("PATCH", f"{CORE}/configmaps/shared", patch, content_type=MERGE) for patch in patches)
    )
    assert [reply.status for reply in replies] == [200, 200, 200], [reply.body[:200] for reply in replies]
    found = (await raw("GET", f"{CORE}/configmaps/shared")).json["data"]
    assert {f"new{number}" for number in range(3)} <= found.keys()


async def test_a_warning_is_given_once_however_often_a_large_update_is_computed(raw: Raw) -> None:
    await raw("POST", f"{CORE}/configmaps", config("shared", 20_000))
    patches = [{"unheard": 1, "data": {f"new{number}": "x"}} for number in range(3)]
    replies = await asyncio.gather(
        *(raw("PATCH", f"{CORE}/configmaps/shared", patch, content_type=MERGE) for patch in patches)
    )
    given = [(reply.status, reply.headers.get("Warning")) for reply in replies]
    assert given == [(200, '299 - "unknown field \\"unheard\\""')] * 3


async def test_updates_of_one_large_object_at_the_same_time_do_not_overwrite_each_other_unseen(raw: Raw) -> None:
    made = (await raw("POST", f"{CORE}/configmaps", config("shared", 20_000))).json
    version = made["metadata"]["resourceVersion"]
    updates = []
    for number in range(2):
        update = config("shared", 20_000, str(number))
        update["metadata"]["resourceVersion"] = version
        updates.append(raw("PUT", f"{CORE}/configmaps/shared", update))
    assert sorted(reply.status for reply in await asyncio.gather(*updates)) == [200, 409]
    blind = [raw("PUT", f"{CORE}/configmaps/shared", config("shared", 20_000, f"b{number}")) for number in range(2)]
    assert [reply.status for reply in await asyncio.gather(*blind)] == [200, 200]


async def test_first_applies_of_one_large_object_at_the_same_time_both_hold(raw: Raw) -> None:
    def applied(manager: str) -> Awaitable[Any]:
        wanted = {"apiVersion": "v1", "kind": "ConfigMap", **config("applied", 20_000)}
        wanted["data"][manager] = "x"
        path = f"{CORE}/configmaps/applied?fieldManager={manager}"
        return raw("PATCH", path, wanted, content_type="application/apply-patch+yaml")

    replies = await asyncio.gather(applied("one"), applied("two"))
    assert sorted(reply.status for reply in replies) == [200, 201], [reply.body[:200] for reply in replies]
    assert {"one", "two"} <= (await raw("GET", f"{CORE}/configmaps/applied")).json["data"].keys()


def once_judged(
    platform: ControlPlane, name: str, method: str, path: str, body: Object
) -> list[asyncio.Task[Response]]:
    """Send a request when admission has asked its guards about an object of that name for the first time.

    It is answered before the object is validated: it is the next that the event loop does.
    """
    started: list[asyncio.Task[Response]] = []
    transport = InProcessTransport(platform.api, ADMIN, user_agent="test")

    def guard(_: KindInfo, obj: Object, __: Object | None, ___: WriteOptions) -> None:
        if obj["metadata"]["name"] == name and not started:
            request = transport.request(method, path, body=msgspec.json.encode(body))
            started.append(asyncio.get_running_loop().create_task(request))

    platform.admission.guards.append(guard)
    return started


async def test_a_large_object_is_not_created_in_a_namespace_that_goes_meanwhile(inner: ControlPlane, raw: Raw) -> None:
    await raw("POST", "/api/v1/namespaces", {"metadata": {"name": "brief"}})
    gone = once_judged(inner, "late", "DELETE", "/api/v1/namespaces/brief", {})
    reply = await raw("POST", "/api/v1/namespaces/brief/configmaps", config("late", 20_000))
    assert (await gone[0]).status == 200
    assert reply.status in (403, 404), reply.body[:300]
    assert inner.store.get(ObjectAddress("/configmaps", "brief", "late")) is None


async def test_a_large_service_gets_another_address_and_port_where_the_server_chose_them(
    inner: ControlPlane, raw: Raw
) -> None:
    ports = NodePorts(inner.store, "x")
    inner.admission.mutators.append(ports.assign)
    inner.admission.policies.append(ports.confirm)
    given: list[tuple[str, int]] = []
    overtaking: list[asyncio.Task[Response]] = []

    def overtake(_: KindInfo, obj: Object, __: Object | None) -> None:
        """What the server chose for the large Service is what the small one asks for, which overtakes it."""
        if obj["metadata"]["name"] == "large" and not given:
            spec = obj["spec"]
            given.append((spec["clusterIP"], spec["ports"][0]["nodePort"]))
            small = service("small", 1, type="NodePort", clusterIP=spec["clusterIP"])
            small["spec"]["ports"][0]["nodePort"] = spec["ports"][0]["nodePort"]
            request = InProcessTransport(inner.api, ADMIN, user_agent="test").request(
                "POST", f"{CORE}/services", body=msgspec.json.encode(small)
            )
            overtaking.append(asyncio.get_running_loop().create_task(request))

    inner.admission.mutators.append(overtake)
    large = service("large", 1, type="NodePort")
    large["metadata"]["labels"] = {f"k{number}": "v" for number in range(10_000)}
    reply = await raw("POST", f"{CORE}/services", large)
    small = await overtaking[0]
    assert small.status == 201, small.body[:300]
    assert reply.status == 201, reply.body[:300]
    spec = reply.json["spec"]
    assert (spec["clusterIP"] != given[0][0], spec["ports"][0]["nodePort"] != given[0][1]) == (True, True)
    assert spec["clusterIPs"] == [spec["clusterIP"]]


async def test_a_large_service_does_not_keep_what_another_got_meanwhile(inner: ControlPlane, raw: Raw) -> None:
    ports = NodePorts(inner.store, "x")
    inner.admission.mutators.append(ports.assign)
    inner.admission.policies.append(ports.confirm)
    address = (await raw("POST", f"{CORE}/services", service("first", 1))).json["spec"]["clusterIP"]
    await raw("DELETE", f"{CORE}/services/first")
    for name, wanted in (("address", {"clusterIP": address}), ("port", {"type": "NodePort"})):
        small, large = service(f"small-{name}", 1, **wanted), service(f"large-{name}", 1, **wanted)
        large["metadata"]["labels"] = {f"k{number}": "v" for number in range(10_000)}
        if name == "port":
            small["spec"]["ports"][0]["nodePort"] = large["spec"]["ports"][0]["nodePort"] = FIRST + 7
        made = once_judged(inner, large["metadata"]["name"], "POST", f"{CORE}/services", small)
        reply = await raw("POST", f"{CORE}/services", large)
        assert (await made[0]).status == 201, (await made[0]).body[:300]
        assert reply.status == 422, reply.body[:300]
        assert "already allocated" in reply.json["message"]
