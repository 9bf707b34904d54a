"""Sets and jobs that the original operator has left: taken over with what it made for them, not made again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from paddlecloud.kube.resource import (
    NAMESPACES,
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    PODS,
    SAMPLEJOBS,
    SAMPLESETS,
    SERVICES,
    STATEFULSETS,
    Object,
    Resource,
    controller_of,
    resource_of,
)
from tools import original

from .world import NAMESPACE, TOLERATIONS, SampleDataCluster, world

LABEL = "paddlepaddle.org/juicefs-imagenet"
ID = "4c5bbf8e-2c3d-4f7e-9a55-0d6a3c3f1b0e"
SPEC = {"secretRef": {"name": "files"}, "csi": {"juiceFSMountOptions": {"cache-dir": "/data/c"}}}


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[SampleDataCluster]:
    """Without our controllers at first."""
    async with world(tmp_path / "data") as found:
        await found.stop_controllers()
        await found.create_secret("files", name="fs", storage="redis", metaurl="redis://r/0", bucket="redis://r/1")
        yield found


async def leave_behind(here: SampleDataCluster, *, phase: str = "Ready", partitions: int = 2) -> dict[str, str]:
    """A set of the original operator's, with its servers on labelled nodes; the uids of what it is made of."""
    uids = {}
    for obj in original.objects(
        "imagenet",
        NAMESPACE,
        secret="files",
        cache_dir="/data/cimagenet",  # so it joins `/data/c` and the name
        partitions=partitions,
        tolerations=TOLERATIONS,
    ):
        made = await here.client.create(resource_of(obj), obj)
        uids[obj["kind"]] = made["metadata"]["uid"]
    await here.create_set(partitions=partitions, **SPEC)
    mark = {"metadata": {"finalizers": ["paddlepaddle.org/sampleset-imagenet"]}}
    await here.client.patch(SAMPLESETS, "imagenet", mark, namespace=NAMESPACE)
    await give_status(here, SAMPLESETS, "imagenet", original.status(partitions=partitions, phase=phase))

    async def running() -> bool:
        found = await here.status(STATEFULSETS, "imagenet-runtime")
        return found.get("readyReplicas") == partitions

    await here.until(running)
    return uids


async def give_status(here: SampleDataCluster, resource: Resource, name: str, status: Object) -> None:
    await here.client.patch(resource, name, {"status": status}, namespace=NAMESPACE, subresource="status")


@pytest.mark.parametrize("alias", ["imagenet", "default-imagenet"])
async def test_a_set_keeps_the_volume_that_the_release_before_made(here: SampleDataCluster, alias: str) -> None:
    """Its handle and its name could be another set's, but it has the data, and pods have mounted it."""
    volume = original.objects("imagenet", NAMESPACE, secret="files", cache_dir="/data/c")[0]
    volume["metadata"] |= {"name": alias, "labels": {f"paddlepaddle.org/juicefs-{alias}": "true"}}
    await here.client.create(PERSISTENTVOLUMES, volume)
    here.start_controllers()
    await here.create_set(**SPEC)
    await here.phase("Ready")
    volumes = (await here.client.list(PERSISTENTVOLUMES)).items
    assert [(found["metadata"]["name"], found["spec"]["csi"]["volumeHandle"]) for found in volumes] == [
        (alias, "default-imagenet")
    ]
    claim = await here.get(PERSISTENTVOLUMECLAIMS, "imagenet")
    assert claim is not None
    assert claim["spec"]["volumeName"] == alias


async def test_volumes_of_the_release_before_that_share_a_handle_are_reported_and_not_used(
    here: SampleDataCluster,
) -> None:
    """`team/x-data` and `team-x/data` had one handle, and thereby one mount on a node."""
    for namespace, name in (("team", "x-data"), ("team-x", "data")):
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        await here.client.create(NAMESPACES, body)
        await here.client.create(
            PERSISTENTVOLUMES, original.objects(name, namespace, secret="files", cache_dir="/data/c")[0]
        )
    file_system = {"name": "fs", "storage": "redis", "metaurl": "redis://r/0", "bucket": "redis://r/1"}
    await here.create_secret("files", namespace="team", **file_system)
    here.start_controllers()
    await here.create_set("x-data", namespace="team", **SPEC)

    async def reported() -> bool:
        status = await here.status(SAMPLESETS, "x-data", "team")
        return "has the volume handle of data" in str(status.get("message"))

    await here.until(reported)
    assert await here.get(PERSISTENTVOLUMECLAIMS, "x-data", "team") is None
    await here.client.delete(PERSISTENTVOLUMES, "data")
    await here.phase("Ready", "x-data", namespace="team")


async def test_sets_whose_joined_names_are_equal_have_handles_of_their_own(here: SampleDataCluster) -> None:
    file_system = {"name": "fs", "storage": "redis", "metaurl": "redis://r/0", "bucket": "redis://r/1"}
    here.start_controllers()
    sets = (("team", "x-data"), ("team-x", "data"))
    for namespace, name in sets:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        await here.client.create(NAMESPACES, body)
        await here.create_secret("files", namespace=namespace, **file_system)
        await here.create_set(name, namespace=namespace, csi={"driver": "juicefs"}, secretRef={"name": "files"})
        await here.phase("Ready", name, namespace=namespace)
    volumes = (await here.client.list(PERSISTENTVOLUMES)).items
    assert sorted(volume["spec"]["csi"]["volumeHandle"] for volume in volumes) == ["team-x.data", "team.x-data"]


async def test_a_ready_set_goes_on_with_its_volume_and_gets_servers_of_ours(here: SampleDataCluster) -> None:
    uids = await leave_behind(here)
    here.start_controllers()

    async def ours() -> bool:
        pods = (await here.client.list(PODS, NAMESPACE, label_selector="paddlepaddle.org/sampleset=imagenet")).items
        return len(pods) == 2

    await here.until(ours)
    status = await here.phase("Ready")
    assert "Syncing" not in here.history["imagenet"], "its data was imported already"
    assert here.servers.asked("sync") == {}
    assert status["driver"] == "juicefs"
    assert status["cacheDirs"] == ["/data/cimagenet"], "the mount's, as the volume has them"
    conditions = {c["type"]: c["status"] for c in status["conditions"]}
    assert conditions | {"Warm": ""} == dict.fromkeys(("Valid", "Bound", "Synced", "RuntimeReady", "Ready"), "True") | {
        "Warm": ""
    }
    assert sorted((await here.labels(LABEL)).values()) == ["imagenet-runtime-0", "imagenet-runtime-1"]
    for resource, name in (
        (PERSISTENTVOLUMES, "imagenet"),
        (PERSISTENTVOLUMECLAIMS, "imagenet"),
        (SERVICES, "imagenet-runtime-service"),
        (STATEFULSETS, "imagenet-runtime"),
    ):
        found = await here.get(resource, name, NAMESPACE if resource.namespaced else None)
        assert found is not None
        assert found["metadata"]["uid"] == uids[resource.kind], "the same object, not another of its name"
        assert resource is PERSISTENTVOLUMES or (controller_of(found) or {}).get("name") == "imagenet"
    stateful_set = await here.get(STATEFULSETS, "imagenet-runtime")
    assert stateful_set is not None
    (server,) = stateful_set["spec"]["template"]["spec"]["containers"]
    assert "--cacheDirs=/cache/data-cimagenet" in server["command"]
    assert "lifecycle" not in server
    assert server["securityContext"]["privileged"] is False
    await here.said("imagenet", "Adopted")


async def test_a_set_taken_over_is_scaled_and_deleted_like_any_other(here: SampleDataCluster) -> None:
    await leave_behind(here, partitions=1)
    here.start_controllers()
    await here.edit(SAMPLESETS, "imagenet", {"partitions": 2})

    async def grown() -> bool:
        return sorted((await here.labels(LABEL)).values()) == ["imagenet-runtime-0", "imagenet-runtime-1"]

    await here.until(grown)
    await here.phase("Ready")
    await here.client.delete(SAMPLESETS, "imagenet", namespace=NAMESPACE)
    await here.gone(SAMPLESETS, "imagenet")
    assert await here.labels(LABEL) == {}
    await here.gone(PERSISTENTVOLUMES, "imagenet", None)


@pytest.mark.parametrize("phase", ["Bound", "Mount", "Syncing", "SyncFailed"])
async def test_an_import_that_was_under_way_is_begun_again(here: SampleDataCluster, phase: str) -> None:
    """What is there already is not copied twice: that is the cache server's part."""
    await leave_behind(here, phase=phase, partitions=1)
    here.start_controllers()
    status = await here.phase("Ready")
    assert list(here.servers.asked("sync")) == ["imagenet-runtime-0"]
    assert status["jobsName"]["syncJobName"] != ID


async def test_a_set_deleted_during_the_move_goes_with_what_it_is_made_of(here: SampleDataCluster) -> None:
    await leave_behind(here, partitions=1)
    await here.client.delete(SAMPLESETS, "imagenet", namespace=NAMESPACE)
    here.start_controllers()
    await here.gone(SAMPLESETS, "imagenet")
    await here.gone(STATEFULSETS, "imagenet-runtime")
    await here.gone(PERSISTENTVOLUMECLAIMS, "imagenet")


async def test_jobs_that_have_ended_are_not_run_again_and_others_are(here: SampleDataCluster) -> None:
    """A failed rmr must not remove anything because another controller came; one that ran does, under another id."""
    await leave_behind(here, partitions=2)
    for name, type, phase in (
        ("done", "warmup", "Succeeded"),
        ("failed", "rmr", "Failed"),
        ("runs", "warmup", "Running"),
    ):
        more = {"rmrOptions": {"paths": ["train"]}} if type == "rmr" else {}
        await here.create_job(name, type, **more)
        await give_status(here, SAMPLEJOBS, name, {"phase": phase, "jobName": ID})
    here.start_controllers()
    status = await here.phase("Succeeded", "runs", of=SAMPLEJOBS)
    assert status["partitions"] == 2
    assert status["jobName"] != ID
    await here.pass_time(120)
    assert here.servers.asked("rmr") == {}
    assert (await here.status(SAMPLEJOBS, "failed"))["phase"] == "Failed"
    assert len(here.servers.asked("warmup")) == 2, "one warm-up, on both servers"
    await here.edit(SAMPLEJOBS, "failed", {"rmrOptions": {"paths": ["val"]}})
    await here.phase("Succeeded", "failed", of=SAMPLEJOBS)
    assert here.servers.asked("rmr")["imagenet-runtime-0"].options == {"paths": ["/mnt/imagenet/val"]}
