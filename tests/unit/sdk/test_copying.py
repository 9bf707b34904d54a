"""Copies through tar: hostile archives write nothing outside, honest ones arrive whole, failures are failures."""

from __future__ import annotations

import io
import subprocess
import tarfile
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import pytest

from paddlecloud.sdk.copying import CopyError, RemoteProgram, Start, download, size, upload
from paddlecloud.sdk.remote import Output


class Real:
    """A program of this machine in the place of one in a container."""

    def __init__(self, command: Sequence[str]) -> None:
        self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self._sent = b""
        self._rest: list[Output] | None = None

    def read(self) -> Output | None:
        if self._rest is None:
            out, err = self._child.communicate(self._sent or None, timeout=30)
            self._rest = [Output("stderr", err)] if err else []
            self._rest += [Output("stdout", out[i : i + 1000]) for i in range(0, len(out), 1000)]
        return self._rest.pop(0) if self._rest else None

    def write(self, data: bytes) -> None:
        self._sent += data

    def end_input(self) -> None: ...

    def close(self) -> None: ...

    @property
    def exit_code(self) -> int:
        return int(self._child.returncode)


class Canned:
    """A container that sends what it was given, whatever was asked."""

    def __init__(self, data: bytes, code: int = 0, err: bytes = b"") -> None:
        self._pieces = [Output("stdout", data)] if data else []
        self._pieces += [Output("stderr", err)] if err else []
        self.exit_code = code

    def read(self) -> Output | None:
        return self._pieces.pop(0) if self._pieces else None

    def write(self, data: bytes) -> None: ...

    def end_input(self) -> None: ...

    def close(self) -> None: ...


class Complaining(Canned):
    """Sends pieces of 64 KiB on its stderr, and fails."""

    def __init__(self, pieces: int) -> None:
        super().__init__(b"", 1)
        self._left = pieces

    def read(self) -> Output | None:
        self._left -= 1
        return Output("stderr", b"x" * (64 << 10)) if self._left >= 0 else None


def sends(data: bytes, code: int = 0, err: bytes = b"") -> Start:
    return lambda command: Canned(data, code, err)


def archive(*entries: tuple[str, str, str]) -> bytes:
    """(name, type, content or link target)."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, kind, content in entries:
            info = tarfile.TarInfo(name)
            info.mode = 0o755
            if kind == "file":
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content.encode()))
                continue
            info.type = {
                "dir": tarfile.DIRTYPE, "sym": tarfile.SYMTYPE, "hard": tarfile.LNKTYPE, "fifo": tarfile.FIFOTYPE,
            }[kind]  # fmt: skip
            info.linkname = content
            tar.addfile(info)
    return buffer.getvalue()


def fetch(data: bytes, target: Path, source: str = "/x/data") -> list[str]:
    reported: list[str] = []
    download(sends(data), source, target, moved=lambda count: None, warn=reported.append)
    return reported


GOOD = ("./data/ok", "file", "fine")

HOSTILE = {
    "absolute": [("/etc/evil", "file", "x")],
    "climbs": [("./data/../../evil", "file", "x")],
    "elsewhere": [("./other/evil", "file", "x")],
    "link out": [("./data/out", "sym", "/etc")],
    "relative link out": [("./data/out", "sym", "../../..")],
    "hard link out": [("./data/out", "hard", "/etc/passwd")],
    "a fifo": [("./data/pipe", "fifo", "")],
}


@pytest.mark.parametrize("entries", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_entries_are_left_out_and_reported(tmp_path: Path, entries: list[tuple[str, str, str]]) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    reported = fetch(archive(("./data", "dir", ""), *entries, GOOD), inner / "got")
    assert len(reported) == 1
    assert {path.name for path in (inner / "got").iterdir()} == {"ok"}
    assert [path.name for path in tmp_path.iterdir()] == ["inner"]


def test_nothing_is_written_through_a_link_that_was_there_before(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    got = tmp_path / "inner" / "got"
    got.mkdir(parents=True)
    (got / "data").mkdir()
    (got / "data" / "sub").symlink_to(outside)
    (got / "data" / "file").symlink_to(outside / "target")
    reported = fetch(archive(("./data/sub/evil", "file", "x"), ("./data/file", "file", "new")), got)
    assert list(outside.iterdir()) == []
    assert (got / "data" / "file").read_text() == "new"
    assert not (got / "data" / "file").is_symlink()
    assert len(reported) == 1


TURNING = [
    ("./data", "dir", ""),
    ("./data/payload", "file", "hostile"),
    ("./data/a/b/c", "dir", ""),
    ("./data/file", "sym", "a/b/c/d/../../../../kept"),
    ("./data/sibling", "sym", "a/b/c/d/../../.."),
    ("./data/folder", "sym", "a/b/c/d/../../../.."),
    ("./data/a/b/c/d", "sym", "../../.."),
]
"""Links of which each stays inside when it is made, and of which the last turns those before it outwards."""

THROUGH = {
    "a file": ("./data/file", "file", "hostile"),
    "a hard link": ("./data/file", "hard", "./data/payload"),
    "a file in a folder": ("./data/folder/kept", "file", "hostile"),
    "a file beside the copy": ("./data/sibling/kept", "file", "hostile"),
    "a folder": ("./data/folder", "dir", ""),
}


@pytest.mark.parametrize("entry", THROUGH.values(), ids=THROUGH.keys())
def test_nothing_is_written_through_links_that_later_links_turn_outwards(
    tmp_path: Path, entry: tuple[str, str, str]
) -> None:
    inner = tmp_path / "inner"
    inner.mkdir(mode=0o700)
    for folder in (tmp_path, inner):
        (folder / "kept").write_text("mine")
    reported = fetch(archive(*TURNING, entry, GOOD), inner / "got")
    assert reported
    assert [(folder / "kept").read_text() for folder in (tmp_path, inner)] == ["mine", "mine"]
    assert inner.stat().st_mode & 0o777 == 0o700
    outside = [path for path in (inner / "got").rglob("*") if not path.resolve().is_relative_to(inner / "got")]
    assert outside == []
    assert (inner / "got" / "ok").read_text() == "fine"


def test_links_that_stay_inside_are_kept(tmp_path: Path) -> None:
    data = archive(
        ("./data", "dir", ""), ("./data/sub", "dir", ""), ("./data/a", "file", "same"),
        ("./data/sub/up", "sym", "../a"), ("./data/down", "sym", "./sub"), ("./data/down/b", "file", "there"),
    )  # fmt: skip
    assert fetch(data, tmp_path / "got") == []
    assert (tmp_path / "got" / "sub" / "up").read_text() == "same"
    assert (tmp_path / "got" / "sub" / "b").read_text() == "there"


def test_hard_links_become_files(tmp_path: Path) -> None:
    data = archive(("./data", "dir", ""), ("./data/a", "file", "same"), ("./data/b", "hard", "./data/a"))
    assert fetch(data, tmp_path / "got") == []
    assert (tmp_path / "got" / "b").read_text() == "same"


def test_a_container_that_fails_is_a_failure_with_its_words(tmp_path: Path) -> None:
    for data in (b"", archive(("./data", "dir", ""))):
        with pytest.raises(CopyError, match="tar exited with 2 .*: no such thing"):
            download(
                sends(data, 2, b"no such thing\nand more\n"),
                "/x/data",
                tmp_path / "got",
                moved=lambda count: None,
                warn=print,
            )


@pytest.mark.parametrize("data", [b"this is no archive" * 100, archive(GOOD)[:600]], ids=["nonsense", "cut off"])
def test_what_is_no_whole_archive_is_a_failure(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(CopyError):
        fetch(data, tmp_path / "got")


def test_there_and_back_with_real_tar(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "sub").mkdir(parents=True)
    (source / "sub" / "f").write_bytes(b"x" * 300_000)
    (source / "-odd name").write_text("odd")
    moved: list[int] = []
    there = tmp_path / "there"
    upload(Real, source, str(there), moved=moved.append)
    assert sum(moved) > 300_000
    back = tmp_path / "back"
    download(Real, str(there), back, moved=moved.append, warn=print)
    assert (back / "sub" / "f").read_bytes() == b"x" * 300_000
    assert (back / "-odd name").read_text() == "odd"
    assert size(source) == 300_003


def test_a_directory_takes_the_copy_in(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    (tmp_path / "folder").mkdir()
    upload(Real, file, str(tmp_path / "folder"), moved=lambda count: None)
    upload(Real, file, f"{tmp_path}/folder/renamed", moved=lambda count: None)
    assert {path.name for path in (tmp_path / "folder").iterdir()} == {"file", "renamed"}


def test_a_folder_that_is_not_there_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(CopyError, match="exited with 2"):
        upload(Real, tmp_path / "file", f"{tmp_path}/no/such/file", moved=lambda count: None)


def is_program(program: RemoteProgram) -> None:
    """Type checkers see that the stand-ins are programs."""


is_program(Canned(b""))


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
def test_a_header_that_claims_to_be_very_long_is_not_read_into_memory(tmp_path: Path, kind: bytes) -> None:
    header = tarfile.TarInfo("./f")
    header.type, header.size = kind, 64 << 20
    with pytest.raises(CopyError, match="a header of"):
        fetch(header.tobuf(tarfile.GNU_FORMAT) + bytes(1 << 20), tmp_path)


def test_of_a_program_that_complains_without_end_the_beginning_is_kept(tmp_path: Path) -> None:
    (tmp_path / "source").write_text("content")
    tracemalloc.start()
    try:
        with pytest.raises(CopyError, match="xxx"):
            download(lambda command: Complaining(1024), "/data/f", tmp_path / "f", moved=print, warn=print)
        with pytest.raises(CopyError, match="xxx"):
            upload(lambda command: Complaining(1024), tmp_path / "source", "/data/", moved=lambda _: None)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
