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

from paddlecloud.cache.engines.local import LocalEngine
from paddlecloud.cache.options import SyncOptions, parse
from paddlecloud.cache.progress import Task
from paddlecloud.storage import archive, uri
from paddlecloud.storage.archive import ArchiveSource
from paddlecloud.storage.credentials import Credentials
from paddlecloud.storage.errors import BadUri, Missing, Unreachable
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
    engine = LocalEngine(str(data), [], state=tmp_path / "state", partition=0, environment={})
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


def test_what_is_wrong_with_an_address_is_told_apart(web: tuple[Path, str]) -> None:
    folder, address = web
    (folder / "text.tar").write_text("this is not an archive")
    for text, kind in (
        (f"{address}/missing.tar", Missing),
        (f"{address}/text.tar", BadUri),
        ("http://127.0.0.1:1/data.tar", Unreachable),
    ):
        with pytest.raises(kind):
            list(ArchiveSource(uri.parse(text)).entries())
