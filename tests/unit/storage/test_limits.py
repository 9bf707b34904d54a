"""Which files of this machine a folder source reads: what a link leads to counts, not what it is called."""

from __future__ import annotations

import pwd
from pathlib import Path

import pytest

from paddlecloud.api.folders import FolderRule
from paddlecloud.storage.errors import Denied
from paddlecloud.storage.sources import Entry, FolderSource


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a key, data, data of others, and links that lead out of the data."""
    for name in ("data/train/1.jpg", "other/2.jpg", ".ssh/id", "platform/admin.token"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "data" / "fine").symlink_to(tmp_path / "other")
    (tmp_path / "data" / "keys").symlink_to(tmp_path / ".ssh")
    (tmp_path / "data" / "id").symlink_to(tmp_path / ".ssh" / "id")
    (tmp_path / "data" / "token").symlink_to(tmp_path / "platform" / "admin.token")
    (tmp_path / "data" / "passwd").symlink_to("/etc/passwd")
    (tmp_path / "link").symlink_to(tmp_path / ".ssh")
    return tmp_path


def read(source: FolderSource) -> dict[str, str]:
    """What can be read, by key; "" for what is refused."""
    found = {}
    for entry in source.entries():
        if not entry.is_folder:
            try:
                found[entry.key] = "" if entry.refused else b"".join(source.read(entry)).decode()
            except Denied:
                found[entry.key] = ""
    return found


def test_links_are_followed_as_far_as_the_limits_go(home: Path) -> None:
    limits = FolderRule((str(home),), (str(home / "platform"),))
    assert read(FolderSource(str(home / "data"), limits)) == {
        "fine/2.jpg": "other/2.jpg",
        "id": "",
        "keys": "",
        "passwd": "",
        "token": "",
        "train/1.jpg": "data/train/1.jpg",
    }


def test_a_link_put_in_the_place_of_a_file_after_it_was_listed_is_not_followed(home: Path) -> None:
    source = FolderSource(str(home / "data"), FolderRule((str(home),)))
    (home / "data" / "train" / "1.jpg").unlink()
    (home / "data" / "train" / "1.jpg").symlink_to(home / ".ssh" / "id")
    with pytest.raises(Denied, match="may not read"):
        list(source.read(Entry("train/1.jpg", 5, 0)))


@pytest.mark.parametrize("path", ["link", ".ssh", "data/keys", ".ssh/id"])
def test_a_source_that_leads_to_a_hidden_folder_is_refused(home: Path, path: str) -> None:
    with pytest.raises(Denied, match="may not read"):
        list(FolderSource(str(home / path), FolderRule((str(home),))).entries())


def test_without_limits_everything_is_read(home: Path) -> None:
    assert read(FolderSource(str(home / "link"))) == {"id": ".ssh/id"}


@pytest.mark.parametrize("roots", [None, ("/",)])
def test_a_closed_folder_is_read_by_no_way_even_where_all_others_are_allowed(
    home: Path, roots: tuple[str, ...] | None
) -> None:
    rule = FolderRule(roots, (str(home / "platform"),))
    (home / "data" / "way").symlink_to(home / "platform")
    for path in ("platform", "platform/admin.token", "data/way", "data/token"):
        with pytest.raises(Denied, match="may not read"):
            list(FolderSource(str(home / path), rule).entries())
    assert "platform/admin.token" not in read(FolderSource(str(home), rule)).values()


def test_no_roots_allow_nothing(home: Path) -> None:
    with pytest.raises(Denied, match="may not read"):
        list(FolderSource(str(home / "data"), FolderRule(())).entries())


def hide(folder: Path) -> None:
    """Give a folder the hidden files that tools leave in folders of data."""
    (folder / ".DS_Store").write_text("store")
    (folder / ".ann").mkdir()
    (folder / ".ann" / "labels.csv").write_text("labels")


def test_hidden_files_inside_of_a_source_and_of_what_its_links_lead_to_are_data(home: Path) -> None:
    hide(home / "data")
    hide(home / "data" / "train")
    hide(home / "other")
    found = read(FolderSource(str(home / "data"), FolderRule((str(home),))))
    for folder in ("", "train/", "fine/"):
        assert found[f"{folder}.DS_Store"] == "store"
        assert found[f"{folder}.ann/labels.csv"] == "labels"
    assert (found["id"], found["keys"]) == ("", ""), "a link that leaves the source is judged by itself"


@pytest.mark.parametrize("roots", ["home", "above the home"])
def test_what_is_hidden_in_a_home_is_refused_by_name_also_where_the_home_itself_is_the_source(
    home: Path, roots: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = pwd.struct_passwd(("me", "x", 1, 1, "", str(home), "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwall", lambda: [user])
    hide(home)
    hide(home / "other")
    (home / "data" / "way").symlink_to(home)
    root = home if roots == "home" else home.parent
    for source, prefix in ((home, ""), (home / "data", "way/")):
        found = read(FolderSource(str(source), FolderRule((str(root),))))
        assert {found[f"{prefix}{name}"] for name in (".ssh", ".DS_Store", ".ann")} == {""}
        assert found[f"{prefix}other/.DS_Store"] == "store"
        assert ".ssh/id" not in found.values()


def test_a_root_inside_of_another_may_have_hidden_files(home: Path) -> None:
    """As the folder that `pdc up` was started in, inside of the home."""
    hide(home / "data")
    found = read(FolderSource(str(home / "data"), FolderRule((str(home), str(home / "data")))))
    assert (found[".DS_Store"], found[".ann/labels.csv"]) == ("store", "labels")


@pytest.mark.parametrize(("key", "why"), [("id", "hidden files"), ("passwd", "outside"), ("token", "the platform")])
def test_a_refusal_names_its_reason(home: Path, key: str, why: str) -> None:
    source = FolderSource(str(home / "data"), FolderRule((str(home),), (str(home / "platform"),)))
    with pytest.raises(Denied, match=f"/data/{key}: sets may not read .*{why}"):
        list(source.read(next(entry for entry in source.entries() if entry.key == key)))


def test_a_root_may_itself_be_hidden(home: Path) -> None:
    rule = FolderRule((str(home / ".ssh"),))
    assert read(FolderSource(str(home / ".ssh"), rule)) == {"id": ".ssh/id"}
    (home / ".ssh" / ".deeper").mkdir()
    with pytest.raises(Denied, match="may not read"):
        list(FolderSource(str(home / ".ssh" / ".deeper"), rule).entries())
