"""What an earlier release wrote opens in this one: tests/data has the state of each, from a small platform."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from paddlecloud.api import crd
from paddlecloud.kube import errors
from paddlecloud.kube.resource import CONFIGMAPS, PADDLEJOBS
from paddlecloud.local.platform import Platform

RELEASES = sorted((Path(__file__).parent.parent / "data").glob("v*"))


@pytest.mark.parametrize("release", RELEASES, ids=lambda path: path.name)
async def test_the_state_of_an_earlier_release_opens_and_goes_on(release: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    (data / "state.db").write_bytes(lzma.decompress((release / "state.db.xz").read_bytes()))
    platform = Platform(data)
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
