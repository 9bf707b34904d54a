"""The PaddleService controller on an API server without Knative and without autoscalers: Deployments, a true status."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from embedded.serving_world import paddleservice
from harness import eventually
from paddlecloud.api import KINDS, crd
from paddlecloud.controllers.paddleservice import PaddleServiceController, served_kinds
from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import FakeClock
from paddlecloud.kube.resource import DEPLOYMENTS, PADDLESERVICES, SERVICES, Object
from paddlecloud.local.control_plane import ControlPlane


@pytest.fixture
async def client(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Client]:
    """An API server that has this project's kinds and no others."""
    platform = ControlPlane(tmp_path / "data", clock=clock, seed=1)
    await platform.start(objects=crd.generate(KINDS))
    client = platform.client(user_agent="test")
    controller = PaddleServiceController(client, clock=clock, served=await served_kinds(client))
    task = platform.spawn(controller.run())
    yield client
    task.cancel()
    await platform.stop()


async def status(client: Client, clock: FakeClock, **wanted: object) -> Object:
    """The status once it says what is wanted."""

    async def look() -> Object:
        await clock.advance(0.1)
        return (await client.get(PADDLESERVICES, "m", "default")).get("status") or {}

    def as_wanted(found: Object) -> bool:
        return bool(found) and all(found.get(name) == value for name, value in wanted.items())

    return dict(await eventually(look, as_wanted))


async def test_deployments_and_services_are_made_and_followed(client: Client, clock: FakeClock) -> None:
    service = paddleservice("m", "one", "two", canaryTrafficPercent=50, service={"maxScale": 4})
    service["metadata"]["namespace"] = "default"
    await client.create(PADDLESERVICES, service)
    found = await status(client, clock, engine="Deployment")
    assert found["traffic"] == "50/50"
    deployment = await client.get(DEPLOYMENTS, "m-default", "default")
    assert deployment["spec"]["template"]["spec"]["containers"][0]["name"] == "paddleserving"
    names = {item["metadata"]["name"] for item in (await client.list(SERVICES, "default")).items}
    assert {"m", "m-default", "m-default-private", "m-canary-private"} <= names

    for name in ("m-default", "m-canary"):
        counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 1)
        change = {"status": {"observedGeneration": 1, **counts}}
        await client.patch(DEPLOYMENTS, name, change, namespace="default", subresource="status")
    found = await status(client, clock, replicas=2)
    assert {c["type"]: c["status"] for c in found["conditions"]} == {
        "DefaultEndpointReady": "True",
        "CanaryEndpointReady": "True",
        "RoutesReady": "True",
        "Ready": "True",
    }
    assert "never to zero" in found["message"]
    routes = next(c for c in found["conditions"] if c["type"] == "RoutesReady")
    assert (routes["reason"], routes["message"]) == ("WithoutKnative", found["message"]), "what is absent is reported"

    await client.patch(PADDLESERVICES, "m", {"spec": {"canary": None}}, namespace="default")
    await status(client, clock, traffic="100")
    names = {item["metadata"]["name"] for item in (await client.list(DEPLOYMENTS, "default")).items}
    assert names == {"m-default"}


async def test_what_the_api_refuses_is_in_the_status(client: Client, clock: FakeClock) -> None:
    service = paddleservice("m", "one", volumeMounts=[{"name": "nobody", "mountPath": "/x"}])
    service["metadata"]["namespace"] = "default"
    await client.create(PADDLESERVICES, service)

    async def ready() -> Object:
        await clock.advance(1)
        found = await status(client, clock)
        return next(c for c in found["conditions"] if c["type"] == "Ready")  # type: ignore[no-any-return]

    assert "nobody" in (await eventually(ready, lambda condition: condition["reason"] == "Refused"))["message"]
