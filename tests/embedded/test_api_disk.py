"""Disks that are full or read-only, on a real small file system; clocks that jump."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from embedded.raw import Raw, raw_client
from harness import eventually, need, pdc
from paddlecloud.kube import errors
from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import FakeClock
from paddlecloud.kube.resource import CONFIGMAPS, PODS, SERVICEACCOUNTS
from paddlecloud.local.control_plane import ControlPlane


def config(name: str, size: int = 0) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": {"filler": "x" * size}}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 MB."""
    need("root", have=os.getuid() == 0, hint="mounting a tmpfs takes root")
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16m", "none", str(place)], capture_output=True, check=False
    )
    need("root", have=mounted.returncode == 0, hint=f"this machine mounts no tmpfs: {mounted.stderr.decode()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True, capture_output=True)


async def fill(client: Client, kept: list[str]) -> None:
    """Create objects until the disk takes no more; `kept` are those that it took."""
    for _ in range(1000):
        name = f"c{len(kept)}"
        await client.create(CONFIGMAPS, config(name, 50_000), namespace="default")
        kept.append(name)


@pytest.mark.parametrize("durable", [False, True], ids=["default", "durable"])
async def test_a_full_disk_refuses_writes_answers_reads_and_recovers_by_itself(small_disk: Path, durable: bool) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"\0" * (6 << 20))
    platform = ControlPlane(small_disk / "data", durable=durable)
    await platform.start()
    client = platform.client()
    kept: list[str] = []
    with pytest.raises(errors.ServiceUnavailable, match=r"nothing was changed: .*full") as refused:
        await fill(client, kept)
    assert refused.value.retry_after == 1
    assert len(kept) > 20
    assert (await client.get(CONFIGMAPS, kept[0], "default"))["data"]
    with pytest.raises(errors.ServiceUnavailable):
        await fill(client, kept)  # the one that was refused may have been in company, and fit alone

    ballast.unlink()
    await client.create(CONFIGMAPS, config("after", 50_000), namespace="default")
    await client.delete(CONFIGMAPS, kept[0], namespace="default")
    await platform.stop()

    again = ControlPlane(small_disk / "data")
    await again.start()
    found = {item["metadata"]["name"] for item in (await again.client().list(CONFIGMAPS, "default")).items}
    assert found == {*kept[1:], "after", "kube-root-ca.crt"}
    await again.stop()


def test_a_directory_that_cannot_be_written_is_named_with_a_way_out(small_disk: Path) -> None:
    data = small_disk / "data"
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True, capture_output=True)
    result = pdc("up", "--data", str(data), "--port", "0", check=False)
    assert result.returncode != 0
    assert str(data) in result.stderr
    assert "ead-only file system" in result.stderr
    assert "--data" in result.stderr


def test_a_directory_of_somebody_else_is_named_with_a_way_out(tmp_path: Path) -> None:
    # Root may write anywhere; root without this capability, as in a container, may not.
    ordinary = ["setpriv", "--bounding-set=-dac_override", "--"] if os.getuid() == 0 else []
    command = [*ordinary, sys.executable, "-m", "paddlecloud.cli.main", "up", "--data", str(tmp_path / "data")]
    tmp_path.chmod(0o500)
    result = subprocess.run([*command, "--port", "0"], capture_output=True, text=True, timeout=90, check=False)
    tmp_path.chmod(0o700)
    assert result.returncode != 0
    assert "ermission denied" in result.stderr
    assert "--data" in result.stderr


def test_an_existing_platform_on_a_read_only_disk_is_left_as_it_is(small_disk: Path) -> None:
    data = small_disk / "data"
    pdc("up", "--data", str(data), "--port", "0")
    pdc("down", "--data", str(data))
    before = (data / "state.db").read_bytes()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True, capture_output=True)
    result = pdc("up", "--data", str(data), "--port", "0", check=False)
    assert result.returncode != 0
    assert "ead-only file system" in result.stderr
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True, capture_output=True)
    assert (data / "state.db").read_bytes() == before
    pdc("up", "--data", str(data), "--port", "0")
    pdc("down", "--data", str(data))


# --- clocks ---


@pytest.fixture
async def raw(inner: ControlPlane) -> AsyncIterator[Raw]:
    async with raw_client(inner) as found:
        yield found


YEAR = 365 * 24 * 3600.0


def jump(clock: FakeClock, seconds: float) -> None:
    """As when somebody sets the clock: nobody's sleep ends for it."""
    clock._now += seconds


@pytest.mark.parametrize("seconds", [-YEAR, -3600.0, 3600.0, 3 * YEAR])
async def test_objects_can_be_written_whatever_the_clock_does(client: Client, clock: FakeClock, seconds: float) -> None:
    first = await client.create(CONFIGMAPS, config("first"), namespace="default")
    version = first["metadata"]["resourceVersion"]
    jump(clock, seconds)
    second = await client.create(CONFIGMAPS, config("second"), namespace="default")
    assert int(second["metadata"]["resourceVersion"]) > int(version)
    changed = await client.patch(CONFIGMAPS, "first", {"data": {"k": "v"}}, namespace="default")
    assert changed["metadata"]["creationTimestamp"] == first["metadata"]["creationTimestamp"]
    seen = []
    async for event in client.watch(CONFIGMAPS, "default", resource_version=version, timeout=60):
        seen.append((event.type, event.object["metadata"]["name"]))
        if len(seen) == 2:
            break
    assert seen == [("ADDED", "second"), ("MODIFIED", "first")]


@pytest.mark.parametrize("seconds", [-YEAR, 3600.0])
async def test_a_pod_on_its_way_out_leaves_whatever_the_clock_does(
    client: Client, clock: FakeClock, seconds: float
) -> None:
    spec = {"nodeName": "n", "containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": 30}
    await client.create(PODS, {"metadata": {"name": "p"}, "spec": spec}, namespace="default")
    leaving = await client.delete(PODS, "p", namespace="default")
    assert leaving["metadata"]["deletionGracePeriodSeconds"] == 30
    jump(clock, seconds)
    sooner = await client.delete(PODS, "p", namespace="default", grace_period=5)
    assert sooner["metadata"]["deletionGracePeriodSeconds"] == 5
    await client.delete(PODS, "p", namespace="default", grace_period=0)
    with pytest.raises(errors.NotFound):
        await client.get(PODS, "p", "default")


async def test_tokens_outlive_a_clock_set_back_and_end_with_one_set_forward(
    client: Client, raw: Raw, clock: FakeClock
) -> None:

    async def accounts() -> list[dict[str, Any]]:
        return (await client.list(SERVICEACCOUNTS, "default")).items

    await eventually(accounts)
    path = "/api/v1/namespaces/default/serviceaccounts/default/token"
    token = (await raw("POST", path, {"spec": {"expirationSeconds": 3600}})).json["status"]["token"]
    for seconds, status in ((0.0, 200), (-YEAR, 200), (YEAR + 1800.0, 200), (3600.0, 401)):
        jump(clock, seconds)
        assert (await raw("GET", "/apis", token=token)).status == status, seconds
    assert (await raw("GET", "/apis")).status == 200, "the administrator's token has no end"
