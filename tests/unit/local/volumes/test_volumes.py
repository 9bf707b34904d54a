"""Files of volumes made of objects: swapped at once, kept inside, tokens renewed in time."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.kube.clock import FakeClock
from paddlecloud.kube.resource import Object
from paddlecloud.local.kubelet.pod.env import Facts
from paddlecloud.local.volumes.atomic import write_payload
from paddlecloud.local.volumes.errors import VolumeError
from paddlecloud.local.volumes.object_volumes import TOKEN_VOLUME, ObjectVolumes
from paddlecloud.local.volumes.payload import MOST_FILES, Contents, File, Room, keyed_payload, safe_path, volume_payload
from paddlecloud.local.volumes.tokens import Tokens
from paddlecloud.local.volumes.volume_types import VolumeManager


def visible(folder: Path) -> dict[str, str]:
    return {
        name: (folder / name).read_text()
        for name in sorted(os.listdir(folder))
        if not name.startswith("..") and (folder / name).is_file()
    }


def test_all_files_change_in_one_step(tmp_path: Path) -> None:
    assert write_payload(tmp_path, {"a": File(b"1"), "deep/b": File(b"1")})
    before = os.readlink(tmp_path / "..data")
    assert write_payload(tmp_path, {"a": File(b"2"), "c": File(b"2", 0o600)})
    assert os.readlink(tmp_path / "..data") != before
    assert visible(tmp_path) == {"a": "2", "c": "2"}
    assert (tmp_path / "c").stat().st_mode & 0o777 == 0o600
    assert not (tmp_path / "deep").exists()
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith("..")) == sorted(
        ["..data", os.readlink(tmp_path / "..data")]
    )


def test_every_user_of_the_pod_may_read_what_lies_in_private_folders_of_the_platform(tmp_path: Path) -> None:
    old = os.umask(0o077)
    try:
        write_payload(tmp_path / "v", {"a": File(b"1"), "deep/er/b": File(b"1", 0o400)})
    finally:
        os.umask(old)
    modes = {
        name: (tmp_path / "v" / name).stat().st_mode & 0o7777 for name in ("", "a", "deep", "deep/er", "deep/er/b")
    }
    assert modes == {"": 0o755, "a": 0o644, "deep": 0o755, "deep/er": 0o755, "deep/er/b": 0o400}


def test_the_group_of_the_pods_volumes_owns_the_files_and_may_read_them(tmp_path: Path) -> None:
    group = os.getgid()
    write_payload(tmp_path / "v", {"a": File(b"1", 0o400)}, group)
    found = (tmp_path / "v" / "a").stat()
    assert (found.st_mode & 0o7777, found.st_gid) == (0o440, group)
    assert (tmp_path / "v").stat().st_mode & 0o7777 == 0o2755
    assert not write_payload(tmp_path / "v", {"a": File(b"1", 0o400)}, group), "the same again"


def test_unchanged_content_touches_nothing(tmp_path: Path) -> None:
    payload = {"a": File(b"1")}
    assert write_payload(tmp_path, payload)
    before = os.readlink(tmp_path / "..data")
    assert not write_payload(tmp_path, payload)
    assert os.readlink(tmp_path / "..data") == before


@pytest.mark.parametrize("path", ["/abs", "../up", "a/../b", "..hidden", "a//b", ".", ""])
def test_paths_that_would_leave_the_volume_are_refused(path: str) -> None:
    with pytest.raises(VolumeError):
        safe_path(path)


def test_binary_data_and_secrets_are_decoded() -> None:
    raw = base64.b64encode(b"\x00\xff").decode()
    assert Contents({"kind": "ConfigMap", "data": {"a": "x"}, "binaryData": {"b": raw}}) == {
        "a": b"x",
        "b": b"\x00\xff",
    }
    assert Contents({"kind": "Secret", "data": {"a": raw}}) == {"a": b"\x00\xff"}


def test_a_missing_key_is_an_error_unless_optional() -> None:
    obj = {"kind": "ConfigMap", "data": {"a": "x"}}
    items, contents, room = [{"key": "none", "path": "p"}], Contents(obj), Room()
    with pytest.raises(VolumeError, match="non-existent configmap key: none"):
        keyed_payload("configmap", "c", contents, items=items, optional=False, mode=0o644, room=room)
    assert keyed_payload("configmap", "c", contents, items=items, optional=True, mode=0o644, room=room) == {}


def projected(*sources: Object, objects: dict[str, Object], annotation: str = "") -> dict[str, File]:
    pod = {"metadata": {"name": "p", "annotations": {"a": annotation}}, "spec": {}}
    volume = {"name": "v", "projected": {"sources": list(sources)}}
    return volume_payload(
        volume, pod, Facts(), lookup=lambda _, name: objects.get(name), token=lambda _: "", room=Room()
    )


def named(key: str, path: str) -> Object:
    return {"secret": {"name": "s", "items": [{"key": key, "path": path}]}}


def secret_of(**values: bytes) -> Object:
    return {"kind": "Secret", "data": {key: base64.b64encode(value).decode() for key, value in values.items()}}


def test_an_object_that_many_sources_name_is_decoded_once_and_only_what_they_ask_for() -> None:
    secret = secret_of(k=b"v")
    secret["data"]["other"] = "a"  # no base64: decoding would fail
    found = projected(named("k", "a"), named("k", "b"), objects={"s": secret})
    assert {path: file.data for path, file in found.items()} == {"a": b"v", "b": b"v"}
    assert found["a"].data is found["b"].data


ANNOTATIONS = {"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.annotations"}}]}}


@pytest.mark.parametrize(
    "sources",
    [
        [named("k", f"p{number % 3}") for number in range(2000)],
        [{"secret": {"name": "s"}}] * 2000,
        [ANNOTATIONS] * 2000,
        [{"secret": {"name": "many"}}],
        [{"configMap": {"name": "few"}}] * MOST_FILES,
    ],
    ids=["one key", "all keys", "annotations", "many files", "files that replace one another"],
)
def test_few_bytes_of_a_pod_do_not_become_many_of_the_platform(sources: list[Object]) -> None:
    objects = {
        "s": secret_of(k=b"v" * 1_000_000),
        "many": {"kind": "ConfigMap", "data": {f"k{number}": "" for number in range(MOST_FILES + 1)}},
        "few": {"kind": "ConfigMap", "data": {"a": "", "b": ""}},
    }
    with pytest.raises(VolumeError, match="more than 10000 files or 64 MiB together: leave out sources"):
        projected(*sources, objects=objects, annotation="v" * 250_000)


class LargeSecrets:
    """Every Secret has a megabyte."""

    async def configmap(self, namespace: str, name: str) -> Object | None:
        return None

    async def secret(self, namespace: str, name: str) -> Object | None:
        return secret_of(k=b"v" * 1_000_000)


async def test_the_volumes_of_a_pod_share_what_they_may_have(tmp_path: Path) -> None:
    volumes = ObjectVolumes(LargeSecrets(), Tokens(None, FakeClock()), host_ip=lambda _: "", allocatable={})
    pod = {"metadata": {"name": "p", "namespace": "d", "uid": "u"}, "spec": {}}

    async def write(name: str, *, times: int) -> None:
        volume = {"name": name, "projected": {"sources": [named("k", f"p{number}") for number in range(times)]}}
        await volumes.write(volume, pod, tmp_path / name, pod_ip="")

    await write("a", times=40)
    with pytest.raises(VolumeError, match="64 MiB together"):
        await write("b", times=40)
    await write("a", times=2)
    await write("b", times=40)
    assert len(visible(tmp_path / "a")) == 2
    assert len(visible(tmp_path / "b")) == 40


class NoObjects:
    async def configmap(self, namespace: str, name: str) -> Object | None:
        return None

    async def secret(self, namespace: str, name: str) -> Object | None:
        return None

    async def claim(self, namespace: str, name: str) -> Object | None:
        return None

    async def persistent_volume(self, name: str) -> Object | None:
        return None


async def test_a_token_is_renewed_in_time_and_not_before(tmp_path: Path) -> None:
    clock = FakeClock()
    issued: list[int] = []

    async def issue(pod: Object, audience: str, seconds: int) -> str:
        issued.append(seconds)
        return f"token-{len(issued)}"

    manager = VolumeManager(NoObjects(), token=issue, clock=clock)
    pod: dict[str, Any] = {
        "metadata": {"name": "p", "namespace": "d", "uid": "u"},
        "spec": {"containers": [{"name": "c"}]},
    }
    await manager.prepare(pod, tmp_path, pod_ip="127.64.0.1")
    token = tmp_path / TOKEN_VOLUME / "token"
    await manager.refresh(pod, tmp_path, pod_ip="127.64.0.1")
    assert token.read_text() == "token-1"
    await clock.advance(0.8 * issued[0] + 1)
    await manager.refresh(pod, tmp_path, pod_ip="127.64.0.1")
    assert token.read_text() == "token-2"


async def test_a_pod_that_wants_no_token_has_none(tmp_path: Path) -> None:
    async def issue(pod: Object, audience: str, seconds: int) -> str:
        raise AssertionError("nobody asked")

    manager = VolumeManager(NoObjects(), token=issue)
    pod = {
        "metadata": {"name": "p", "namespace": "d", "uid": "u"},
        "spec": {"containers": [{"name": "c"}], "automountServiceAccountToken": False},
    }
    assert (await manager.prepare(pod, tmp_path, pod_ip="127.64.0.1")).volumes == {}


async def test_an_nfs_share_is_a_folder_somebody_put_there(tmp_path: Path) -> None:
    data = tmp_path / "somewhere"
    data.mkdir()
    (tmp_path / "nfs" / "10.0.0.1").mkdir(parents=True)
    (tmp_path / "nfs" / "10.0.0.1" / "nas").symlink_to(data)
    manager = VolumeManager(NoObjects(), shares=tmp_path / "nfs")

    async def mount(path: str) -> str:
        pod = {
            "metadata": {"name": "p", "namespace": "d", "uid": "u"},
            "spec": {"volumes": [{"name": "data", "nfs": {"server": "10.0.0.1", "path": path}}]},
        }
        prepared = await manager.prepare(pod, tmp_path / "volumes", pod_ip="")
        return prepared.volumes["data"].path

    assert await mount("/nas") == str(data)
    with pytest.raises(VolumeError, match="put its data, or a link to it, at .*/nfs/10.0.0.1/other"):
        await mount("/other")
    with pytest.raises(VolumeError, match="without '..'"):
        await mount("/nas/../../../etc")
