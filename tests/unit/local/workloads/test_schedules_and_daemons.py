"""CronJobs and DaemonSets on a real API server, scheduler and simulated nodes in this process, by a fake clock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.kube.clock import parse_rfc3339
from paddlecloud.kube.resource import CONTROLLERREVISIONS, CRONJOBS, DAEMONSETS, EVENTS, JOBS, NODES, PODS, Object
from paddlecloud.local.nodes.marks import SIMULATE, SIMULATED_TAINT
from unit.local.nodes.simulated_platform import SimulatedPlatform, simulated_platform

NAMESPACE = "default"
POD = {
    "tolerations": [{"key": SIMULATED_TAINT, "operator": "Exists"}],
    "containers": [{"name": "main", "image": "busybox"}],
}
LABELS = {"app": "agent"}


class Machine:
    def __init__(self, platform: SimulatedPlatform) -> None:
        self.clock = platform.clock
        self.client = platform.control_plane.client(user_agent="test")
        self.add_node = platform.add_node

    async def until(self, check: Callable[[], Awaitable[Any]], *, seconds: float = 300) -> Any:
        for _ in range(int(seconds / 0.25)):
            if value := await check():
                return value
            await self.clock.advance(0.25)
            await asyncio.sleep(0.002)
        raise AssertionError(f"did not happen within {seconds} s: {check.__name__}")

    async def pods(self) -> list[Object]:
        return (await self.client.list(PODS, NAMESPACE)).items

    async def events(self, kind: str) -> list[Object]:
        found = (await self.client.list(EVENTS, NAMESPACE)).items
        return [event for event in found if event["involvedObject"]["kind"] == kind]

    async def places(self) -> list[str]:
        return sorted(pod["spec"].get("nodeName", "") for pod in await self.pods())


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Machine]:
    async with simulated_platform(tmp_path) as platform:
        yield Machine(platform)


def an(api_version: str, kind: str, name: str, spec: Object) -> Object:
    meta = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": spec}


async def test_a_cron_job_makes_jobs_minute_by_minute_and_keeps_the_last_ones(machine: Machine) -> None:
    await machine.add_node("a")
    pod = {
        "metadata": {"annotations": {SIMULATE: "run=1s"}},
        "spec": {**POD, "restartPolicy": "Never"},
    }
    job = {"spec": {"template": pod}}
    spec = {"schedule": "* * * * *", "jobTemplate": job, "successfulJobsHistoryLimit": 2}
    await machine.client.create(CRONJOBS, an("batch/v1", "CronJob", "tick", spec))

    async def four_were_made() -> Object | None:
        made = [event for event in await machine.events("CronJob") if event["reason"] == "SuccessfulCreate"]
        found = await machine.client.get(CRONJOBS, "tick", NAMESPACE)
        return found if len(made) >= 4 and not found["status"].get("active") else None

    found = await machine.until(four_were_made)
    jobs = (await machine.client.list(JOBS, NAMESPACE)).items
    last = parse_rfc3339(found["status"]["lastScheduleTime"])
    assert f"tick-{int(last) // 60}" in {each["metadata"]["name"] for each in jobs}
    assert last % 60 == 0
    assert len(jobs) <= 3  # two of the past, and one if the next minute has begun
    assert parse_rfc3339(found["status"]["lastSuccessfulTime"]) > last
    reasons = {event["reason"] for event in await machine.events("CronJob")}
    assert reasons == {"SuccessfulCreate", "SawCompletedJob", "SuccessfulDelete"}


async def test_a_daemon_set_follows_the_nodes_and_its_template(machine: Machine) -> None:
    for name in ("a", "b"):
        await machine.add_node(name)
    template = {"metadata": {"labels": LABELS}, "spec": {**POD, "terminationGracePeriodSeconds": 0}}
    spec = {"selector": {"matchLabels": LABELS}, "template": template}
    await machine.client.create(DAEMONSETS, an("apps/v1", "DaemonSet", "agent", spec))

    def available(number: int) -> Callable[[], Awaitable[bool]]:
        async def reached() -> bool:
            found = await machine.client.get(DAEMONSETS, "agent", NAMESPACE)
            state, generation = found["status"], found["metadata"]["generation"]
            counts = [state.get(name, 0) for name in ("numberAvailable", "updatedNumberScheduled", "numberReady")]
            return bool(counts == [number] * 3 and state.get("observedGeneration") == generation)

        return reached

    await machine.until(available(2))
    assert await machine.places() == ["a", "b"]
    await machine.add_node("c")
    await machine.until(available(3))
    assert await machine.places() == ["a", "b", "c"]

    await machine.client.patch(NODES, "b", {"spec": {"unschedulable": True}})
    containers = [{"name": "main", "image": "busybox:2"}]
    await machine.client.patch(
        DAEMONSETS, "agent", {"spec": {"template": {"spec": {"containers": containers}}}}, namespace=NAMESPACE
    )
    await machine.until(available(3))
    assert {pod["spec"]["containers"][0]["image"] for pod in await machine.pods()} == {"busybox:2"}
    assert await machine.places() == ["a", "b", "c"]
    assert {pod["metadata"]["labels"]["pod-template-generation"] for pod in await machine.pods()} == {"2"}
    revisions = (await machine.client.list(CONTROLLERREVISIONS, NAMESPACE)).items
    assert sorted(each["revision"] for each in revisions) == [1, 2]

    await machine.client.delete(NODES, "c")

    async def only_two() -> bool:
        return await machine.places() == ["a", "b"]

    await machine.until(only_two)
