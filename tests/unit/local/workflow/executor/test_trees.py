"""Trees that tenants wrote: no link of them is followed outside, and none is copied without end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from paddlecloud.local.workflow.executor import sources, trees
from paddlecloud.local.workflow.executor.orders import ExecutorError
from paddlecloud.local.workflow.executor.sources import Missing
from paddlecloud.local.workflow.executor.trees import Unfit


def copied(source: Path, target: Path) -> None:
    with trees.entered(source, ()) as folder:
        trees.copy(folder, str(target))


def test_a_folder_is_copied_without_links_and_a_link_to_a_file_becomes_the_file(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "deep" / "empty").mkdir(parents=True)
    (source / "deep" / "run").write_text("#!/bin/sh")
    (source / "deep" / "run").chmod(0o755)
    (source / "over").symlink_to("deep")
    (source / "link").symlink_to("over/../deep/./run")
    (source / "over").unlink()
    (source / "over").mkdir()
    os.mkfifo(source / "pipe")
    copied(source, tmp_path / "target")
    target = tmp_path / "target"
    assert sorted(str(each.relative_to(target)) for each in target.rglob("*")) == [
        "deep", "deep/empty", "deep/run", "link", "over"
    ]  # fmt: skip
    assert not (target / "link").is_symlink()
    assert (target / "link").read_text() == "#!/bin/sh"
    assert os.access(target / "link", os.X_OK)


LINKS = {
    "to a file outside": {"link": "../secret"},
    "to an absolute path": {"link": "/etc/passwd"},
    "out and in again": {"link": "../source/file"},
    "through another link": {"here": ".", "link": "here/here/../../secret"},
    "to a folder": {"link": "folder"},
    "to nothing": {"link": "nothing"},
    "to itself": {"link": "link"},
}


@pytest.mark.parametrize("links", LINKS.values(), ids=LINKS.keys())
def test_other_links_of_a_folder_are_refused(links: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    source = tmp_path / "source"
    (source / "folder").mkdir(parents=True)
    (source / "file").touch()
    for name, text in links.items():
        (source / name).symlink_to(text)
    with pytest.raises(Unfit, match="link"):
        copied(source, tmp_path / "target")


def test_an_input_is_not_read_through_a_link_of_a_stored_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "ARTIFACTS", str(tmp_path))
    (tmp_path / "files" / "a").mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "files" / "a" / "data").symlink_to("../..")
    with pytest.raises(Missing):
        sources.fetch({"key": "a/data/secret"}, str(tmp_path / "target"))
    with pytest.raises(ExecutorError, match="link"):
        sources.fetch({"key": "a/data"}, str(tmp_path / "target"))
    with pytest.raises(Unfit, match="link"):
        sources.fetch({"key": "a"}, str(tmp_path / "second"))


def test_folders_inside_one_another_have_a_bound(tmp_path: Path) -> None:
    (tmp_path / "source").joinpath(*"d" * trees.MOST_DEPTH).mkdir(parents=True)
    copied(tmp_path / "source", tmp_path / "target")
    (tmp_path / "source").joinpath(*"d" * (trees.MOST_DEPTH + 1)).mkdir()
    with pytest.raises(Unfit, match="inside one another"):
        copied(tmp_path / "source", tmp_path / "second")
