"""Images without a container engine: what is written, and that it is always the same."""

from __future__ import annotations

import hashlib
import json
import os
import tarfile
from pathlib import Path

import pytest

from .harness.base_images import ImageCache
from .harness.oci import LAYER, BlobStore, Descriptor, Entry, Settings, tree


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "images")


def members(store: BlobStore, layer: Descriptor) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(store.path(layer.digest)) as tar:
        return {member.name: member for member in tar.getmembers()}


def test_a_blob_is_named_by_its_hash_and_whole(store: BlobStore) -> None:
    layer = store.add_layer([Entry("a/b", data=b"text", mode=0o644)])
    content = store.path(layer.digest).read_bytes()
    assert layer == Descriptor(LAYER, "sha256:" + hashlib.sha256(content).hexdigest(), len(content))


def test_folders_come_before_what_lies_in_them_and_once(store: BlobStore) -> None:
    layer = store.add_layer([Entry("a/b/c", data=b""), Entry("a/b"), Entry("a/d", link="/x")])
    assert list(members(store, layer)) == ["a", "a/b", "a/b/c", "a/d"]


def test_neither_clock_nor_owner_nor_order_of_the_disk_shows(store: BlobStore, tmp_path: Path) -> None:
    digests = []
    for number, names in enumerate((["x", "y"], ["y", "x"])):
        folder = tmp_path / f"tree{number}"
        folder.mkdir()
        for name in names:
            (folder / name).write_text(name)
            os.utime(folder / name, (number * 1000, number * 1000))
        layer = store.add_layer(tree(folder, "opt"))
        digests.append(layer.digest)
        for member in members(store, layer).values():
            assert (member.mtime, member.uid, member.gid, member.uname) == (0, 0, 0, "")
    assert digests[0] == digests[1]


def test_links_and_modes_are_kept_and_named_folders_left_out(store: BlobStore, tmp_path: Path) -> None:
    source = tmp_path / "tree"
    (source / "__pycache__").mkdir(parents=True)
    (source / "run").write_text("#!/bin/sh")
    (source / "run").chmod(0o755)
    (source / "data").write_text("")
    (source / "data").chmod(0o640)
    (source / "link").symlink_to("run")
    found = members(store, store.add_layer(tree(source, skip=["__pycache__"])))
    assert {name: oct(member.mode) for name, member in found.items() if member.isfile()} == {
        "run": "0o755",
        "data": "0o640",
    }
    assert found["link"].linkname == "run"
    assert "__pycache__" not in found


def test_an_image_says_what_to_run(store: BlobStore) -> None:
    layer = store.add_layer([Entry("app", data=b"x")])
    image = store.add_image([layer], Settings(entrypoint=["/app"], env={"A": "1"}, user="65532", workdir="/w"))
    manifest = json.loads(store.path(image.digest).read_bytes())
    config = json.loads(store.path(manifest["config"]["digest"]).read_bytes())
    assert manifest["layers"] == [layer.document()]
    assert config["rootfs"]["diff_ids"] == [layer.digest]
    assert config["config"]["Entrypoint"] == ["/app"]
    assert config["config"]["User"] == "65532"
    assert "A=1" in config["config"]["Env"]


def test_an_archive_holds_the_image_under_its_name(store: BlobStore, tmp_path: Path) -> None:
    image = store.add_image([store.add_layer([Entry("app", data=b"x")])], Settings())
    archive = tmp_path / "app.tar"
    store.export(image, "example.org/app:1", archive)
    with tarfile.open(archive) as tar:
        names = tar.getnames()
        index = json.load(tar.extractfile("index.json") or pytest.fail("no index"))
    (named,) = index["manifests"]
    assert named["annotations"] == {"io.containerd.image.name": "example.org/app:1"}
    assert f"blobs/sha256/{named['digest'][7:]}" in names
    assert len([name for name in names if name.startswith("blobs/sha256/")]) == 3


def test_a_failed_layer_leaves_nothing(store: BlobStore, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        store.add_layer([Entry("a", data=b"x"), Entry("b", source=tmp_path / "missing")])
    assert list((store.folder / "blobs" / "sha256").iterdir()) == []


def test_an_image_is_made_once_per_recipe(tmp_path: Path) -> None:
    made = []

    def make(store: BlobStore) -> Descriptor:
        made.append(1)
        return store.add_image([], Settings())

    first = ImageCache(tmp_path).ensure(("demo", 1), make)
    assert ImageCache(tmp_path).ensure(("demo", 1), make) == first
    assert len(made) == 1
    ImageCache(tmp_path).ensure(("demo", 2), make)
    assert len(made) == 2


def test_a_damaged_record_is_made_anew(tmp_path: Path) -> None:
    cache = ImageCache(tmp_path)
    first = cache.ensure("demo", lambda store: store.add_image([], Settings()))
    (record,) = (tmp_path / "made").iterdir()
    record.write_text("{")
    assert cache.ensure("demo", lambda store: store.add_image([], Settings())) == first


@pytest.mark.parametrize("harm", ["gone", "cut short"])
def test_an_image_that_lost_a_layer_is_made_anew(tmp_path: Path, harm: str) -> None:
    def make(store: BlobStore) -> Descriptor:
        return store.add_image([store.add_layer([Entry("app", data=b"x" * 1000)])], Settings())

    cache = ImageCache(tmp_path)
    image = cache.ensure("demo", make)
    manifest = json.loads(cache.store.path(image.digest).read_bytes())
    layer = cache.store.path(manifest["layers"][0]["digest"])
    whole = layer.read_bytes()
    layer.unlink()
    if harm == "cut short":
        layer.write_bytes(whole[:100])
    assert not cache.store.holds(image)
    assert cache.ensure("demo", make) == image
    assert layer.read_bytes() == whole


def test_what_no_offered_image_consists_of_goes_when_it_is_old(tmp_path: Path) -> None:
    def image(text: bytes) -> Descriptor:
        return cache.ensure(
            text, lambda store: store.add_image([shared, store.add_layer([Entry(text.decode())])], Settings())
        )

    cache = ImageCache(tmp_path)
    shared = cache.store.add_layer([Entry("app", data=b"x")])
    offered, forgotten = image(b"offered"), image(b"forgotten")
    cache.prune([offered.digest])
    assert cache.store.holds(forgotten), "it may be an image in the making"
    for blob in cache.store.blobs():
        os.utime(blob, (1, 1))
    fresh = image(b"fresh")
    cache.prune([offered.digest])
    assert cache.store.holds(offered)
    assert cache.store.parts(forgotten.digest) == []
    assert cache.store.path(fresh.digest).exists()
    assert image(b"forgotten") == forgotten
