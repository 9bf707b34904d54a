"""Artifacts as files: what is packed comes back the same; hostile archives write nothing outside of their folder."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from paddlecloud.local.workflow.executor import archives
from paddlecloud.local.workflow.executor.keys import key_problem, names_of
from paddlecloud.local.workflow.executor.orders import ExecutorError


def tree(folder: Path) -> Path:
    source = folder / "source"
    (source / "empty").mkdir(parents=True)
    (source / "a name with spaces").write_text("one")
    (source / "名字\n").write_text("two")
    (source / "run").write_text("#!/bin/sh")
    (source / "run").chmod(0o755)
    os.link(source / "run", source / "second")
    return source


def shape(folder: Path) -> dict[str, object]:
    return {
        str(path.relative_to(folder)): path.read_text() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


@pytest.mark.parametrize(("strategy", "level"), [("tar", 6), ("tar", 0), ("zip", 0)])
def test_a_folder_comes_back_as_it_was(strategy: str, level: int, tmp_path: Path) -> None:
    source = tree(tmp_path)
    digest, size = archives.pack(str(source), str(tmp_path / "packed"), strategy, level)
    assert digest.startswith("sha256:")
    assert size == (tmp_path / "packed").stat().st_size
    archives.unpack(str(tmp_path / "packed"), str(tmp_path / "target"), str(tmp_path), "")
    assert shape(tmp_path / "target") == shape(source)
    assert os.access(tmp_path / "target" / "run", os.X_OK)


@pytest.mark.parametrize("strategy", ["tar", "zip", "none"])
def test_a_file_comes_back_as_a_file(strategy: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"\x1f\x8b no gzip, though it begins so")
    archives.pack(str(tmp_path / "file"), str(tmp_path / "packed"), strategy, 6)
    archives.unpack(str(tmp_path / "packed"), str(tmp_path / "target"), str(tmp_path), "")
    assert (tmp_path / "target").read_bytes() == (tmp_path / "file").read_bytes()


def test_an_archive_that_is_stored_without_a_strategy_stays_an_archive(tmp_path: Path) -> None:
    archives.pack(str(tree(tmp_path)), str(tmp_path / "own.tgz"), "tar", 6)
    before = (tmp_path / "own.tgz").read_bytes()
    archives.unpack(str(tmp_path / "own.tgz"), str(tmp_path / "target"), str(tmp_path), "none")
    assert (tmp_path / "target").read_bytes() == before


def member(
    name: str, kind: bytes = tarfile.REGTYPE, link: str = "", data: bytes = b"x"
) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, len(data) if kind == tarfile.REGTYPE else 0
    return info, data


HOSTILE = {
    "a name that climbs": [member("../outside")],
    "an absolute name": [member("/tmp/outside")],
    "a link that leads outside": [member("link", tarfile.SYMTYPE, "../../outside")],
    "an absolute link": [member("link", tarfile.SYMTYPE, "/etc/passwd")],
    "a member behind a link": [member("d", tarfile.DIRTYPE), member("l", tarfile.SYMTYPE, "d"), member("l/x")],
    "a hard link outside": [member("hard", tarfile.LNKTYPE, "../../etc/passwd")],
    "a device": [member("null", tarfile.CHRTYPE)],
    "a pipe": [member("pipe", tarfile.FIFOTYPE)],
    "a link that leads outside through another": [
        member("x", tarfile.SYMTYPE, "."),
        member("y", tarfile.SYMTYPE, "x/x/../../etc/passwd"),
    ],
    "a link out of the one folder, which becomes the artifact": [
        member("d/f"),
        member("d/l", tarfile.SYMTYPE, "../f"),
    ],
    "a link out of the folder and in again": [member("f"), member("l", tarfile.SYMTYPE, "../target/f")],
    "a link and nothing else": [member("l", tarfile.SYMTYPE, "f")],
    "a link to itself": [member("f"), member("l", tarfile.SYMTYPE, "l")],
    "a hard link to a link": [
        member("a/b/l", tarfile.SYMTYPE, "../../f"),
        member("l", tarfile.LNKTYPE, "a/b/l"),
        member("f"),
    ],
    "a folder in place of a link": [
        member("d/f"),
        member("l", tarfile.SYMTYPE, "d"),
        member("l", tarfile.DIRTYPE),
    ],
    "folders inside one another": [member("/".join("d" * 300))],
    "a name twice": [member("same"), member("same")],
}


@pytest.mark.parametrize("members", HOSTILE.values(), ids=HOSTILE.keys())
def test_what_leads_outside_is_refused(members: list[tuple[tarfile.TarInfo, bytes]], tmp_path: Path) -> None:
    place = tmp_path / "inner" / "deep"
    place.mkdir(parents=True)
    with tarfile.open(place / "packed", "w:gz") as packed:
        for info, data in members:
            packed.addfile(info, io.BytesIO(data) if info.isfile() else None)
    with pytest.raises(ExecutorError):
        archives.unpack(str(place / "packed"), str(place / "target"), str(place), "")
    assert not (tmp_path / "outside").exists()
    assert not (place / "target").exists()


def test_links_inside_of_an_archive_are_kept(tmp_path: Path) -> None:
    source = tree(tmp_path)
    (source / "deep" / "er").mkdir(parents=True)
    (source / "deep" / "er" / "up").symlink_to("../../run")
    (source / "folder").symlink_to("deep/er")
    (source / "through").symlink_to("folder/up")
    (source / "dangling").symlink_to("deep/nothing")
    archives.pack(str(source), str(tmp_path / "packed"), "tar", 6)
    archives.unpack(str(tmp_path / "packed"), str(tmp_path / "target"), str(tmp_path), "")
    for name in ("deep/er/up", "folder", "through", "dangling"):
        assert os.readlink(tmp_path / "target" / name) == os.readlink(source / name)
    assert (tmp_path / "target" / "through").read_text() == "#!/bin/sh"


def write_tar(place: Path, members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    with tarfile.open(place, "w:gz", format=tarfile.PAX_FORMAT) as packed:
        for info, data in members:
            packed.addfile(info, io.BytesIO(data) if info.isfile() else None)


def test_a_hard_link_becomes_a_file(tmp_path: Path) -> None:
    write_tar(tmp_path / "packed", [member("f", data=b"text"), member("h", tarfile.LNKTYPE, "f")])
    archives.unpack(str(tmp_path / "packed"), str(tmp_path / "target"), str(tmp_path), "")
    assert (tmp_path / "target" / "h").read_bytes() == b"text"


def test_hard_links_are_counted_as_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "SMALL", 4 << 20)
    links = [member(f"h{number}", tarfile.LNKTYPE, "f") for number in range(20)]
    write_tar(tmp_path / "packed", [member("f", data=bytes(1 << 20)), *links])
    with pytest.raises(ExecutorError, match="more than it may"):
        archives.unpack(str(tmp_path / "packed"), str(tmp_path / "target"), str(tmp_path), "")


@pytest.mark.parametrize("kind", ["of one member", "of the archive", "many of the archive"])
def test_long_headers_are_refused_before_they_are_read(kind: str, tmp_path: Path) -> None:
    item = tarfile.TarInfo("f")
    with gzip.open(tmp_path / "packed", "wb") as packed:
        packed.write(member("first")[0].tobuf() + b"x" + bytes(511))
        for number in range(40 if "many" in kind else 1):
            records = {f"k{number}": "v" * ((32 << 10) if "many" in kind else (2 << 20))}
            if kind == "of one member":
                item.pax_headers = records
                packed.write(item.tobuf(tarfile.PAX_FORMAT))
            else:
                packed.write(tarfile.TarInfo.create_pax_global_header(records))
        packed.write(item.tobuf() + bytes(1024))
    with pytest.raises(ExecutorError, match="headers of more than"):
        archives.unpack(str(tmp_path / "packed"), str(tmp_path / "target"), str(tmp_path), "")


def test_a_zip_that_climbs_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "packed", "w") as packed:
        packed.writestr("../outside", "x")
    with pytest.raises(ExecutorError):
        archives.unpack(str(tmp_path / "packed"), str(tmp_path / "target"), str(tmp_path), "")


def test_a_damaged_archive_says_so(tmp_path: Path) -> None:
    archives.pack(str(tree(tmp_path)), str(tmp_path / "packed"), "tar", 6)
    whole = (tmp_path / "packed").read_bytes()
    (tmp_path / "packed").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ExecutorError, match="damaged"):
        archives.unpack(str(tmp_path / "packed"), str(tmp_path / "target"), str(tmp_path), "")


def test_an_archive_that_grows_without_end_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "SMALL", 1 << 20)
    (tmp_path / "zeros").write_bytes(bytes(64 << 20))
    archives.pack(str(tmp_path / "zeros"), str(tmp_path / "packed"), "tar", 9)
    with pytest.raises(ExecutorError, match="more than it may"):
        archives.unpack(str(tmp_path / "packed"), str(tmp_path / "target"), str(tmp_path), "")


def test_a_large_artifact_takes_constant_memory(tmp_path: Path) -> None:
    with open(tmp_path / "large", "wb") as file:
        file.truncate(256 << 20)
    tracemalloc.start()
    try:
        archives.pack(str(tmp_path / "large"), str(tmp_path / "packed"), "tar", 1)
        archives.unpack(str(tmp_path / "packed"), str(tmp_path / "target"), str(tmp_path), "")
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()
    assert (tmp_path / "target").stat().st_size == 256 << 20


KEYS = [
    "a/b",
    "a%2Fb",
    "../x",
    "%2E%2E/x",
    "a//b",
    "a/./b",
    "a/b/",
    "名/字",
    "n" * 300,
    "n" * 299,
    "%",
    "%%",
    "a\x00b",
    " ",
]


def test_keys_become_paths_below_their_folder_and_different_ones_differ() -> None:
    paths = [names_of(key) for key in KEYS if key != "a/b/"]
    assert len(set(paths)) == len(paths)
    parts = [part for path in paths for part in path]
    assert all(0 < len(part) <= 255 and part not in (".", "..") for part in parts)
    assert not any("/" in part or "\x00" in part for part in parts)
    assert names_of("a/b/") == names_of("a/b")


@pytest.mark.parametrize("key", ["", "/", "k" * 1025])
def test_keys_that_cannot_be_stored_are_named(key: str) -> None:
    assert key_problem(key)
