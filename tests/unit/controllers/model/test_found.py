"""Manifests without an object: registered for the namespace that stored them, and for no later one of its name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from paddlecloud.api import crd
from paddlecloud.controllers.model.controller import YOUNG, ModelController
from paddlecloud.controllers.model.stored import ModelStore
from paddlecloud.kube.clock import FakeClock
from paddlecloud.kube.resource import MODELVERSIONS, NAMESPACES
from paddlecloud.local.control_plane import ControlPlane
from paddlecloud.modelhub.catalogue import VersionKey
from paddlecloud.storage.sources import Entry
from paddlecloud.storage.stores import open_store
from unit.modelhub.hubs import Wrapped, folder_of, pushed

HOUR = 3600.0


class Dated(Wrapped):
    """A store whose manifests were written at times of the test."""

    times: dict[str, float]

    def list(self, prefix: str) -> Iterator[Entry]:
        return (entry._replace(mtime=self.times.get(entry.key, entry.mtime)) for entry in super().list(prefix))


async def test_what_an_earlier_namespace_of_the_name_stored_is_not_given_to_the_new_one(tmp_path: Path) -> None:
    clock = FakeClock()
    start = clock.now()
    platform = ControlPlane(tmp_path / "data", clock=clock, seed=1)
    await platform.start(objects=crd.generate())
    store = Dated(open_store(f"file://{tmp_path / 'store'}"))
    store.times = {}
    folder = folder_of(tmp_path / "model", {"w": b"weights"})
    for version, written in {"before": start - HOUR, "earlier": start + HOUR, "own": start + 3 * HOUR}.items():
        for namespace in ("team", "gone"):
            which = VersionKey(namespace, "ocr", version)
            pushed(store, which, folder)
            store.times[which.key] = written
    await clock.advance(2 * HOUR)
    client = platform.client()
    meta = {"name": "team"}
    await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
    await clock.advance(HOUR + YOUNG)
    await ModelController(client, store=ModelStore(store), clock=clock).scan()
    found = (await client.list(MODELVERSIONS)).items
    # What is older than the platform was there when it was set up anew.
    assert sorted(each["spec"]["version"] for each in found) == ["before", "own"]
    await client.close()
    await platform.stop()
