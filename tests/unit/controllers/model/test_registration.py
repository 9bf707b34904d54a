"""Manifests without an object, as a push leaves them that is killed before it registers: a real API server, in process.

Also what is left after an API server that was set up anew beside its store.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from harness import eventually
from paddlecloud.api import crd
from paddlecloud.controllers.model import controller as module
from paddlecloud.controllers.model.controller import YOUNG, ModelController
from paddlecloud.controllers.model.stored import ModelStore
from paddlecloud.kube.clock import SystemClock
from paddlecloud.kube.resource import EVENTS, MODELS, MODELVERSIONS
from paddlecloud.local.control_plane import ControlPlane
from paddlecloud.modelhub import catalogue
from paddlecloud.modelhub.manifest import Facts
from paddlecloud.modelhub.push import push, read_local
from paddlecloud.storage.stores import Store, open_store

NAMESPACE = "default"


class Clock(SystemClock):
    """That of this machine, and what a test adds to it."""

    ahead = 0.0

    def now(self) -> float:
        return time.time() + self.ahead


class World:
    def __init__(self, platform: ControlPlane, store: Store, folder: Path) -> None:
        self.store, self.folder, self.clock = store, folder, Clock()
        self.client = platform.client()
        self.controller = ModelController(platform.client(), store=ModelStore(store), clock=self.clock)
        self._platform = platform

    async def start(self) -> None:
        """Until it knows what there is."""
        self._platform.spawn(self.controller.run())
        for informer in self.controller.primary:
            await informer.wait_synced()

    def push(self, model: str, version: str, namespace: str = NAMESPACE) -> str:
        """What a push has done when it is killed right before it registers the version. Its digest."""
        (self.folder / "net.onnx").write_text(f"{model} {version}")
        which = catalogue.version_key(namespace, model, version)
        facts = Facts("ada", "2026-11-18T12:00:00Z", metrics={"accuracy": 0.9}, origin={"job": "train"})
        return push(self.store, which, read_local(self.folder), facts).manifest.digest

    async def registered(self) -> dict[str, Any]:
        found = (await self.client.list(MODELVERSIONS)).items
        return {version["metadata"]["name"]: version["spec"] for version in found}

    async def events(self) -> list[str]:
        found = (await self.client.list(EVENTS, NAMESPACE)).items
        return [event["message"] for event in found if event["reason"] == "VersionRegistered"]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    (tmp_path / "model").mkdir()
    platform = ControlPlane(tmp_path / "data")
    await platform.start(objects=crd.generate())
    yield World(platform, open_store(f"file://{tmp_path}/store"), tmp_path / "model")
    await platform.stop()


async def test_a_manifest_without_an_object_is_registered_after_ten_minutes_and_aliases_are_not_guessed(
    world: World,
) -> None:
    digest = world.push("ocr", "7")
    await world.start()
    await world.controller.scan()
    assert await world.registered() == {}, "its push may still be about to register it"
    world.clock.ahead = YOUNG + 1
    await world.controller.scan()
    found = await eventually(world.registered)  # by this scan, or by the first one of the controller's own
    assert list(found) == ["ocr.7"]
    assert (found["ocr.7"]["digest"], found["ocr.7"]["origin"], found["ocr.7"]["createdBy"]) == (
        digest, {"job": "train"}, "ada",
    )  # fmt: skip
    model = await world.client.get(MODELS, "ocr", NAMESPACE)
    assert "aliases" not in model["spec"]
    said = "ocr:7 was in the store and had no object; no alias was moved"
    await eventually(world.events, [said])
    await eventually(lambda: world.controller._versions.cache.get(module.Key(NAMESPACE, "ocr.7")))
    await world.controller.scan()
    assert await world.events() == [said], "once"


async def test_what_cannot_be_registered_does_not_keep_others_from_it(world: World) -> None:
    world.push("ocr", "1")
    world.push("ocr", "2")
    world.push("ocr", "3", namespace="was-deleted")
    (damaged,) = (entry for entry in world.store.list("versions/") if entry.key.endswith("/1.json"))
    world.store.delete(damaged.key)
    world.store.create(damaged.key, b"{}")
    world.store.create(f"versions/{NAMESPACE}/ocr/No_Version.json", b"{}")
    world.clock.ahead = YOUNG + 1
    await world.start()
    await eventually(world.registered, lambda found: list(found) == ["ocr.2"])


async def test_an_api_server_that_was_set_up_anew_gets_all_versions_of_its_store(world: World) -> None:
    expected = {f"ocr.{number}": world.push("ocr", str(number)) for number in range(1, 21)}
    world.clock.ahead = YOUNG + 1
    await world.start()
    await eventually(world.registered, lambda found: len(found) == len(expected))
    assert {name: spec["digest"] for name, spec in (await world.registered()).items()} == expected
