"""Owner references: what goes with its owner, what stays, and in which order."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from harness import eventually
from paddlecloud.kube import errors
from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import FakeClock
from paddlecloud.kube.resource import CONFIGMAPS, NAMESPACES, SECRETS, Object
from paddlecloud.local.apiserver.housekeeping.garbage import GarbageCollector
from paddlecloud.local.control_plane import ControlPlane
from paddlecloud.local.store.log import Op
from paddlecloud.local.store.record import ObjectAddress
from paddlecloud.local.store.watch import Change

NS = "default"


def configmap(name: str, *owners: Object, block: bool = True, finalizers: tuple[str, ...] = ()) -> Object:
    refs = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": o["metadata"]["name"], "uid": o["metadata"]["uid"],
         "blockOwnerDeletion": block}
        for o in owners
    ]  # fmt: skip
    meta: Object = {"name": name, "namespace": NS}
    if refs:
        meta["ownerReferences"] = refs
    if finalizers:
        meta["finalizers"] = list(finalizers)
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}


async def names(client: Client) -> set[str]:
    listed = await client.list(CONFIGMAPS, NS)
    return {item["metadata"]["name"] for item in listed.items} - {"kube-root-ca.crt"}


async def test_background_deletion_takes_dependents_along_recursively(client: Client) -> None:
    owner = await client.create(CONFIGMAPS, configmap("owner"))
    child = await client.create(CONFIGMAPS, configmap("child", owner))
    await client.create(CONFIGMAPS, configmap("grandchild", child))
    await client.create(CONFIGMAPS, configmap("stranger"))
    await client.delete(CONFIGMAPS, "owner", namespace=NS, propagation="Background")
    await eventually(lambda: names(client), {"stranger"})


async def test_objects_of_living_owners_are_no_work_for_the_collector(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are written by the thousand: what has to be collected would wait behind them."""
    collected: list[str] = []
    collect = GarbageCollector._collect

    async def noted(self: GarbageCollector, address: ObjectAddress) -> None:
        collected.append(address.name)
        await collect(self, address)

    monkeypatch.setattr(GarbageCollector, "_collect", noted)
    platform = ControlPlane(tmp_path / "data", clock=FakeClock(), seed=1)
    await platform.start()
    try:
        client = platform.client(user_agent="test")
        owner = await client.create(CONFIGMAPS, configmap("owner"))
        await client.create(CONFIGMAPS, configmap("child", owner))
        await client.patch(CONFIGMAPS, "child", {"data": {"a": "b"}}, namespace=NS)
        gone = configmap("gone")
        gone["metadata"]["uid"] = "of-nobody"
        await client.create(CONFIGMAPS, configmap("stray", gone))
        await eventually(lambda: names(client), {"owner", "child"})
        assert set(collected) == {"stray"}
        await client.delete(CONFIGMAPS, "owner", namespace=NS, propagation="Background")
        await eventually(lambda: names(client), set())
        assert set(collected) == {"stray", "child"}
    finally:
        await platform.stop()


async def test_an_owner_with_very_many_dependents_does_not_hold_up_the_deletions_of_others(
    inner: ControlPlane, client: Client
) -> None:
    theirs = await client.create(CONFIGMAPS, configmap("theirs"))
    for number in range(200):
        await client.create(CONFIGMAPS, configmap(f"theirs-{number}", theirs))
    mine = await client.create(CONFIGMAPS, configmap("mine"))
    await client.create(CONFIGMAPS, configmap("mine-0", mine))
    gone: list[str] = []

    def note(change: Change) -> None:
        if change.op is Op.DELETE:
            gone.append(change.record.address.name)

    inner.store.subscribe(note)
    await asyncio.gather(
        *(client.delete(CONFIGMAPS, name, namespace=NS, propagation="Background") for name in ("theirs", "mine"))
    )
    await eventually(lambda: names(client), set())
    assert gone.index("mine-0") < 100


async def test_orphan_deletion_leaves_dependents_without_owner(client: Client) -> None:
    owner = await client.create(CONFIGMAPS, configmap("owner"))
    await client.create(CONFIGMAPS, configmap("child", owner))
    await client.delete(CONFIGMAPS, "owner", namespace=NS, propagation="Orphan")
    await eventually(lambda: names(client), {"child"})
    child = await client.get(CONFIGMAPS, "child", NS)
    assert "ownerReferences" not in child["metadata"]


async def test_foreground_deletion_keeps_the_owner_until_its_dependents_are_gone(client: Client) -> None:
    owner = await client.create(CONFIGMAPS, configmap("owner"))
    await client.create(CONFIGMAPS, configmap("child", owner, finalizers=("example.org/hold",)))
    await client.delete(CONFIGMAPS, "owner", namespace=NS, propagation="Foreground")

    async def child_is_leaving() -> bool:
        child = await client.get(CONFIGMAPS, "child", NS)
        return bool(child["metadata"].get("deletionTimestamp"))

    await eventually(child_is_leaving, True)
    owner = await client.get(CONFIGMAPS, "owner", NS)
    assert owner["metadata"]["finalizers"] == ["foregroundDeletion"]
    await client.patch(CONFIGMAPS, "child", {"metadata": {"finalizers": None}}, namespace=NS)
    await eventually(lambda: names(client), set())


def reference(owner: Object) -> Object:
    meta = owner["metadata"]
    return {"apiVersion": "v1", "kind": owner["kind"], "name": meta["name"], "uid": meta["uid"],
            "blockOwnerDeletion": True}  # fmt: skip


async def close_circle(client: Client, *members: str, finalizers: tuple[str, ...] = ()) -> None:
    """Every member owns the next one, and the last owns the first."""
    made = [await client.create(CONFIGMAPS, configmap(name, finalizers=finalizers)) for name in members]
    for position, member in enumerate(made):
        refs = [reference(made[position - 1])]
        await client.patch(
            CONFIGMAPS, member["metadata"]["name"], {"metadata": {"ownerReferences": refs}}, namespace=NS
        )


@pytest.mark.parametrize("size", [1, 2, 3, 7])
async def test_objects_that_own_each_other_in_a_circle_go_when_one_is_deleted_in_the_foreground(
    client: Client, size: int
) -> None:
    members = [f"pod{number}" for number in range(size)]
    await client.create(CONFIGMAPS, configmap("stranger"))
    await close_circle(client, *members)
    await client.delete(CONFIGMAPS, "pod0", namespace=NS, propagation="Foreground")
    await eventually(lambda: names(client), {"stranger"})


async def test_a_circle_goes_even_when_all_of_it_is_deleted_in_the_foreground_at_once(client: Client) -> None:
    members = ("a", "b", "c")
    await close_circle(client, *members)
    await asyncio.gather(*(client.delete(CONFIGMAPS, name, namespace=NS, propagation="Foreground") for name in members))
    await eventually(lambda: names(client), set())


async def test_a_circle_waits_for_what_it_owns_outside_and_goes_then(client: Client) -> None:
    await close_circle(client, "a", "b", "c")
    owner = await client.get(CONFIGMAPS, "b", NS)
    await client.create(CONFIGMAPS, configmap("outside", owner, finalizers=("example.org/hold",)))
    await client.delete(CONFIGMAPS, "a", namespace=NS, propagation="Foreground")

    async def outside_is_leaving() -> bool:
        found = await client.get(CONFIGMAPS, "outside", NS)
        return bool(found["metadata"].get("deletionTimestamp"))

    await eventually(outside_is_leaving, True)
    assert "b" in await names(client)
    await client.patch(CONFIGMAPS, "outside", {"metadata": {"finalizers": None}}, namespace=NS)
    await eventually(lambda: names(client), set())


async def test_a_dependent_with_another_living_owner_stays_and_does_not_hold_up_the_one_being_deleted(
    client: Client,
) -> None:
    leaving = await client.create(CONFIGMAPS, configmap("leaving"))
    staying = await client.create(CONFIGMAPS, configmap("staying"))
    await client.create(CONFIGMAPS, configmap("shared", leaving, staying))
    await client.delete(CONFIGMAPS, "leaving", namespace=NS, propagation="Foreground")
    await eventually(lambda: names(client), {"staying", "shared"})
    shared = await client.get(CONFIGMAPS, "shared", NS)
    assert [ref["name"] for ref in shared["metadata"]["ownerReferences"]] == ["staying"]


async def test_an_owner_goes_when_its_last_dependent_stops_blocking_it(client: Client) -> None:
    owner = await client.create(CONFIGMAPS, configmap("owner"))
    await client.create(CONFIGMAPS, configmap("child", owner, finalizers=("example.org/hold",)))
    await client.delete(CONFIGMAPS, "owner", namespace=NS, propagation="Foreground")
    released = {"metadata": {"ownerReferences": [{**reference(owner), "blockOwnerDeletion": False}]}}
    await client.patch(CONFIGMAPS, "child", released, namespace=NS)
    await eventually(lambda: names(client), {"child"})


async def test_an_object_in_another_namespace_cannot_hold_up_a_foreground_deletion(client: Client) -> None:
    await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    owner = await client.create(CONFIGMAPS, configmap("owner"))
    intruder = configmap("intruder", owner, finalizers=("example.org/hold",))
    intruder["metadata"]["namespace"] = "other"
    await client.create(CONFIGMAPS, intruder, namespace="other")
    await client.delete(CONFIGMAPS, "owner", namespace=NS, propagation="Foreground")
    await eventually(lambda: names(client), set())


async def test_an_object_lives_as_long_as_one_of_its_owners(client: Client) -> None:
    first = await client.create(CONFIGMAPS, configmap("first"))
    second = await client.create(CONFIGMAPS, configmap("second"))
    await client.create(CONFIGMAPS, configmap("shared", first, second))
    await client.delete(CONFIGMAPS, "first", namespace=NS)

    async def owners() -> list[str]:
        shared = await client.get(CONFIGMAPS, "shared", NS)
        return [ref["name"] for ref in shared["metadata"].get("ownerReferences", [])]

    await eventually(owners, ["second"])
    await client.delete(CONFIGMAPS, "second", namespace=NS)
    await eventually(lambda: names(client), set())


async def test_an_object_created_with_a_dead_owner_is_collected(client: Client) -> None:
    ghost = {"metadata": {"name": "ghost", "uid": "00000000-0000-0000-0000-000000000000"}}
    await client.create(CONFIGMAPS, configmap("late", ghost))
    await eventually(lambda: names(client), set())


async def test_an_owner_in_another_namespace_does_not_count(client: Client) -> None:
    await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    owner = configmap("owner")
    owner["metadata"]["namespace"] = "other"
    owner = await client.create(CONFIGMAPS, owner, namespace="other")
    await client.create(CONFIGMAPS, configmap("child", owner))
    await eventually(lambda: names(client), set())


async def test_a_cluster_scoped_object_that_names_a_namespaced_owner_is_never_collected(client: Client) -> None:
    owner = await client.create(CONFIGMAPS, configmap("owner"))
    for name, uid in (("a", owner["metadata"]["uid"]), ("b", "gone")):
        ref = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}
        meta = {"name": name, "ownerReferences": [ref]}
        await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
    await client.delete(CONFIGMAPS, "owner", namespace=NS)
    await client.create(CONFIGMAPS, configmap("orphan", {"metadata": {"name": "x", "uid": "gone"}}))
    await eventually(lambda: names(client), set())
    for name in ("a", "b"):
        assert "deletionTimestamp" not in (await client.get(NAMESPACES, name))["metadata"]


async def test_finalizers_hold_an_object_until_the_last_is_gone(client: Client) -> None:
    await client.create(CONFIGMAPS, configmap("held", finalizers=("example.org/a", "example.org/b")))
    await client.delete(CONFIGMAPS, "held", namespace=NS)
    held = await client.get(CONFIGMAPS, "held", NS)
    assert held["metadata"]["deletionTimestamp"]
    await client.patch(CONFIGMAPS, "held", {"metadata": {"finalizers": ["example.org/b"]}}, namespace=NS)
    assert await names(client) == {"held"}
    await client.patch(CONFIGMAPS, "held", {"metadata": {"finalizers": []}}, namespace=NS)
    assert await names(client) == set()


async def test_a_deleted_namespace_goes_when_it_is_empty_and_lets_nothing_in_meanwhile(client: Client) -> None:
    await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "doomed"}})
    for number in range(20):
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"s{number}", "namespace": "doomed"}}
        await client.create(SECRETS, secret, namespace="doomed")
    hold = configmap("hold", finalizers=("example.org/hold",))
    hold["metadata"]["namespace"] = "doomed"
    await client.create(CONFIGMAPS, hold, namespace="doomed")
    await client.delete(NAMESPACES, "doomed")

    async def left() -> int:
        return len((await client.list(SECRETS, "doomed")).items)

    await eventually(left, 0)
    space = await client.get(NAMESPACES, "doomed")
    assert space["status"]["phase"] == "Terminating"
    late = configmap("late")
    late["metadata"]["namespace"] = "doomed"
    with pytest.raises(errors.Forbidden, match="being terminated"):
        await client.create(CONFIGMAPS, late, namespace="doomed")
    await client.patch(CONFIGMAPS, "hold", {"metadata": {"finalizers": None}}, namespace="doomed")

    async def gone() -> bool:
        try:
            await client.get(NAMESPACES, "doomed")
        except errors.NotFound:
            return True
        return False

    await eventually(gone, True)
