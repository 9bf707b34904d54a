"""Long lists of one tenant have a share of the memory, and those of others do not wait for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from paddlecloud.local.apiserver.auth.authentication import ADMIN, MASTERS, User
from paddlecloud.local.apiserver.http.request import Request, Response
from paddlecloud.local.apiserver.objects import long_lists
from paddlecloud.local.control_plane import ControlPlane

PATH = "/api/v1/namespaces/default/configmaps"
SHAPES = {
    "objects": "application/json",
    "metadata": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "rows": "application/json;as=Table;v=v1;g=meta.k8s.io",
}
ONE, TWO, OTHER = (
    User(f"system:serviceaccount:{name}", groups=(MASTERS,)) for name in ("team:one", "team:two", "other:one")
)


@pytest.fixture
async def platform(tmp_path: Path) -> AsyncIterator[ControlPlane]:
    platform = ControlPlane(tmp_path / "data", seed=1)
    await platform.start()
    for number in range(8):
        meta = {"name": f"c{number}", "annotations": {"a": "x" * 200_000}}
        await platform.client(ADMIN).raw("POST", PATH, body={"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})
    yield platform
    await platform.stop()


def asked(platform: ControlPlane, user: User, accept: str) -> asyncio.Task[Response]:
    request = Request("GET", PATH, {}, {"accept": accept}, b"", user)
    return asyncio.ensure_future(platform.api.handle(request))


@pytest.mark.parametrize("shape", SHAPES)
async def test_a_tenant_has_its_share_and_the_next_list_comes_when_one_is_gone(
    platform: ControlPlane, monkeypatch: pytest.MonkeyPatch, shape: str
) -> None:
    monkeypatch.setattr(long_lists, "MOST_OF_A_TENANT", 4 * 1024 * 1024)  # two of them
    tasks = [asked(platform, user, SHAPES[shape]) for user in (ONE, TWO) * 10]
    other = await asked(platform, OTHER, SHAPES[shape])
    assert (other.status, len(other.body) > 1_600_000) == (200, True)
    await asyncio.wait(tasks[:2])
    for _ in range(100):  # a third one would be done by now
        await asyncio.sleep(0)
    assert sum(task.done() for task in tasks) == 2
    for at, task in enumerate(tasks):
        assert (await task).status == 200
        tasks[at] = asyncio.ensure_future(asyncio.sleep(0))  # type: ignore[call-overload]  # nobody has it any more
        del task


async def test_a_list_that_nobody_waits_for_any_more_keeps_no_place(
    platform: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_lists, "MOST_OF_A_TENANT", 1)
    first = await asked(platform, ONE, SHAPES["metadata"])
    gone, last = asked(platform, ONE, SHAPES["metadata"]), asked(platform, TWO, SHAPES["metadata"])
    for _ in range(10):
        await asyncio.sleep(0)
    gone.cancel()
    del first
    assert (await last).status == 200


async def test_short_lists_never_wait(platform: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_lists, "LONG", 4 * 1024 * 1024)
    monkeypatch.setattr(long_lists, "MOST_OF_A_TENANT", 1)
    answers = await asyncio.gather(*(asked(platform, ONE, SHAPES["objects"]) for _ in range(5)))
    assert {answer.status for answer in answers} == {200}
