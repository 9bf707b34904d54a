"""What an earlier release wrote opens in this one: tests/data has the state of each, from a small platform."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

import paddlecloud
from paddlecloud.api import crd
from paddlecloud.kube import errors
from paddlecloud.kube.resource import CONFIGMAPS, PADDLEJOBS
from paddlecloud.local.control_plane import ControlPlane
from tools import keep

RELEASES = sorted(path.name.removeprefix("v") for path in keep.KEPT.glob("v*"))


def test_every_release_is_kept() -> None:
    assert paddlecloud.__version__ in RELEASES, "run tests/tools/keep.py before the tag"


@pytest.mark.parametrize("release", [*RELEASES, "now"])
async def test_the_state_of_an_earlier_release_opens_and_goes_on(release: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    if release == "now":  # what the next release would keep
        await keep.live(data)
    else:
        data.mkdir(mode=0o700)
        (data / "state.db").write_bytes(lzma.decompress(keep.place(release).read_bytes()))
    platform = ControlPlane(data)
    await platform.start(objects=crd.generate())
    try:
        client = platform.client(user_agent="test")
        kept = await client.get(CONFIGMAPS, "kept", "default")
        assert kept["data"] == {"a": "2"}
        with pytest.raises(errors.NotFound):
            await client.get(CONFIGMAPS, "gone", "default")
        job = await client.get(PADDLEJOBS, "wide-ande-deep", "default")
        assert job["spec"]["ps"]["replicas"] == 2
        changed = await client.patch(CONFIGMAPS, "kept", {"data": {"a": "3"}}, namespace="default")
        assert int(changed["metadata"]["resourceVersion"]) > int(kept["metadata"]["resourceVersion"])
    finally:
        await platform.stop()


async def test_definitions_of_kinds_follow_the_release(tmp_path: Path) -> None:
    """A kind gains a column in a new release; a platform that ran before shows it, its objects untouched."""
    older, newer = crd.generate(), crd.generate()
    job = next(d for d in older if d["metadata"]["name"] == "paddlejobs.batch.paddlepaddle.org")
    job["spec"]["versions"][0]["additionalPrinterColumns"] = []
    for definitions, columns in ((older, 0), (newer, 5)):
        platform = ControlPlane(tmp_path / "data")
        await platform.start(objects=definitions)
        kind = platform.registry.find("batch.paddlepaddle.org", "v1", "paddlejobs")
        assert kind is not None
        assert len([c for c in kind.columns if not c.priority]) >= columns
        await platform.stop()
    assert [c.name for c in kind.columns if not c.priority][:2] == ["Status", "Mode"]
