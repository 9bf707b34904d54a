"""Owner references: what goes with its owner, what stays, and in which order."""

from __future__ import annotations

import pytest

from harness import eventually
from paddlecloud.kube import errors
from paddlecloud.kube.client import Client
from paddlecloud.kube.resource import CONFIGMAPS, NAMESPACES, SECRETS, Object

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
