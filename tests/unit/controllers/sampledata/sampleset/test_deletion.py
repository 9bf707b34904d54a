"""The end of a SampleSet: in which order it goes, whom it waits for, and whom it does not."""

from __future__ import annotations

from paddlecloud.kube.resource import (
    NAMESPACES,
    NODES,
    PADDLEJOBS,
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    PODS,
    SAMPLESETS,
    SERVICES,
    STATEFULSETS,
    Object,
)
from unit.controllers.sampledata.world import NAMESPACE, SampleDataCluster, condition

LABEL = "paddlepaddle.org/local-imagenet"


async def test_what_a_set_is_made_of_goes_in_order(here: SampleDataCluster) -> None:
    """Labels first, so that no job is sent there; what leads to the data last, when nobody can be reading it."""
    await here.create_set(partitions=2)
    await here.phase("Ready")
    gone: list[str] = []

    def note(old: Object | None, new: Object | None) -> None:
        if new is None:
            gone.append((old or {})["kind"])
        elif new["kind"] == "Node" and LABEL in (old or {})["metadata"]["labels"]:
            gone.append("Label")

    for resource in (NODES, STATEFULSETS, PODS, SERVICES, PERSISTENTVOLUMECLAIMS, PERSISTENTVOLUMES, SAMPLESETS):
        await here.watch(resource, note)
    await here.client.delete(SAMPLESETS, "imagenet", namespace=NAMESPACE)
    await here.gone(SAMPLESETS, "imagenet")

    async def reported() -> bool:
        return "SampleSet" in gone

    await here.until(reported)
    firsts = [kind for kind in dict.fromkeys(gone) if kind != "Service"]
    assert firsts == ["Label", "StatefulSet", "Pod", "PersistentVolumeClaim", "PersistentVolume", "SampleSet"]
    assert gone.index("Service") > len(gone) - 1 - gone[::-1].index("Pod"), "servers are found by it until they stop"


async def test_a_set_that_is_deleted_takes_everything_along_but_the_data(here: SampleDataCluster) -> None:
    await here.create_set(partitions=2)
    await here.phase("Ready")
    await here.client.delete(SAMPLESETS, "imagenet", namespace=NAMESPACE)
    await here.gone(SAMPLESETS, "imagenet")
    assert await here.labels(LABEL) == {}
    for resource, name in (
        (STATEFULSETS, "imagenet-runtime"),
        (SERVICES, "imagenet-runtime-service"),
        (PERSISTENTVOLUMECLAIMS, "imagenet"),
        (PERSISTENTVOLUMES, "imagenet"),
    ):
        await here.gone(resource, name, NAMESPACE if resource.namespaced else None)
    assert sorted(here.servers.asked("clear")) == ["imagenet-runtime-0", "imagenet-runtime-1"]
    assert here.servers.asked("rmr") == {}


async def test_a_set_is_deleted_although_its_servers_are_silent(here: SampleDataCluster) -> None:
    await here.create_set()
    await here.phase("Ready")
    here.servers.silent.add("imagenet-runtime-0")
    await here.client.delete(SAMPLESETS, "imagenet", namespace=NAMESPACE)
    await here.gone(SAMPLESETS, "imagenet")


async def test_a_set_in_use_is_deleted_when_nobody_uses_it_any_more(here: SampleDataCluster) -> None:
    await here.create_set()
    await here.phase("Ready")
    await here.create_reader("train")
    await here.client.patch(
        PADDLEJOBS, "train", {"status": {"phase": "Running"}}, namespace=NAMESPACE, subresource="status"
    )
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "notebook", "namespace": NAMESPACE},
        "spec": {
            "containers": [{"name": "c", "image": "x"}],
            "volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "imagenet"}}],
        },
    }
    await here.client.create(PODS, pod)
    await here.client.delete(SAMPLESETS, "imagenet", namespace=NAMESPACE)

    async def reported() -> bool:
        status = await here.status(SAMPLESETS, "imagenet")
        text = "deletion waits for PaddleJob train, Pod notebook to end"
        return condition(status, "InUse") == ("True", text)

    await here.until(reported, seconds=10)
    await here.pass_time(30)
    assert await here.get(STATEFULSETS, "imagenet-runtime") is not None
    assert list((await here.labels(LABEL)).values()) == ["imagenet-runtime-0"]
    await here.client.patch(
        PADDLEJOBS, "train", {"status": {"phase": "Completed"}}, namespace=NAMESPACE, subresource="status"
    )
    await here.client.delete(PODS, "notebook", namespace=NAMESPACE, grace_period=0)
    await here.gone(SAMPLESETS, "imagenet")


async def test_a_job_of_another_namespace_neither_keeps_the_set_nor_writes_into_its_status(
    here: SampleDataCluster,
) -> None:
    await here.create_set()
    await here.phase("Ready")
    await here.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "tenant"}})
    await here.create_reader("train", namespace="tenant", of=NAMESPACE)
    status = {"phase": "Running", "cache": {"epochs": [{"epoch": 0, "hits": 1, "misses": 2}]}}
    await here.client.patch(PADDLEJOBS, "train", {"status": status}, namespace="tenant", subresource="status")
    await here.pass_time(20)
    assert "reads" not in await here.status(SAMPLESETS, "imagenet")
    await here.client.delete(SAMPLESETS, "imagenet", namespace=NAMESPACE)
    await here.gone(SAMPLESETS, "imagenet")


async def test_a_job_that_waits_for_the_set_does_not_keep_it(here: SampleDataCluster) -> None:
    await here.create_set()
    await here.phase("Ready")
    await here.create_reader("waits")
    await here.client.delete(SAMPLESETS, "imagenet", namespace=NAMESPACE)
    await here.gone(SAMPLESETS, "imagenet")
