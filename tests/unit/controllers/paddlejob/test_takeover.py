"""Jobs that another operator of the same kind has left: as it stored them, with pods that it made."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from harness import eventually
from paddlecloud.controllers.paddlejob import names
from paddlecloud.kube.errors import NotFound
from paddlecloud.kube.resource import CONFIGMAPS, PADDLEJOBS, PODS, Object, owner_reference

from .test_controller import NAMESPACE, Cluster, cluster_of
from .world import template

FINALIZER = "finalizers.paddlepaddle.org"


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    """Without a controller at first."""
    async with cluster_of(tmp_path) as cluster:
        await cluster.stop_controller()
        yield cluster


async def left_behind(cluster: Cluster, *, phase: str, pods: int = 2) -> Object:
    """A job as the original operator stores it: finalizer, bare status, and pods with its three labels alone."""
    job = await cluster.client.create(
        PADDLEJOBS,
        {
            "apiVersion": PADDLEJOBS.api_version,
            "kind": "PaddleJob",
            "metadata": {"name": "job", "namespace": NAMESPACE, "finalizers": [FINALIZER]},
            "spec": {"cleanPodPolicy": "Never", "worker": {"replicas": 2, "template": template()}},
        },
    )
    made = [await original_pod(cluster, job, index) for index in range(pods)]
    refs = [{"kind": "Pod", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]} for pod in made]
    status = {"phase": phase, "mode": "Collective", "startTime": "2022-07-01T08:00:00Z"}
    if phase == "Completed":
        status["completionTime"] = "2022-07-01T09:00:00Z"
    counts = {"running": pods} if phase == "Running" else {"succeeded": 2}
    body = {"status": {**status, "worker": {**counts, "refs": refs}}}
    return await cluster.client.patch(PADDLEJOBS, "job", body, namespace=NAMESPACE, subresource="status")


async def original_pod(cluster: Cluster, job: Object, index: int) -> Object:
    name = f"job-worker-{index}"
    meta = {
        "name": name,
        "namespace": NAMESPACE,
        "labels": {"paddle-res-name": name, "paddle-res-type": "worker"},
        "annotations": {"paddle-resource": "worker"},
        "ownerReferences": [owner_reference(job)],
    }
    spec: dict[str, Any] = {**template()["spec"], "restartPolicy": "Never"}
    return await cluster.client.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})


async def config_of(cluster: Cluster, job: Object) -> Object:
    meta = {
        "name": "job",
        "namespace": NAMESPACE,
        "labels": {"paddle-res-name": "job"},
        "ownerReferences": [owner_reference(job)],
    }
    data = {"PADDLE_TRAINERS_NUM": "2", "PADDLE_PORT": "2379", "TRAINER_PORTS_NUM": "20"}
    return await cluster.client.create(
        CONFIGMAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}
    )


async def test_a_running_job_goes_on_in_the_pods_it_has(cluster: Cluster) -> None:
    job = await left_behind(cluster, phase="Running")
    await config_of(cluster, job)
    before = {name: pod["metadata"]["uid"] for name, pod in (await cluster.pods()).items()}
    for name in before:
        await cluster.place(name)
        await cluster.run(name)
    cluster.start_controller()

    async def adopted() -> bool:
        pods = (await cluster.pods()).values()
        return all(pod["metadata"]["labels"].get(names.JOB) == "job" for pod in pods)

    await eventually(adopted)
    for name in before:
        await cluster.succeed(name)
    done = await cluster.phase("Completed")
    assert {name: pod["metadata"]["uid"] for name, pod in (await cluster.pods()).items()} == before
    assert not done["status"].get("restarts"), "nothing was begun again"


async def test_a_job_that_has_ended_is_left_as_it_ended(cluster: Cluster) -> None:
    await left_behind(cluster, phase="Completed", pods=0)
    cluster.start_controller()
    await cluster.apply("other", worker=1)
    await cluster.phase("Pending", "other")
    assert (await cluster.get(PADDLEJOBS, "job"))["status"]["phase"] == "Completed"
    assert [name for name in await cluster.pods() if name.startswith("job-")] == []


async def test_a_job_can_be_deleted_though_nobody_else_takes_its_finalizer_off(cluster: Cluster) -> None:
    await left_behind(cluster, phase="Completed", pods=0)
    cluster.start_controller()
    await cluster.client.delete(PADDLEJOBS, "job", namespace=NAMESPACE)

    async def gone() -> bool:
        try:
            await cluster.get(PADDLEJOBS, "job")
        except NotFound:
            return True
        return False

    await eventually(gone)
