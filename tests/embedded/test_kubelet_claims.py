"""Claims on the running platform: made, bound, used by pods, and cleared away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from harness import PATIENCE
from paddlecloud.kube.manager import Manager
from paddlecloud.kube.resource import PERSISTENTVOLUMECLAIMS, PERSISTENTVOLUMES, Object, Resource
from paddlecloud.local.volumes.binder import VolumeBinder
from unit.local.kubelet.machine import TestMachine, running_machine


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[TestMachine]:
    async with running_machine(tmp_path) as running:
        manager = Manager(running.platform.client(user_agent="volumes"), clock=running.platform.clock)
        binder = VolumeBinder(manager, folder=tmp_path / "volumes")
        await binder.install()
        running.platform.spawn(manager.run())
        yield running


async def seen(machine: TestMachine, resource: Resource, condition: Callable[[Object], Any]) -> Object:
    async def wait() -> Object:
        async for event in machine.client.watch(resource):
            if event.type != "BOOKMARK" and condition({"type": event.type, **event.object}):
                return event.object
        raise AssertionError("the watch ended")

    return await asyncio.wait_for(wait(), PATIENCE)


def claim(name: str = "claim", **spec: Any) -> Object:
    return {
        "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec},
    }


async def test_a_claim_is_a_folder_that_outlives_pods_and_goes_with_the_claim(
    machine: TestMachine, tmp_path: Path
) -> None:
    await machine.client.create(PERSISTENTVOLUMECLAIMS, claim(), namespace="default")
    mounted = {
        "container": {"volumeMounts": [{"name": "v", "mountPath": "/data"}]},
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "claim"}}],
    }
    await machine.run("echo kept > /data/f", name="writer", **mounted)
    await machine.phase("writer", "Succeeded")
    await machine.run("cat /data/f", name="reader", **mounted)
    await machine.phase("reader", "Succeeded")
    assert await machine.log("reader") == "kept\n"
    bound = await machine.client.get(PERSISTENTVOLUMECLAIMS, "claim", "default")
    assert (bound["status"]["phase"], bound["status"]["capacity"]) == ("Bound", {"storage": "1Gi"})
    volume = await seen(machine, PERSISTENTVOLUMES, lambda v: (v.get("status") or {}).get("phase") == "Bound")
    folder = tmp_path / "volumes" / volume["metadata"]["name"]
    assert (folder / "f").read_text() == "kept\n"

    gone = asyncio.ensure_future(seen(machine, PERSISTENTVOLUMES, lambda v: v["type"] == "DELETED"))
    await machine.client.delete(PERSISTENTVOLUMECLAIMS, "claim", namespace="default")
    await gone
    assert not folder.exists()


async def test_many_claims_and_volumes_pair_up_without_sharing(machine: TestMachine, tmp_path: Path) -> None:
    count = 6
    for number in range(count):
        volume = {
            "metadata": {"name": f"pv-{number}"},
            "spec": {
                "capacity": {"storage": "2Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "",
                "hostPath": {"path": str(tmp_path / f"pv-{number}")},
            },
        }
        await machine.client.create(PERSISTENTVOLUMES, volume)
    await asyncio.gather(
        *(
            machine.client.create(
                PERSISTENTVOLUMECLAIMS, claim(f"claim-{number}", storageClassName=""), namespace="default"
            )
            for number in range(count)
        )
    )
    bound: set[str] = set()

    def all_bound(found: Object) -> bool:
        if (found.get("status") or {}).get("phase") == "Bound":
            bound.add(found["metadata"]["name"])
        return len(bound) == count

    await seen(machine, PERSISTENTVOLUMECLAIMS, all_bound)
    claims = (await machine.client.list(PERSISTENTVOLUMECLAIMS, "default")).items
    assert sorted(c["spec"]["volumeName"] for c in claims) == [f"pv-{number}" for number in range(count)]
