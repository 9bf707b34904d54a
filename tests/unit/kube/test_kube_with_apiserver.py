"""The whole runtime against a real API server, in process and over HTTPS: what its parts promise holds together."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from harness import PATIENCE, eventually
from paddlecloud.kube.cache import by_owner, owned_by
from paddlecloud.kube.client import Client
from paddlecloud.kube.config import Config
from paddlecloud.kube.credentials import Credential, Static
from paddlecloud.kube.errors import AlreadyExists, Conflict, NotFound, Unauthorized
from paddlecloud.kube.events import EventRecorder
from paddlecloud.kube.expectations import Expectations
from paddlecloud.kube.http import HttpTransport
from paddlecloud.kube.lease import Elector
from paddlecloud.kube.manager import Manager
from paddlecloud.kube.metered import MeteredTransport
from paddlecloud.kube.metrics import Registry
from paddlecloud.kube.plan import Delete, Plan, PlannedEvent, carry_out
from paddlecloud.kube.resource import CONFIGMAPS, EVENTS, LEASES, PODS, SECRETS, Key, Object
from paddlecloud.kube.stdlib import StdlibTransport, drive, drive_iter
from paddlecloud.local.control_plane import ControlPlane


@pytest.fixture
async def platform(tmp_path: Path) -> AsyncIterator[ControlPlane]:
    running = ControlPlane(tmp_path / "data", seed=1)
    await running.start()
    yield running
    await running.stop()


def config_of(platform: ControlPlane) -> Config:
    pki = platform.data / "pki"
    token = (pki / "admin.token").read_text().strip()
    return Config(
        f"https://127.0.0.1:{platform.port}",
        ca=platform.certs.ca_cert.read_bytes(),
        source=Static(Credential(f"Bearer {token}")),
    )


@pytest.fixture(params=["in process", "https"])
async def client(request: pytest.FixtureRequest, platform: ControlPlane) -> AsyncIterator[Client]:
    made = platform.client() if request.param == "in process" else Client(HttpTransport(config_of(platform)))
    yield made
    await made.close()


def configmap(name: str, **data: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": data,
    }


async def test_the_verbs_mean_what_they_say(client: Client) -> None:
    created = await client.create(CONFIGMAPS, configmap("c", a="1"))
    with pytest.raises(AlreadyExists):
        await client.create(CONFIGMAPS, configmap("c"))
    patched = await client.patch(CONFIGMAPS, "c", {"data": {"b": "2"}}, namespace="default")
    assert patched["data"] == {"a": "1", "b": "2"}
    with pytest.raises(Conflict):
        await client.update(CONFIGMAPS, {**created, "data": {}})
    applied = await client.patch(CONFIGMAPS, "c", configmap("c", b="3"), namespace="default", kind="apply", force=True)
    assert applied["data"]["b"] == "3"
    with pytest.raises(Conflict):
        await client.delete(CONFIGMAPS, "c", namespace="default", uid="somebody else")
    await client.delete(CONFIGMAPS, "c", namespace="default", uid=created["metadata"]["uid"])
    with pytest.raises(NotFound):
        await client.get(CONFIGMAPS, "c", "default")


async def test_lists_are_paged_and_discovery_finds_kinds(client: Client) -> None:
    for n in range(5):
        await client.create(CONFIGMAPS, configmap(f"c{n}"))
    listed = await client.list(CONFIGMAPS, "default", field_selector="metadata.name!=c4", limit=2)
    assert {"c0", "c1", "c2", "c3"} <= {item["metadata"]["name"] for item in listed.items}
    assert "c4" not in {item["metadata"]["name"] for item in listed.items}
    discovery = await client.discover()
    assert (discovery.find("po"), discovery.find("cm"), discovery.find("Secret")) == (PODS, CONFIGMAPS, SECRETS)


class Sets:
    """A small controller: a ConfigMap labelled as a set asks for `data.replicas` others, which it then owns."""

    def __init__(self, client: Client, *, elector: Elector | None = None) -> None:
        self.client = client
        self.manager = Manager(client, elector=elector)
        self.expectations = Expectations()
        self.recorder = EventRecorder(client, component="sets")
        self.sets = self.manager.informer(CONFIGMAPS, label_selector="role=set")
        self.members = self.manager.informer(CONFIGMAPS, label_selector="role=member", indexers={"owner": by_owner})
        controller = self.manager.controller("sets", self.reconcile)
        controller.watch(self.sets, expectations=self.expectations)
        controller.watch_owned(self.members, owner_kind="ConfigMap", expectations=self.expectations)

    async def reconcile(self, key: Key) -> float | None:
        owner = self.sets.cache.get(key)
        if owner is None or "deletionTimestamp" in owner["metadata"]:
            self.expectations.forget(key)
            return None
        if (wait := self.expectations.pending(key)) is not None:
            return wait
        plan = self.decide(owner, self.members.cache.by_index("owner", owned_by(owner)))
        await carry_out(plan, self.client, owner=owner, recorder=self.recorder, expectations=self.expectations)
        return plan.after

    def decide(self, owner: Object, members: list[Object]) -> Plan:
        meta, plan = owner["metadata"], Plan()
        wanted = {f"{meta['name']}-{n}" for n in range(int(owner["data"]["replicas"]))}
        found = {member["metadata"]["name"]: member["metadata"]["uid"] for member in members}
        ref = {"apiVersion": "v1", "kind": "ConfigMap", "name": meta["name"], "uid": meta["uid"], "controller": True}
        for name in sorted(wanted - found.keys()):
            member = configmap(name)
            member["metadata"] |= {"labels": {"role": "member"}, "ownerReferences": [ref]}
            plan.create.append(member)
        plan.delete = [Delete(CONFIGMAPS, n, "default", uid=found[n]) for n in sorted(found.keys() - wanted)]
        if plan.create:
            plan.events.append(PlannedEvent("Created", f"created {len(plan.create)} members"))
        return plan

    def names(self) -> set[str]:
        return {key.name for key in self.members.cache}


async def make_set(client: Client, replicas: int) -> None:
    owner = configmap("s", replicas=str(replicas))
    owner["metadata"]["labels"] = {"role": "set"}
    await client.create(CONFIGMAPS, owner)


async def test_a_controller_reaches_and_keeps_what_is_asked_for_without_a_write_too_many(client: Client) -> None:
    registry = Registry()
    metered = Client(MeteredTransport(client.transport, registry))
    requests = registry.counter("paddlecloud_api_requests_total", "", ("method", "code"))
    sets = Sets(metered)
    async with sets.manager:
        await make_set(client, 40)
        await eventually(lambda: len(sets.names()) == 40, what="40 members")
        await eventually(lambda: requests.value("POST", "201") == 41, what="40 members and one event")
        await client.delete(CONFIGMAPS, "s-7", namespace="default")
        await eventually(lambda: requests.value("POST", "201") == 43, what="the lost member and its event")
        await client.patch(CONFIGMAPS, "s", {"data": {"replicas": "3"}}, namespace="default")
        await eventually(lambda: sets.names() == {"s-0", "s-1", "s-2"}, what="3 members")
    assert requests.value("POST", "409") == 0, "something was created twice"
    assert requests.value("DELETE", "200") == 37
    events = (await client.list(EVENTS, "default", field_selector="involvedObject.name=s")).items
    assert sorted(e["message"] for e in events) == ["created 1 members", "created 40 members"]


async def test_a_controller_that_starts_late_finds_everything_there(client: Client) -> None:
    await make_set(client, 3)
    first = Sets(client)
    async with first.manager:
        await eventually(lambda: len(first.names()) == 3, what="3 members")
    await client.delete(CONFIGMAPS, "s-1", namespace="default")
    second = Sets(client)
    async with second.manager:
        await eventually(lambda: second.names() == {"s-0", "s-1", "s-2"}, what="the member lost while nobody watched")


async def test_of_two_replicas_the_second_takes_over_when_the_first_stops(client: Client) -> None:
    def replica(name: str) -> Sets:
        elector = Elector(client, name="sets", namespace="default", identity=name, retry=0.05)
        return Sets(client, elector=elector)

    first, second = replica("first"), replica("second")
    async with contextlib.AsyncExitStack() as stack:
        await first.manager.start()
        await eventually(lambda: "\npaddlecloud_leader 1\n" in first.manager.metrics.render(), what="a leader")
        await stack.enter_async_context(second.manager)
        await first.manager.stop()
        await make_set(client, 2)
        await eventually(lambda: len(second.names()) == 2, what="the second works")
        lease = await client.get(LEASES, "sets", "default")
        assert lease["spec"]["holderIdentity"] == "second"
        assert lease["spec"]["leaseTransitions"] == 1


async def test_a_wrong_token_is_refused_by_type(platform: ControlPlane) -> None:
    config = config_of(platform)
    config.source = Static(Credential("Bearer wrong"))
    client = Client(HttpTransport(config))
    with pytest.raises(Unauthorized):
        await client.get(PODS, "x", "default")
    await client.close()


async def test_the_same_client_works_without_an_event_loop(platform: ControlPlane) -> None:
    def as_the_cli_does() -> tuple[list[str], str]:
        client = Client(StdlibTransport(config_of(platform)))
        version = drive(client.list(CONFIGMAPS, "default")).resource_version
        drive(client.create(CONFIGMAPS, configmap("c")))
        drive(client.patch(CONFIGMAPS, "c", {"data": {"a": "b"}}, namespace="default"))
        drive(client.delete(CONFIGMAPS, "c", namespace="default"))
        kinds = []
        events = drive_iter(
            client.watch(CONFIGMAPS, "default", resource_version=version, field_selector="metadata.name=c", timeout=30)
        )
        for event in events:
            kinds.append(event.type)
            if event.type == "DELETED":
                break
        events.close()
        found = drive(client.discover()).find("deploy").kind
        drive(client.close())
        return kinds, found

    kinds, found = await asyncio.wait_for(asyncio.to_thread(as_the_cli_does), PATIENCE)
    assert kinds == ["ADDED", "MODIFIED", "DELETED"]
    assert found == "Deployment"
