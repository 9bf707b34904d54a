"""Engines that are installed or removed under a working controller: new work finds them, and what stands is not torn.

Time is played: nothing here waits for the next look.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from embedded.serving_world import paddleservice
from harness import eventually
from paddlecloud.api import KINDS, crd, knative
from paddlecloud.controllers import engines
from paddlecloud.controllers import paddleservice as serving
from paddlecloud.controllers.paddlejob import JobOptions, PaddleJobController
from paddlecloud.controllers.paddlejob.controller import served_kinds
from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import FakeClock
from paddlecloud.kube.errors import NotFound
from paddlecloud.kube.manager import Service
from paddlecloud.kube.resource import (
    CRDS,
    DEPLOYMENTS,
    KNATIVE_SERVICES,
    PADDLEJOBS,
    PADDLESERVICES,
    PODGROUPS,
    PODS,
    Object,
    Resource,
)
from paddlecloud.local.control_plane import ControlPlane

VOLCANO = [definition for definition in crd.generate() if definition["spec"]["group"] == PODGROUPS.group]
KNATIVE = crd.generate(knative.KINDS)


class EngineCluster:
    def __init__(self, client: Client, clock: FakeClock) -> None:
        self.client = client
        self._clock = clock

    async def install(self, definitions: list[Object]) -> None:
        for definition in definitions:
            await self.client.create(CRDS, definition)

    async def remove(self, definitions: list[Object]) -> None:
        for definition in definitions:
            await self.client.delete(CRDS, definition["metadata"]["name"])

    async def looked_twice(self) -> None:
        for _ in range(2):
            await self._clock.advance(engines.LOOK_EVERY)

    async def until(self, resource: Resource, name: str, good: Callable[[Object], bool] = bool) -> Object:
        """The object once it is there, and as it should be."""

        async def look() -> Object:
            await self._clock.advance(1)
            try:
                return await self.client.get(resource, name, "default")
            except NotFound:
                return {}

        return dict(await eventually(look, lambda found: bool(found) and good(found)))

    async def serve(self, name: str) -> None:
        service = paddleservice(name, "word")
        service["metadata"]["namespace"] = "default"
        await self.client.create(PADDLESERVICES, service)


@pytest.fixture
async def world(tmp_path: Path, clock: FakeClock) -> AsyncIterator[EngineCluster]:
    """This project's kinds, two of its controllers, and no engine."""
    platform = ControlPlane(tmp_path / "data", clock=clock, seed=1)
    await platform.start(objects=crd.generate(KINDS))
    client = platform.client(user_agent="test")

    def job(served: engines.Served) -> Service:
        return PaddleJobController(client, options=JobOptions(), served=served, clock=clock).run

    def service(served: engines.Served) -> Service:
        return serving.PaddleServiceController(client, served=served, clock=clock).run

    tasks = [
        platform.spawn(engines.follow(lambda: served_kinds(client), job, clock=clock)),
        platform.spawn(engines.follow(lambda: serving.served_kinds(client), service, clock=clock)),
    ]
    yield EngineCluster(client, clock)
    for task in tasks:
        task.cancel()
    await platform.stop()


def gang(name: str) -> Object:
    container = {"name": "paddle", "image": "busybox", "command": ["true"]}
    worker = {"replicas": 2, "template": {"spec": {"containers": [container]}}}
    return {
        "apiVersion": PADDLEJOBS.api_version,
        "kind": "PaddleJob",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": {"minAvailable": 2}, "worker": worker},
    }


async def test_jobs_become_gangs_once_volcano_is_there(world: EngineCluster) -> None:
    await world.client.create(PADDLEJOBS, gang("early"))
    early = await world.until(PADDLEJOBS, "early", lambda job: "conditions" in job.get("status", {}))
    reported = next(each for each in early["status"]["conditions"] if each["type"] == "GangScheduled")
    assert (reported["status"], reported["reason"]) == ("False", "NoGangScheduler")

    await world.install(VOLCANO)
    await world.looked_twice()
    await world.client.create(PADDLEJOBS, gang("late"))
    assert (await world.until(PODGROUPS, "late"))["spec"]["minMember"] == 2

    await world.remove(VOLCANO)
    await world.looked_twice()
    await world.client.create(PADDLEJOBS, gang("later"))
    await world.until(PODS, "later-worker-0")


async def test_services_become_knatives_once_it_is_there_and_those_that_stand_stay(world: EngineCluster) -> None:
    await world.serve("early")
    await world.until(DEPLOYMENTS, "early-default")
    await world.until(PADDLESERVICES, "early", on("Deployment"))

    await world.install(KNATIVE)
    await world.looked_twice()
    await world.serve("late")
    await world.until(KNATIVE_SERVICES, "late")
    await world.until(PADDLESERVICES, "late", on("Knative"))
    change = {"spec": {"service": {"minScale": 2}}}
    await world.client.patch(PADDLESERVICES, "early", change, namespace="default")
    await world.until(PADDLESERVICES, "early", lambda service: service["status"].get("observedGeneration") == 2)
    await world.until(PADDLESERVICES, "early", on("Deployment"))
    assert [each["metadata"]["name"] for each in (await world.client.list(KNATIVE_SERVICES)).items] == ["late"]

    await world.remove(KNATIVE)
    await world.looked_twice()
    await world.until(PADDLESERVICES, "late", on("Deployment"))
    await world.until(DEPLOYMENTS, "late-default")


def on(engine: str) -> Callable[[Object], bool]:
    return lambda service: bool((service.get("status") or {}).get("engine") == engine)
