"""The controller against a real API server in this process; the tests play scheduler and kubelet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from harness import eventually
from paddlecloud.api import crd, mounts
from paddlecloud.controllers.paddlejob import JobOptions, ListenAddress, PaddleJobController
from paddlecloud.controllers.paddlejob.failure import mount_events
from paddlecloud.controllers.paddlejob.failure.logsilence import newest_line
from paddlecloud.controllers.paddlejob.kubeflow import KubeflowPaddleJobController
from paddlecloud.controllers.paddlejob.observe import PodView
from paddlecloud.controllers.paddlejob.pods import ports
from paddlecloud.kube.client import Client
from paddlecloud.kube.errors import Forbidden
from paddlecloud.kube.resource import (
    CONFIGMAPS,
    EVENTS,
    KUBEFLOW_PADDLEJOBS,
    PADDLEJOBS,
    PERSISTENTVOLUMECLAIMS,
    PODS,
    SAMPLESETS,
    Object,
    Resource,
)
from paddlecloud.kube.transport import Response, Transport
from paddlecloud.local.control_plane import ControlPlane

from .world import template

NAMESPACE = "default"


class Counted:
    """A transport that notes every write."""

    def __init__(self, inner: Transport, writes: list[str]) -> None:
        self._inner = inner
        self._writes = writes

    async def request(self, method: str, path: str, **options: Any) -> Response:
        if method != "GET":
            self._writes.append(f"{method} {path.partition('/namespaces/default/')[2]}")
        return await self._inner.request(method, path, **options)

    def stream(self, path: str, **options: Any) -> AsyncIterator[bytes]:
        return self._inner.stream(path, **options)

    async def close(self) -> None:
        await self._inner.close()


class Cluster:
    """An API server, the controller, and hands that do what nodes would do."""

    def __init__(self, platform: ControlPlane, reports: ListenAddress | None = None) -> None:
        self.platform = platform
        self._reports = reports
        self.client: Client = platform.client()
        self._task: asyncio.Task[Any] | None = None
        self._addresses = 0
        self.writes: list[str] = []

    def start_controller(self) -> None:
        counted = Counted(self.platform.client().transport, self.writes)
        self._task = self.platform.spawn(
            PaddleJobController(Client(counted), options=JobOptions(), reports=self._reports).run()
        )

    async def stop_controller(self) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def apply(self, name: str = "job", **spec: Any) -> Object:
        for role in ("ps", "worker"):
            if isinstance(spec.get(role), int):
                spec[role] = {"replicas": spec[role], "template": template()}
        job = {
            "apiVersion": PADDLEJOBS.api_version,
            "kind": "PaddleJob",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": spec,
        }
        return await self.client.create(PADDLEJOBS, job)

    async def get(self, resource: Resource, name: str) -> Object:
        return await self.client.get(resource, name, NAMESPACE)

    async def pods(self) -> dict[str, Object]:
        return {pod["metadata"]["name"]: pod for pod in (await self.client.list(PODS, NAMESPACE)).items}

    async def phase(self, wanted: str, name: str = "job") -> Object:
        async def reached() -> Object | None:
            job = await self.get(PADDLEJOBS, name)
            return job if (job.get("status") or {}).get("phase") == wanted else None

        try:
            job: Object = await eventually(reached)
        except AssertionError:
            raise AssertionError(f"not {wanted}: {(await self.get(PADDLEJOBS, name)).get('status')}") from None
        return job

    async def number_of_pods(self, number: int) -> dict[str, Object]:
        async def enough() -> dict[str, Object] | None:
            pods = await self.pods()
            return pods if len(pods) == number else None

        pods: dict[str, Object] = await eventually(enough)
        return pods

    async def report(self, name: str, **status: Any) -> None:
        await self.client.patch(PODS, name, {"status": status}, namespace=NAMESPACE, subresource="status")

    async def place(self, *names: str) -> None:
        for name in names:
            target = {"apiVersion": "v1", "kind": "Node", "name": "n1"}
            body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
            await self.client.raw("POST", f"{PODS.path(NAMESPACE, name)}/binding", body=body)
            self._addresses += 1
            address = f"10.0.0.{self._addresses}"
            await self.report(name, podIP=address, podIPs=[{"ip": address}])

    async def container(self, name: str, phase: str, state: Object, *, ready: bool) -> None:
        described = {"name": "paddle", "image": "i", "imageID": "", "restartCount": 0, "ready": ready, "state": state}
        await self.report(name, phase=phase, containerStatuses=[described])

    async def run(self, *names: str) -> None:
        for name in names:
            await self.container(name, "Running", {"running": {}}, ready=True)

    async def succeed(self, *names: str) -> None:
        for name in names:
            await self.container(name, "Succeeded", {"terminated": {"exitCode": 0}}, ready=False)

    async def bring_up(self, number: int) -> dict[str, Object]:
        pods = await self.number_of_pods(number)
        await self.place(*pods)
        await eventually(lambda: self.exists(CONFIGMAPS, "job"))
        await self.run(*pods)
        await self.phase("Running")
        return pods

    async def exists(self, resource: Resource, name: str) -> bool:
        items = (await self.client.list(resource, NAMESPACE, field_selector=f"metadata.name={name}")).items
        return bool(items)


@asynccontextmanager
async def cluster_of(folder: Path, *, reports: ListenAddress | None = None) -> AsyncIterator[Cluster]:
    platform = ControlPlane(folder)
    await platform.start(objects=crd.generate())
    cluster = Cluster(platform, reports)
    cluster.start_controller()
    yield cluster
    await platform.stop()


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with cluster_of(tmp_path) as cluster:
        yield cluster


async def test_a_life_costs_few_requests(cluster: Cluster) -> None:
    await cluster.apply(ps=2, worker=2, withGloo=1, cleanPodPolicy="Never")
    await cluster.bring_up(4)
    await cluster.succeed("job-worker-0", "job-worker-1")
    job = await cluster.phase("Completed")
    assert (job["status"]["ps"]["ready"], job["status"]["worker"]["ready"]) == ("2/2", "0/2")

    async def servers_end() -> bool:
        pods = await cluster.pods()
        return all(pods[f"job-ps-{i}"]["spec"].get("activeDeadlineSeconds") == 1 for i in range(2))

    await eventually(servers_end)
    assert cluster.writes.count("POST pods") == 4
    assert len(cluster.writes) <= 2 * 4 + 8, cluster.writes


async def test_a_mount_that_kubelets_report_in_events_alone_is_named_on_the_job(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a cluster: the container waits without a message."""
    monkeypatch.setattr(mount_events, "ASK_EVERY", 0.1)
    await cluster.apply(worker=1)
    (pod,) = (await cluster.number_of_pods(1)).values()
    await cluster.place("job-worker-0")
    await cluster.container("job-worker-0", "Pending", {"waiting": {"reason": "ContainerCreating"}}, ready=False)
    said = mounts.sentence("data", "hostPath type check failed: /data/x is not a directory")
    event = {
        "metadata": {"name": "job-worker-0.1", "namespace": NAMESPACE},
        "involvedObject": {
            "kind": "Pod",
            "name": "job-worker-0",
            "namespace": NAMESPACE,
            "uid": pod["metadata"]["uid"],
        },
        "reason": "FailedMount",
        "message": said,
        "type": "Warning",
    }
    await cluster.client.create(EVENTS, event)

    async def message() -> str:
        return str(((await cluster.get(PADDLEJOBS, "job")).get("status") or {}).get("message"))

    await eventually(message, lambda found: found == f"job-worker-0: FailedMount: {said}")
    conditions = (await cluster.get(PADDLEJOBS, "job"))["status"]["conditions"]
    assert ("Startable", "FolderNotFound") in {(c["type"], c.get("reason")) for c in conditions}


async def test_a_controller_that_was_away_takes_up_where_it_was(cluster: Cluster) -> None:
    await cluster.apply(worker=2, cleanPodPolicy="Never")
    pods = await cluster.bring_up(2)
    await cluster.stop_controller()
    await cluster.succeed(*pods)
    cluster.start_controller()
    job = await cluster.phase("Completed")
    assert job["status"].get("generation", 0) == 0
    assert cluster.writes.count("POST pods") == 2


async def test_a_job_of_the_same_name_waits_for_its_predecessors_pods(cluster: Cluster) -> None:
    await cluster.apply(worker=1)
    old = (await cluster.bring_up(1))["job-worker-0"]["metadata"]["uid"]
    await cluster.client.delete(PADDLEJOBS, "job", namespace=NAMESPACE, propagation="Background")
    await cluster.apply(worker=1)
    await eventually(lambda: _message(cluster, "of an earlier job of this name"))
    await cluster.client.delete(PODS, "job-worker-0", namespace=NAMESPACE, grace_period=0, uid=old)

    async def is_new() -> bool:
        return any(pod["metadata"]["uid"] != old for pod in (await cluster.pods()).values())

    await eventually(is_new)
    assert "FailedCreate" not in [event["reason"] for event in (await cluster.client.list(EVENTS, NAMESPACE)).items]


async def _message(cluster: Cluster, word: str) -> bool:
    return word in str((await cluster.get(PADDLEJOBS, "job")).get("status", {}).get("message", ""))


async def test_a_quota_is_named_on_the_job_and_the_job_goes_on_when_it_is_lifted(cluster: Cluster) -> None:
    quotas = Resource("", "v1", "resourcequotas", "ResourceQuota")
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "few", "namespace": NAMESPACE},
        "spec": {"hard": {"pods": "1"}},
    }
    await cluster.client.create(quotas, quota)
    await cluster.apply(worker=3)
    await eventually(lambda: _message(cluster, "exceeded quota"))
    events = (await cluster.client.list(EVENTS, NAMESPACE)).items
    assert any(event["reason"] == "FailedCreate" and event["type"] == "Warning" for event in events)
    await cluster.client.delete(quotas, "few", namespace=NAMESPACE)
    await cluster.number_of_pods(3)


async def test_data_that_arrives_later_lets_the_job_begin(cluster: Cluster) -> None:
    await cluster.apply(worker=1, sampleSetRef={"name": "imagenet", "mountPath": "/data"})
    await eventually(lambda: _message(cluster, "imagenet not found"))
    assert await cluster.pods() == {}
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "imagenet", "namespace": NAMESPACE},
        "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    await cluster.client.create(PERSISTENTVOLUMECLAIMS, claim)
    pods = await cluster.number_of_pods(1)
    volumes = {volume["name"]: volume for volume in pods["job-worker-0"]["spec"]["volumes"]}
    assert volumes["imagenet"]["persistentVolumeClaim"]["claimName"] == "imagenet"


async def test_jobs_on_the_nodes_network_have_ports_of_their_own_while_there_are_any(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ports, "SHARED_RANGE", range(20000, 20060, 20))
    names = ["one", "two", "three"]
    await asyncio.gather(*(cluster.apply(name, worker=1, intranet="Host") for name in names))
    await cluster.number_of_pods(3)
    held = {(await cluster.phase("Pending", name))["status"]["port"] for name in names}
    assert held == {20000, 20020, 20040}
    await cluster.apply("four", worker=1, intranet="Host")
    waits = (await cluster.phase("Pending", "four"))["status"]
    assert "no free block of ports" in waits["message"]
    assert [c["reason"] for c in waits["conditions"] if c["type"] == "Created"] == ["NoPorts"]
    assert len(await cluster.pods()) == 3


async def test_scaling_through_the_scale_subresource(cluster: Cluster) -> None:
    await cluster.apply(worker=2)
    await cluster.bring_up(2)
    patch = {"spec": {"replicas": 3}}
    await cluster.client.patch(PADDLEJOBS, "job", patch, namespace=NAMESPACE, subresource="scale")

    async def torn_down() -> bool:
        for pod in (await cluster.pods()).values():
            if "deletionTimestamp" in pod["metadata"]:
                await cluster.client.delete(PODS, pod["metadata"]["name"], namespace=NAMESPACE, grace_period=0)
        return len(await cluster.pods()) == 3

    await eventually(torn_down)
    assert (await cluster.get(PADDLEJOBS, "job"))["status"]["phase"] == "Scaling"


async def test_a_kubeflow_job_trains_and_is_then_left_in_peace(cluster: Cluster) -> None:
    writes: list[str] = []
    counted = Client(Counted(cluster.client.transport, writes))
    cluster.platform.spawn(KubeflowPaddleJobController(counted).run())
    job = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": "job", "namespace": NAMESPACE},
        "spec": {"paddleReplicaSpecs": {"Worker": {"replicas": 2, "template": template()}}},
    }
    await cluster.client.create(KUBEFLOW_PADDLEJOBS, job)
    pods = await cluster.bring_up(2)
    await cluster.succeed(*pods)

    async def succeeded() -> bool:
        status = (await cluster.get(KUBEFLOW_PADDLEJOBS, "job")).get("status") or {}
        return bool(status.get("conditions")) and status["conditions"][-1]["type"] == "Succeeded"

    await eventually(succeeded)
    await asyncio.sleep(0.2)
    assert len(writes) <= 8, writes


async def test_a_kubeflow_job_whose_paddlejob_is_refused_says_so_once(cluster: Cluster) -> None:
    class Refusing(Counted):
        async def request(self, method: str, path: str, **options: Any) -> Response:
            if method == "POST" and path.endswith("/paddlejobs"):
                self._writes.append(path)
                raise Forbidden("an admission rule refuses it")
            return await super().request(method, path, **options)

    attempts: list[str] = []
    cluster.platform.spawn(KubeflowPaddleJobController(Client(Refusing(cluster.client.transport, attempts))).run())
    job = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": "job", "namespace": NAMESPACE},
        "spec": {"paddleReplicaSpecs": {"Worker": {"replicas": 1, "template": template()}}},
    }
    await cluster.client.create(KUBEFLOW_PADDLEJOBS, job)
    await eventually(lambda: sum(path.endswith("/paddlejobs") for path in attempts) > 2)
    events = (await cluster.client.list(EVENTS, NAMESPACE)).items
    assert [(event["reason"], event["count"]) for event in events] == [("FailedCreate", 1)]
    assert "an admission rule refuses it" in events[0]["message"]


class Logs:
    """A transport that only knows logs."""

    def __init__(self, lines: dict[str, bytes]) -> None:
        self._lines = lines

    async def request(self, method: str, path: str, **options: Any) -> Response:
        assert options["query"]["sinceSeconds"] == "60"
        line = self._lines[path.split("/")[-2]]
        return Response(404, b"") if line == b"gone" else Response(200, line)


@pytest.mark.parametrize(
    ("lines", "newest"),
    [
        ({"a": b"", "b": b""}, None),
        ({"a": b"2023-11-14T22:13:20.123456789Z step 7\n", "b": b""}, 1_700_000_000.1234567),
        ({"a": b"2023-11-14T22:13:20Z step 7\n", "b": b"2023-11-14T22:13:30Z step 8\n"}, 1_700_000_010),
        ({"a": b"", "b": b"gone"}, float("inf")),
    ],
)
async def test_the_newest_line_of_all_pods(lines: dict[str, bytes], newest: float | None) -> None:
    def running(name: str) -> PodView:
        raw = {"metadata": {"name": name}, "spec": {"containers": [{"name": "paddle"}]}}
        return PodView(raw, name, name, "worker", 0, 0, "running", "", "", deleting=False)

    pods = [running(name) for name in lines]
    client = Client(Logs(lines))  # type: ignore[arg-type]
    found = await newest_line(client, NAMESPACE, pods, since=60)
    assert found == (None if newest is None else pytest.approx(newest, abs=1e-6))


@pytest.mark.parametrize("by", ["sampleSetRef", "volume"])
async def test_a_set_that_is_being_deleted_is_given_to_no_new_job(cluster: Cluster, by: str) -> None:
    meta = {"name": "photos", "namespace": NAMESPACE, "finalizers": ["example.org/held"]}
    body = {"apiVersion": SAMPLESETS.api_version, "kind": "SampleSet", "metadata": meta, "spec": {"noSync": True}}
    await cluster.client.create(SAMPLESETS, body)
    claim = {"accessModes": ["ReadOnlyMany"], "resources": {"requests": {"storage": "1Gi"}}}
    named = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {**meta, "finalizers": []}, "spec": claim}
    await cluster.client.create(PERSISTENTVOLUMECLAIMS, named)
    await cluster.client.delete(SAMPLESETS, "photos", namespace=NAMESPACE)
    role = {"replicas": 1, "template": template()}
    if by == "volume":
        role["template"]["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "photos"}}]
        await cluster.apply(worker=role)
    else:
        await cluster.apply(worker=role, sampleSetRef={"name": "photos", "mountPath": "/data", "waitFor": "None"})

    async def waits() -> bool:
        message = ((await cluster.get(PADDLEJOBS, "job")).get("status") or {}).get("message", "")
        return message == "SampleSet default/photos is being deleted"

    await eventually(waits)
    assert await cluster.pods() == {}
    await cluster.client.patch(SAMPLESETS, "photos", {"metadata": {"finalizers": []}}, namespace=NAMESPACE)
    await cluster.number_of_pods(1)


async def test_a_job_that_mounts_the_claim_of_a_set_begins_when_the_set_is_imported(cluster: Cluster) -> None:
    meta = {"name": "photos", "namespace": NAMESPACE}
    source = {"uri": "s3://bucket/photos"}
    body = {"apiVersion": SAMPLESETS.api_version, "kind": "SampleSet", "metadata": meta, "spec": {"source": source}}
    await cluster.client.create(SAMPLESETS, body)
    claim = {"accessModes": ["ReadOnlyMany"], "resources": {"requests": {"storage": "1Gi"}}}
    named = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": claim}
    await cluster.client.create(PERSISTENTVOLUMECLAIMS, named)
    role = {"replicas": 1, "template": template()}
    role["template"]["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "photos"}}]
    await cluster.apply(worker=role)
    await eventually(lambda: _message(cluster, "SampleSet default/photos is new, waiting for its import"))
    assert await cluster.pods() == {}
    imported = {"status": {"phase": "Ready"}}
    await cluster.client.patch(SAMPLESETS, "photos", imported, namespace=NAMESPACE, subresource="status")
    await cluster.number_of_pods(1)
