"""Trees that programs of pods made are removed, whatever their depth and modes, and nothing outside of them."""

from __future__ import annotations

import os
from pathlib import Path

from paddlecloud.local.removal import remove_tree
from unit.local.deep import deep_tree


def test_a_tree_is_removed_and_what_its_links_lead_to_stays(tmp_path: Path) -> None:
    (tmp_path / "kept" / "inner").mkdir(parents=True)
    tree = tmp_path / "tree"
    (tree / "a" / "b" / "c").mkdir(parents=True)
    (tree / "a" / "b" / "link").symlink_to(tmp_path / "kept")
    (tree / "a" / "file").touch()
    (tree / "a" / "b").chmod(0)
    (tree / "a").chmod(0o500)
    remove_tree(tree)
    assert not tree.exists()
    assert (tmp_path / "kept" / "inner").is_dir()


def test_a_link_is_removed_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "kept" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to("kept")
    remove_tree(tmp_path / "link")
    assert sorted(os.listdir(tmp_path)) == ["kept"]
    assert (tmp_path / "kept" / "inner").is_dir()


def test_what_is_not_there_is_no_error(tmp_path: Path) -> None:
    remove_tree(tmp_path / "nothing")
    remove_tree(tmp_path / "nothing" / "inside")


def test_a_tree_too_deep_for_recursion_is_removed(tmp_path: Path) -> None:
    with deep_tree(tmp_path / "tree"):
        remove_tree(tmp_path / "tree")
        assert not (tmp_path / "tree").exists()
