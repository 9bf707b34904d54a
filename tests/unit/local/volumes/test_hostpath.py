"""hostPath volumes below folders that everybody may write to: what another user put there first is not used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from paddlecloud.local.volumes.errors import VolumeError
from paddlecloud.local.volumes.hostpath import host_path

ANOTHER = 54321


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


def give_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make something another user's: by its owner, or, where only root could do that, by who we say we are."""
    if os.geteuid() == 0:
        os.lchown(path, ANOTHER, ANOTHER)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: ANOTHER)


@pytest.mark.parametrize("kind", ["Directory", "DirectoryOrCreate"])
def test_a_link_of_another_user_leads_nowhere(shared: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (shared / "link").symlink_to(shared.parent)
    give_away(shared / "link", monkeypatch)
    with pytest.raises(VolumeError, match="a link of another user"):
        host_path(str(shared / "link" / "cache"), kind)


def test_a_folder_of_another_user_is_no_cache_of_ours(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (shared / "paddlecloud-cache").mkdir()
    give_away(shared / "paddlecloud-cache", monkeypatch)
    with pytest.raises(VolumeError, match="a folder of another user"):
        host_path(str(shared / "paddlecloud-cache" / "default" / "set"), "DirectoryOrCreate")
    assert not (shared / "paddlecloud-cache" / "default").exists()
    assert host_path(str(shared / "paddlecloud-cache"), "Directory") == shared / "paddlecloud-cache", (
        "to read it is fine"
    )


def test_our_own_folders_and_links_are_used(shared: Path) -> None:
    (shared / "mine").mkdir()
    (shared / "link").symlink_to(shared / "mine")
    assert host_path(str(shared / "link"), "Directory") == shared / "link"
    assert host_path(str(shared / "new" / "set"), "DirectoryOrCreate").is_dir()
