"""What is kept of pods that are gone is read beside the event loop: authors of pods choose how much it is."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.kube.resource import CONFIGMAPS, Object
from paddlecloud.local.apiserver.auth.authentication import ADMIN
from paddlecloud.local.apiserver.streaming import kept
from paddlecloud.local.control_plane import ControlPlane
from paddlecloud.local.kubelet.streams.archive import POD, LogArchive
from unit.budgets.requests import CONFIGMAPS as PATH
from unit.budgets.requests import Sent, config
from unit.budgets.test_requests import LONGEST, Server, longest_callback


class Archived:
    def __init__(self, archive: LogArchive) -> None:
        self._archive = archive

    def kept_pods(self, owner_uid: str) -> Sequence[Object]:
        return [one.pod for one in self._archive.pods(owner_uid)]

    def read_kept_log(
        self, owner_uid: str, pod_uid: str, container: str | None = None, **options: Any
    ) -> AsyncIterator[bytes]:
        raise NotImplementedError  # no log is asked for here


async def test_listing_pods_that_are_gone_holds_up_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    platform = ControlPlane(tmp_path / "data", seed=1)
    await platform.start()
    server = Server(platform)
    archive = LogArchive(tmp_path / "logs", platform.client(ADMIN))
    platform.extensions.handlers.update(kept.handlers(platform.verbs, Archived(archive), [CONFIGMAPS]))
    made = json.loads((await server.send(Sent("", "POST", PATH, lambda: config("owner")), user=ADMIN)).body)
    for number in range(400):
        folder = tmp_path / "logs" / made["metadata"]["uid"] / f"pod-{number}"
        folder.mkdir(parents=True)
        meta = {"name": f"p{number}", "annotations": {f"a{at}": "x" * 20 for at in range(5_000)}}
        (folder / POD).write_text(json.dumps({"metadata": meta}))
    with longest_callback(monkeypatch) as longest:
        answer = await server.send(Sent("", "GET", f"{PATH}/owner/log", bytes, 200), user=ADMIN)
    await platform.stop()
    assert answer.body.count(b'"name":"p') == 400
    assert longest[0] < LONGEST


async def test_a_pod_is_named_by_its_uid_alone(tmp_path: Path) -> None:
    platform = ControlPlane(tmp_path / "data", seed=1)
    archive = LogArchive(tmp_path / "logs", platform.client(ADMIN))
    for owner, pod in (("a", "one"), ("b", "two")):
        (tmp_path / "logs" / owner / pod).mkdir(parents=True)
        (tmp_path / "logs" / owner / pod / POD).write_text(json.dumps({"metadata": {"name": pod}}))
    found = archive.pod("a", "one")
    assert found is not None
    assert found.pod["metadata"]["name"] == "one"
    assert [archive.pod("a", uid) for uid in ("two", "../b/two", "..", "", "one/")] == [None] * 5
