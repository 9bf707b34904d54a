"""Folders that others may write to: what they put there leads nobody's push, pull or garbage collection outside."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from paddlecloud.modelhub import catalogue, layout
from paddlecloud.modelhub.errors import HubError, Refused
from paddlecloud.modelhub.garbage import collect
from paddlecloud.modelhub.pull import pull
from paddlecloud.modelhub.verification import verify
from paddlecloud.storage.errors import Denied, StorageError
from paddlecloud.storage.stores import FolderStore
from unit.modelhub.hubs import V1, V2, Later, folder_of, pushed

DAY = 86400.0
Hub = tuple[FolderStore, Path]


@pytest.fixture
def hub(tmp_path: Path) -> Hub:
    """With one version, beside a home whose files are older than any grace time."""
    store = FolderStore(tmp_path / "store")
    pushed(store, V1, folder_of(tmp_path / "model", {"net.onnx": b"weights"}))
    home = folder_of(tmp_path / "home", {"keys/id": b"key", "docs/deep/thesis": b"text", "notes": b"n"})
    for path in home.rglob("*"):
        os.utime(path, (1, 1))
    return store, tmp_path


def held_by(place: Path) -> list[str]:
    return sorted(str(path.relative_to(place)) for path in place.rglob("*") if path.is_file())


@pytest.mark.parametrize("name", ["drafts", "condemned", "blobs", "versions", "clock"])
@pytest.mark.parametrize("at_once", [False, True])
def test_gc_removes_nothing_behind_a_link(hub: Hub, name: str, at_once: bool) -> None:
    store, place = hub
    if (place / "store" / name).exists():
        (place / "store" / name).rename(place / "aside")
    (place / "store" / name).symlink_to(place / "home")
    before = held_by(place / "home")
    with pytest.raises((StorageError, HubError)):
        collect(Later(store, 9 * DAY), nobody_pushes=at_once)
    assert held_by(place / "home") == before


def test_gc_removes_nothing_behind_a_link_that_the_name_of_a_mark_leads_to(hub: Hub) -> None:
    store, place = hub
    folder_of(place / "store/condemned/a/keys", {"id": b""})
    (place / "store/condemned/keys").symlink_to(place / "home/keys")
    with pytest.raises(Denied, match="'keys' is a link"):
        collect(Later(store, 9 * DAY), nobody_pushes=True)
    assert (place / "home/keys/id").exists()


def test_versions_behind_a_link_are_not_taken_for_removed_ones(hub: Hub) -> None:
    store, place = hub
    (place / "store/versions/default").rename(place / "elsewhere")
    (place / "store/versions/default").symlink_to(place / "elsewhere")
    with pytest.raises(Denied, match="'default' is a link"):
        collect(Later(store, 9 * DAY), nobody_pushes=True)
    assert len(list(store.list(layout.BLOBS))) == 1


def test_nothing_is_written_behind_a_link(hub: Hub) -> None:
    store, place = hub
    (place / "store/versions/default/ocr").rename(place / "aside")
    (place / "store/versions/default/ocr").symlink_to(place / "home")
    before = held_by(place / "home")
    with pytest.raises(Denied):
        pushed(store, V2, place / "model")
    assert held_by(place / "home") == before


@pytest.mark.parametrize("made", [os.mkfifo, lambda path: os.symlink("/dev/zero", path)])
def test_what_never_ends_is_not_read(hub: Hub, made: Callable[[Path], None]) -> None:
    store, place = hub
    manifest = catalogue.get(store, V1)
    for path in ((place / "store").glob("versions/*/*/*"), (place / "store").glob("blobs/*/*/*")):
        (file,) = path
        file.unlink()
        made(file)
    with pytest.raises(Denied):
        catalogue.find(store, V1)
    with pytest.raises(Denied):
        list(verify(store, manifest))
    with pytest.raises(Denied):
        pull(store, manifest, place / "copy")


def test_very_deep_folders_end_a_listing(hub: Hub) -> None:
    store, place = hub
    folder_of(place / "store/condemned" / Path(*["d"] * 20), {"x": b""})
    with pytest.raises(Denied, match="too many folders"):
        list(store.list(layout.CONDEMNED))


@pytest.fixture
def prepared(hub: Hub) -> Path:
    """The folder of an unfinished pull into `public/ocr`, as somebody else can make it beforehand."""
    store, place = hub
    digest = catalogue.get(store, V1).digest.removeprefix("sha256:")[:16]
    draft = place / "public" / f".ocr.{digest}.pull"
    (draft / "files").mkdir(parents=True)
    (draft / "parts").mkdir()
    return draft


def test_a_pull_does_not_continue_what_another_user_began(
    hub: Hub, prepared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, place = hub
    (prepared / "files/net.onnx").write_bytes(b"not the weights")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(Refused, match="is of another user or open to others"):
        pull(store, catalogue.get(store, V1), place / "public/ocr")
    assert not (place / "public/ocr").exists()


@pytest.mark.parametrize("mode", [0o770, 0o777])
def test_a_pull_does_not_continue_where_others_may_write(hub: Hub, prepared: Path, mode: int) -> None:
    store, place = hub
    (prepared / "parts/0").symlink_to(place / "home/notes")
    prepared.chmod(mode)
    with pytest.raises(Refused, match="open to others"):
        pull(store, catalogue.get(store, V1), place / "public/ocr")
    assert (place / "home/notes").read_bytes() == b"n"


def test_a_link_in_the_place_of_an_unfinished_pull_is_not_followed(hub: Hub, prepared: Path) -> None:
    store, place = hub
    prepared.rename(place / "home/theirs")
    prepared.symlink_to(place / "home/theirs")
    with pytest.raises(StorageError):
        pull(store, catalogue.get(store, V1), place / "public/ocr")
    assert held_by(place / "home/theirs") == []


def test_an_unfinished_pull_is_closed_to_others(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    store, place = hub
    monkeypatch.setattr(os, "rename", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        pull(store, catalogue.get(store, V1), place / "copy")
    (draft,) = place.glob(".copy.*.pull")
    assert draft.stat().st_mode & 0o077 == 0
