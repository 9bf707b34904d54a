"""Versions in a folder and on a real S3 server: pushed once, never changed, pulled whole or not at all."""

from __future__ import annotations

import inspect
import json
import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness import need
from paddlecloud.modelhub import catalogue, layout, manifest
from paddlecloud.modelhub.errors import Damaged, Refused, UnknownVersion, VersionExists
from paddlecloud.modelhub.pull import pull
from paddlecloud.modelhub.push import next_number, push, read_local
from paddlecloud.modelhub.verification import verify
from paddlecloud.storage.errors import NoSpace, Unsupported
from paddlecloud.storage.stores import FolderStore, Store
from tools.trees import nested
from unit.modelhub.hubs import FACTS, V1, V2, Stopped, Wrapped, faults, folder_of, pushed

MODEL = {"inference.json": b"{}", "inference.pdiparams": b"w" * 3_000_000, "conf/serving.yaml": b"name: ocr\n"}


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_was_pushed_is_pulled_byte_for_byte(store: Store, tmp_path: Path) -> None:
    done = pushed(store, V1, folder_of(tmp_path / "model", MODEL))
    assert (done.created, done.uploaded) == (True, sum(map(len, MODEL.values())))
    found = catalogue.get(store, V1)
    assert found == done.manifest
    assert (found.framework, found.created_by, found.size) == ("paddle", "ada", done.uploaded)
    pulled = pull(store, found, tmp_path / "copy")
    assert contents(pulled.folder) == MODEL
    assert pulled.fetched == done.uploaded
    assert pull(store, found, tmp_path / "copy").fetched == 0
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "store") == ["copy", "model"]
    assert list(catalogue.versions(store)) == [V1]
    assert not list(verify(store, found))


def test_the_same_files_again_are_a_no_op_and_other_files_are_refused(store: Store, tmp_path: Path) -> None:
    first = pushed(store, V1, folder_of(tmp_path / "model", MODEL))
    again = push(store, V1, read_local(tmp_path / "model"), FACTS._replace(created_by="grace"))
    assert (again.created, again.uploaded, again.manifest) == (False, 0, first.manifest)
    folder_of(tmp_path / "model", {"inference.json": b'{"other": 1}'})
    with pytest.raises(VersionExists, match="ocr:1 exists with other files .* by ada .* push it as another version"):
        pushed(store, V1, tmp_path / "model")
    assert catalogue.get(store, V1) == first.manifest


def test_files_that_the_store_has_are_not_stored_twice(store: Store, tmp_path: Path) -> None:
    pushed(store, V1, folder_of(tmp_path / "model", {**MODEL, "again": MODEL["inference.json"]}))
    assert len(list(store.list(layout.BLOBS))) == len(MODEL)
    folder_of(tmp_path / "model", {"inference.json": b"[]"})
    assert pushed(store, V2, tmp_path / "model").uploaded == 2
    assert len(list(store.list(layout.BLOBS))) == len(MODEL) + 1
    assert not faults(store)


def test_of_pushes_with_other_files_at_the_same_time_exactly_one_wins(store: Store, tmp_path: Path) -> None:
    for number in range(6):
        folder_of(tmp_path / str(number), {"weights": str(number).encode() * 1000})
    start = threading.Barrier(6)

    def one(number: int) -> str:
        start.wait()
        try:
            return "created" if pushed(store, V1, tmp_path / str(number)).created else "same"
        except VersionExists:
            return "refused"

    with ThreadPoolExecutor(6) as pool:
        outcomes = sorted(pool.map(one, range(6)))
    assert outcomes == ["created"] + ["refused"] * 5
    assert not faults(store)


def test_pushes_of_the_same_files_at_the_same_time_all_succeed(store: Store, tmp_path: Path) -> None:
    model = folder_of(tmp_path / "model", MODEL)
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: pushed(store, V1, model), range(4)))
    assert sorted(one.created for one in done) == [False, False, False, True]
    assert not faults(store)


def test_a_killed_pull_is_continued_where_it_stopped(store: Store, tmp_path: Path) -> None:
    size = 5_000_000
    found = pushed(store, V1, folder_of(tmp_path / "model", {"weights": random.Random(1).randbytes(size)})).manifest

    class Breaks(Wrapped):
        def read(self, key: str, start: int = 0) -> Iterator[bytes]:
            for number, piece in enumerate(super().read(key, start)):
                if number == 2:
                    raise Stopped
                yield piece

    with pytest.raises(Stopped):
        pull(Breaks(store), found, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
    pulled = pull(store, found, tmp_path / "copy")
    assert 0 < pulled.fetched < size
    assert contents(pulled.folder) == contents(tmp_path / "model")


def test_a_beginning_with_wrong_bytes_is_fetched_again(store: Store, tmp_path: Path) -> None:
    found = pushed(store, V1, folder_of(tmp_path / "model", {"weights": b"abc" * 1000})).manifest
    parts = tmp_path / f".copy.{found.digest[7:23]}.pull" / "parts"
    folder_of(parts, {"0": b"wrong beginning"})
    assert pull(store, found, tmp_path / "copy").fetched > 3000
    assert contents(tmp_path / "copy") == contents(tmp_path / "model")


def test_pulls_to_one_place_at_the_same_time_give_one_folder(store: Store, tmp_path: Path) -> None:
    found = pushed(store, V1, folder_of(tmp_path / "model", MODEL)).manifest
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda _: pull(store, found, tmp_path / "copy"), range(3)))
    assert contents(tmp_path / "copy") == MODEL
    assert not list(tmp_path.glob(".copy*"))


def test_a_folder_with_something_else_is_not_touched(store: Store, tmp_path: Path) -> None:
    found = pushed(store, V1, folder_of(tmp_path / "model", MODEL)).manifest
    folder_of(tmp_path / "copy", {"mine": b"1"})
    with pytest.raises(Refused, match="exists and is not ocr:1; nothing is overwritten"):
        pull(store, found, tmp_path / "copy")
    assert contents(tmp_path / "copy") == {"mine": b"1"}


def test_a_lost_file_is_named_and_restored_by_the_same_push(store: Store, tmp_path: Path) -> None:
    found = pushed(store, V1, folder_of(tmp_path / "model", MODEL)).manifest
    lost = next(file for file in found.files if file.path == "inference.json")
    store.delete(layout.blob(lost.sha256, lost.blob))
    assert faults(store) == ["ocr:1 of namespace default: inference.json is missing"]
    with pytest.raises(Damaged, match="lost inference.json of ocr:1: push the same files as ocr:1 again"):
        pull(store, found, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
    assert pushed(store, V1, tmp_path / "model").uploaded == 2
    assert not faults(store)
    assert contents(pull(store, found, tmp_path / "copy").folder) == MODEL


@pytest.mark.parametrize(
    ("content", "what"), [(b"[]", "has other bytes than its digest says"), (b"{}!", "has 3 bytes instead of 2")]
)
def test_other_bytes_are_never_pulled(store: Store, tmp_path: Path, content: bytes, what: str) -> None:
    found = pushed(store, V1, folder_of(tmp_path / "model", MODEL)).manifest
    changed = next(file for file in found.files if file.path == "inference.json")
    store.delete(layout.blob(changed.sha256, changed.blob))
    store.upload(layout.blob(changed.sha256, changed.blob), [content])
    assert [fault.what for fault in verify(store, found)] == [what]
    with pytest.raises(Damaged, match="other bytes for inference.json"):
        pull(store, found, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_manifest_that_was_changed_is_not_used(store: Store, tmp_path: Path) -> None:
    found = pushed(store, V1, folder_of(tmp_path / "model", MODEL)).manifest
    body = json.loads(manifest.encode(found))
    body["files"][0]["sha256"] = "0" * 64
    store.delete(V1.key)
    store.create(V1.key, json.dumps(body).encode())
    with pytest.raises(Damaged, match="changed after it was stored"):
        catalogue.get(store, V1)
    with pytest.raises(Damaged):
        pushed(store, V1, tmp_path / "model")


def test_a_manifest_of_another_version_is_not_used(store: Store, tmp_path: Path) -> None:
    found = pushed(store, V1, folder_of(tmp_path / "model", MODEL)).manifest
    store.create(V2.key, manifest.encode(found))
    with pytest.raises(Damaged, match="is that of ocr:1"):
        catalogue.get(store, V2)


def test_a_version_that_is_not_there_is_named(store: Store) -> None:
    with pytest.raises(UnknownVersion, match="no version ocr:2 of namespace default"):
        catalogue.get(store, V2)
    assert not catalogue.remove(store, V2)


def test_a_server_that_overwrites_is_refused(store: Store, tmp_path: Path) -> None:
    class Overwrites(Wrapped):
        def create(self, key: str, content: bytes) -> bool:
            super().create(key, content)
            return True

    with pytest.raises(Unsupported, match="ignores If-None-Match"):
        pushed(Overwrites(store), V1, folder_of(tmp_path / "model", MODEL))
    assert not list(catalogue.versions(store))


def test_a_file_that_changes_while_it_is_pushed_makes_no_version(store: Store, tmp_path: Path) -> None:
    local = read_local(folder_of(tmp_path / "model", MODEL))
    folder_of(tmp_path / "model", {"inference.pdiparams": b"x" * 3_000_000})
    with pytest.raises(Refused, match="changed while it was pushed"):
        push(store, V1, local, FACTS)
    assert not list(catalogue.versions(store))
    assert not [entry for entry in store.list(layout.BLOBS) if entry.size > 100]


@pytest.mark.parametrize(
    ("files", "text"),
    [
        ({}, "there is no file in it"),
        ({"tab\there": b""}, "cannot be printed"),
        ({"\udcff": b""}, "cannot be printed"),
    ],
)
def test_what_is_no_model_is_refused(tmp_path: Path, files: dict[str, bytes], text: str) -> None:
    (tmp_path / "model").mkdir()
    with pytest.raises(Refused, match=text):
        read_local(folder_of(tmp_path / "model", files))


def test_a_single_file_is_a_model(tmp_path: Path) -> None:
    folder_of(tmp_path, {"net.onnx": b"1", "other": b"2"})
    assert [file.path for file in read_local(tmp_path / "net.onnx").files] == ["net.onnx"]
    with pytest.raises(Refused, match="does not exist"):
        read_local(tmp_path / "absent")


def test_what_never_ends_is_no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Refused, match="neither a file nor a folder"):
        read_local(tmp_path / "pipe")
    for level in range(16):  # 2 ** 16 paths lead to the last one; the kernel follows forty links of one path at most
        folder = tmp_path / "model" / str(level)
        folder.mkdir(parents=True)
        for name in ("a", "b"):
            (folder / name).symlink_to(f"../{level + 1}")
    folder_of(tmp_path / "model", {"16/net.onnx": b""})
    monkeypatch.setattr(manifest, "MOST_FILES", 1000)
    with pytest.raises(Refused, match=r"more than 2,000 files and folders"):
        read_local(tmp_path / "model")


def test_folders_that_lie_inside_one_another_very_often_are_no_model(tmp_path: Path) -> None:
    nested(tmp_path, 200)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 150)  # with Python's own a thousand folders are needed
    try:
        with pytest.raises(Refused, match="too many folders inside one another"):
            read_local(tmp_path / "d")
    finally:
        sys.setrecursionlimit(limit)


def test_a_full_disk_makes_no_version_and_damages_none(tmp_path: Path) -> None:
    need("root", have=os.getuid() == 0, hint="mounting a tmpfs takes root")
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "none", str(disk)], capture_output=True, check=False
    )
    need("root", have=mounted.returncode == 0, hint=f"this machine mounts no tmpfs: {mounted.stderr.decode()}")
    try:
        store = FolderStore(disk / "store")
        found = pushed(store, V1, folder_of(tmp_path / "model", {"weights": b"a" * 2_500_000})).manifest
        with pytest.raises(NoSpace, match="make room and try again"):
            pushed(store, V2, folder_of(tmp_path / "more", {"weights": b"b" * 2_500_000}))
        assert list(catalogue.versions(store)) == [V1]
        with pytest.raises(NoSpace):
            pull(store, found, disk / "copy")
        assert not (disk / "copy").exists()
        assert not faults(store)
        catalogue.remove(store, V1)
        for entry in list(store.list(layout.BLOBS)):
            store.delete(entry.key)
        assert pushed(store, V2, tmp_path / "more").created
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True, capture_output=True)


def test_numbers_go_on_from_the_highest() -> None:
    assert next_number([]) == "1"
    assert next_number(["1", "10", "9", "v2", "2026-11-18", "9" * 40]) == "11"


def test_an_upload_whose_source_fails_leaves_no_object(store: Store) -> None:
    def pieces() -> Iterable[bytes]:
        yield b"a" * 6_000_000
        raise Refused("no more")

    with pytest.raises(Refused, match="no more"):
        store.upload("blobs/x/y", pieces())
    assert store.size("blobs/x/y") is None
