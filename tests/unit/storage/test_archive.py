"""Archives on the web: fetched from a real server, and unable to reach out of their folder."""

from __future__ import annotations

import functools
import http.server
import io
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlecloud.cache.engines.base import EngineSettings
from paddlecloud.cache.engines.local import LocalEngine
from paddlecloud.cache.options import SyncOptions, parse
from paddlecloud.cache.progress import Task
from paddlecloud.storage import archive, uri
from paddlecloud.storage.archive import ArchiveSource
from paddlecloud.storage.credentials import Credentials
from paddlecloud.storage.errors import BadUri, Denied, Missing, Unreachable
from paddlecloud.storage.sources import Source


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Tests have no use for an access log."""


@pytest.fixture
def web(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    folder = tmp_path / "web"
    folder.mkdir()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield folder, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def tar_of(path: Path, members: dict[str, bytes], **links: str) -> None:
    with tarfile.open(path, "w:gz" if path.name.endswith("gz") else "w") as packed:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            packed.addfile(info, io.BytesIO(content))
        for name, target in links.items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            packed.addfile(info)


def contents(source: Source) -> dict[str, bytes]:
    files = [entry for entry in source.entries() if not entry.is_folder]
    return {entry.key: b"".join(bytes(piece) for piece in source.read(entry)) for entry in files}


@pytest.mark.parametrize("name", ["data.tar", "data.tar.gz", "data.zip"])
def test_an_archive_is_read_like_a_folder(web: tuple[Path, str], name: str) -> None:
    folder, address = web
    members = {"train/a b'\"\n.txt": b"one", "val/x": b"two" * 1000}
    if name.endswith("zip"):
        with zipfile.ZipFile(folder / name, "w") as packed:
            for member, content in members.items():
                packed.writestr(member, content)
    else:
        tar_of(folder / name, members)
    assert contents(ArchiveSource(uri.parse(f"{address}/{name}"))) == members


def test_a_set_can_come_from_an_archive(web: tuple[Path, str], tmp_path: Path) -> None:
    folder, address = web
    tar_of(folder / "data.tar.gz", {"train/1.jpg": b"one", "label.txt": b"two"})
    data = tmp_path / "set"
    engine = LocalEngine(EngineSettings(str(data), [], tmp_path / "state", 0, {}))
    options, _ = parse("sync", {"source": f"{address}/data.tar.gz", "destination": f"file://{data}"})
    assert isinstance(options, SyncOptions)
    engine.sync(options, Credentials(), Task())
    assert (data / "train" / "1.jpg").read_bytes() == b"one"
    assert engine.status().totalFiles == 2
    engine.close()


@pytest.mark.parametrize("member", ["../escaped", "/etc/escaped", "a/../../escaped"])
def test_a_member_that_leads_outside_spoils_the_archive(tmp_path: Path, member: str) -> None:
    tar_of(tmp_path / "evil.tar", {member: b"x"})
    with pytest.raises(BadUri, match="leads outside"):
        archive.unpack(tmp_path / "evil.tar", tmp_path / "inner" / "files", name="evil.tar")
    with zipfile.ZipFile(tmp_path / "evil.zip", "w") as packed:
        packed.writestr(member, "x")
    with pytest.raises(BadUri, match="leads outside"):
        archive.unpack(tmp_path / "evil.zip", tmp_path / "inner" / "files", name="evil.zip")
    assert not list(tmp_path.rglob("escaped"))


def test_links_in_archives_are_refused(tmp_path: Path) -> None:
    tar_of(tmp_path / "evil.tar", {}, passwords="/etc/passwd")
    with pytest.raises(BadUri, match="link or a device"):
        archive.unpack(tmp_path / "evil.tar", tmp_path / "files", name="evil.tar")


def test_what_is_wrong_with_an_address_is_distinguished(web: tuple[Path, str]) -> None:
    folder, address = web
    (folder / "text.tar").write_text("this is not an archive")
    for text, kind in (
        (f"{address}/missing.tar", Missing),
        (f"{address}/text.tar", BadUri),
        ("http://127.0.0.1:1/data.tar", Unreachable),
    ):
        with pytest.raises(kind):
            list(ArchiveSource(uri.parse(text)).entries())


def _bomb(path: Path, kind: str) -> None:
    zeros = b"\0" * (1 << 20)
    if kind == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed, packed.open("zeros", "w") as member:
            for _ in range(40):
                member.write(zeros)
        return
    with tarfile.open(path, "w:gz") as packed_tar:
        info = tarfile.TarInfo("zeros")
        if kind == "tar":
            info.size = 40 << 20
            packed_tar.addfile(info, io.BytesIO(b"\0" * info.size))
        elif kind == "many":
            for number in range(200):
                packed_tar.addfile(tarfile.TarInfo(f"{number}"))
        elif kind == "long name":
            packed_tar.addfile(tarfile.TarInfo("a" * 2000))
        elif kind == "deep":
            packed_tar.addfile(tarfile.TarInfo("a/" * 100 + "b"))
        else:
            info.type, info.size = tarfile.GNUTYPE_LONGNAME, 40 << 20
            packed_tar.addfile(info, io.BytesIO(b"a" * info.size))


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("zip", "unpacks to more than 4 MiB"),
        ("tar", "unpacks to more than 4 MiB"),
        ("many", "more than 100 members"),
        ("long name", "longer than 1024 characters"),
        ("deep", "64 folders deep"),
        ("long header", "a header of 41943040 bytes"),
    ],
)
def test_an_archive_made_to_fill_the_machine_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, message: str
) -> None:
    monkeypatch.setattr(archive, "SMALL", 1 << 20)
    monkeypatch.setattr(archive, "MOST_MEMBERS", 100)
    path = tmp_path / f"bomb.{'zip' if kind == 'zip' else 'tar.gz'}"
    _bomb(path, kind)
    monkeypatch.setattr(archive, "RATIO", (4 << 20) // path.stat().st_size + 1)
    with pytest.raises(BadUri, match=message):
        archive.unpack(path, tmp_path / "out", name=path.name)
    written = sum(file.stat().st_size for file in (tmp_path / "out").rglob("*") if file.is_file())
    assert written <= 6 << 20


@pytest.mark.parametrize("name", ["a.tar.gz", "a.tar", "a.zip", "a.tar.xz"])
@pytest.mark.parametrize("content", [b"", b"\x1f\x8b", b"\x1f\x8b\x08" + b"\xff" * 40, b"PK\x05\x06", b"\0" * 511])
def test_what_is_damaged_is_refused_in_words(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / "archive").write_bytes(content)
    with pytest.raises(BadUri, match="is not the archive its name promises"):
        archive.unpack(tmp_path / "archive", tmp_path / "out", name=name)


class Redirects(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(302)
        self.send_header("Location", "ftp://127.0.0.1:9/x")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Tests have no use for an access log."""


def test_a_redirect_to_another_kind_of_server_is_not_followed(tmp_path: Path) -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Redirects)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        with pytest.raises(Denied, match="redirects to ftp: not followed"):
            archive.fetch(f"http://127.0.0.1:{server.server_port}/a.tar", tmp_path / "a")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
