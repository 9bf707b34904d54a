"""`pdc cp`: trees go there and back unchanged, and as kubectl copies them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from embedded.acts.acting import Pdc
from harness import Kubectl


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    (folder / "sub" / "empty").mkdir(parents=True)
    (folder / "a b.txt").write_text("spaces\n")
    (folder / "sub" / "big").write_bytes(os.urandom(3_000_000))
    (folder / "sub" / "run.sh").write_text("#!/bin/sh\n")
    (folder / "sub" / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("sub/run.sh")
    (folder / "-dash").write_text("-\n")
    return folder


def contents(folder: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        mode = path.lstat().st_mode & 0o777
        found[name] = os.readlink(path) if path.is_symlink() else (mode, path.read_bytes() if path.is_file() else None)
    return found


def test_a_folder_goes_there_and_back_unchanged(run: Pdc, sleeper: str, tree: Path, tmp_path: Path) -> None:
    assert run("cp", str(tree), f"{sleeper}:/tmp/copy").returncode == 0
    assert run("cp", f"{sleeper}:/tmp/copy", "back").returncode == 0
    assert contents(tmp_path / "back") == contents(tree)


def test_a_directory_takes_the_copy_in(run: Pdc, sleeper: str, tree: Path, tmp_path: Path) -> None:
    run("cp", str(tree / "a b.txt"), f"{sleeper}:/tmp/")
    run("cp", str(tree / "a b.txt"), f"{sleeper}:/tmp")
    assert run("exec", sleeper, "--", "cat", "/tmp/a b.txt").stdout == "spaces\n"
    (tmp_path / "here").mkdir()
    run("cp", f"{sleeper}:/tmp/a b.txt", "here")
    run("cp", f"{sleeper}:/tmp/a b.txt", "here/other")
    assert contents(tmp_path / "here").keys() == {"a b.txt", "other"}


def test_copies_agree_with_kubectl(
    run: Pdc, kubectl: Kubectl, namespace: str, sleeper: str, tree: Path, tmp_path: Path
) -> None:
    run("cp", str(tree / "sub"), f"{sleeper}:/tmp/sub")
    kubectl("cp", f"{namespace}/{sleeper}:/tmp/sub", str(tmp_path / "theirs"))
    run("cp", f"{namespace}/{sleeper}:/tmp/sub", "ours")
    theirs, ours = files(tmp_path / "theirs"), files(tmp_path / "ours")
    assert ours == theirs
    assert (tmp_path / "ours" / "run.sh").stat().st_mode & 0o777 == 0o755, "which kubectl forgets"


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_links_that_lead_out_are_left_out(run: Pdc, sleeper: str, tmp_path: Path) -> None:
    run("exec", sleeper, "--", "sh", "-c", "mkdir /tmp/evil && ln -s /etc /tmp/evil/out && echo x > /tmp/evil/in")
    done = run("cp", f"{sleeper}:/tmp/evil", "got")
    assert done.returncode == 0
    assert "left out" in done.stderr
    assert contents(tmp_path / "got").keys() == {"in"}


@pytest.mark.parametrize(
    ("source", "destination", "code", "complaint"),
    [
        ("sleeper:/tmp/nothing", "here", 1, "No such file"),
        ("nothing", "sleeper:/tmp/x", 1, "there is no nothing"),
        ("tree/nothing", "sleeper:/tmp/x", 1, "next:  ls tree\n"),
        ("tree/sub", "sleeper:/no/such/folder/x", 1, "No such file"),
        ("sleeper:/etc/hostname", "no/such/folder/x", 1, "there is no directory"),
        ("sleeper:/etc/hostname", "no/such/folder/x", 1, "next:  mkdir -p no/such/folder\n"),
        ("tree", "other", 2, "one side"),
        ("sleeper:/a", "sleeper:/b", 2, "one side"),
        ("sleeper:", "x", 2, "names no pod or no path"),
        ("nobody:/x", "x", 3, "nobody"),
    ],
)
def test_mistakes_of_cp(
    run: Pdc, sleeper: str, tree: Path, source: str, destination: str, code: int, complaint: str
) -> None:
    done = run("cp", source, destination)
    assert done.returncode == code, done.stderr
    assert complaint in done.stderr
