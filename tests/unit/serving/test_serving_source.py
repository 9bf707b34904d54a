"""Where models come from: folders, archives behind URLs, names in a store."""

from __future__ import annotations

import hashlib
import http.server
import io
import json
import tarfile
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from paddlecloud.serving import source
from paddlecloud.serving.errors import ModelError
from tools.s3 import ACCESS_KEY, SECRET_KEY, S3Server


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        self.server.paths.append(self.path)  # type: ignore[attr-defined]


@pytest.fixture
def web(tmp_path: Path) -> Iterator[http.server.ThreadingHTTPServer]:
    """A server of the files below tmp_path/web that notes what was asked for."""
    (tmp_path / "web").mkdir()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path / "web")))
    server.paths = []  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def url(web: http.server.ThreadingHTTPServer, path: str = "") -> str:
    return f"http://127.0.0.1:{web.server_address[1]}{path}"


def archive(path: Path, files: dict[str, bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return path


def test_a_folder_is_taken_as_it_is(tmp_path: Path) -> None:
    assert source.local_folder(str(tmp_path), tmp_path / "cache") == (tmp_path, False)
    assert source.local_folder(f"file://{tmp_path}", tmp_path / "cache") == (tmp_path, False)


def test_an_archive_is_fetched_once(tmp_path: Path, web: http.server.ThreadingHTTPServer) -> None:
    archive(tmp_path / "web/m.tar.gz", {"digits/model.onnx": b"weights"})
    for _ in range(2):
        folder, fetched = source.local_folder(url(web, "/m.tar.gz"), tmp_path / "cache", plain_http=True)
        assert fetched
        assert (folder / "model.onnx").read_bytes() == b"weights"
    assert web.paths.count("/m.tar.gz") == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize(("reference", "version"), [("digits:v3", "v3"), ("digits", "latest")])
def test_a_name_is_looked_up_in_the_store(
    tmp_path: Path,
    web: http.server.ThreadingHTTPServer,
    monkeypatch: pytest.MonkeyPatch,
    reference: str,
    version: str,
) -> None:
    made = archive(tmp_path / f"web/model-center/digits/{version}/digits.tar.gz", {"model.onnx": b"weights"})
    digest = hashlib.sha256(made.read_bytes()).hexdigest()
    made.with_name("manifest.json").write_text(json.dumps({"sha256": digest}))
    monkeypatch.setenv("PADDLECLOUD_MODEL_ENDPOINT", url(web) + "/")
    folder, fetched = source.local_folder(reference, tmp_path / "cache")
    assert fetched
    assert (folder / "model.onnx").read_bytes() == b"weights"


def test_an_archive_that_is_not_what_its_manifest_says_is_refused(
    tmp_path: Path, web: http.server.ThreadingHTTPServer
) -> None:
    made = archive(tmp_path / "web/m.tar.gz", {"model.onnx": b"weights"})
    (tmp_path / "web/manifest.json").write_text(json.dumps({"sha256": "0" * 64}))
    digest = hashlib.sha256(made.read_bytes()).hexdigest()
    with pytest.raises(ModelError, match=f"has sha256 {digest}, its manifest says {'0' * 64}: "):
        source.local_folder(url(web, "/m.tar.gz"), tmp_path / "cache", plain_http=True)
    assert list((tmp_path / "cache").iterdir()) == [], "nothing half-fetched stays"


@pytest.mark.parametrize("name", ["../outside", "/outside"])
def test_an_archive_writes_nothing_outside_of_its_folder(
    tmp_path: Path, web: http.server.ThreadingHTTPServer, name: str
) -> None:
    archive(tmp_path / "web/m.tar.gz", {name: b"x", "model.onnx": b"y"})
    try:
        source.local_folder(url(web, "/m.tar.gz"), tmp_path / "cache", plain_http=True)
    except ModelError as error:
        assert "leads outside of its folder" in str(error)  # noqa: PT017
    written = {path.name for path in (tmp_path / "cache").rglob("*")} - {"outside"}
    assert not (tmp_path / "outside").exists()
    assert not (tmp_path / "cache" / "outside").exists()
    assert not Path("/outside").exists()
    assert written <= {"model.onnx", hashlib.sha256(url(web, "/m.tar.gz").encode()).hexdigest()[:16]}


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("digits:v3", "set PADDLECLOUD_MODEL_ENDPOINT"),
        ("!!", "neither a folder, a URL nor NAME:VERSION"),
        ("http://127.0.0.1:9/m.rar", "no .tar.gz archive"),
        ("http://127.0.0.1:9/m.tar.gz", "refused"),
        ("gopher://host/m", "gopher"),
        ("s3://", "names no bucket"),
    ],
)
def test_references_that_lead_nowhere(tmp_path: Path, reference: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        source.local_folder(reference, tmp_path / "cache", plain_http=True)


def test_plain_http_needs_a_digest_or_permission(tmp_path: Path, web: http.server.ThreadingHTTPServer) -> None:
    made = archive(tmp_path / "web/m.tar.gz", {"model.onnx": b"weights"})
    digest, address = hashlib.sha256(made.read_bytes()).hexdigest(), url(web, "/m.tar.gz")
    with pytest.raises(ModelError, match="plain http.*allowPlainHttp"):
        source.local_folder(address, tmp_path / "cache")
    assert web.paths == [], "nobody is asked"  # type: ignore[attr-defined]
    with pytest.raises(ModelError, match="the reference asks for 000000000000"):
        source.local_folder(f"{address}#sha256={'0' * 64}", tmp_path / "cache")
    with pytest.raises(ModelError, match="must be sha256="):
        source.local_folder(f"{address}#md5=1", tmp_path / "cache")
    folder = source.local_folder(f"{address}#sha256={digest}", tmp_path / "cache").folder
    assert (folder / "model.onnx").read_bytes() == b"weights"
    source.local_folder(address, tmp_path / "cache", plain_http=True)
    with pytest.raises(ModelError, match="plain http"):
        source.local_folder(address, tmp_path / "cache")  # nor from what was kept


def test_answers_that_are_no_archive(tmp_path: Path, web: http.server.ThreadingHTTPServer) -> None:
    with pytest.raises(ModelError, match="answered 404"):
        source.local_folder(url(web, "/absent.tar.gz"), tmp_path / "cache", plain_http=True)
    (tmp_path / "web/page.tar.gz").write_text("<html>")
    with pytest.raises(ModelError, match="not the archive its name promises"):
        source.local_folder(url(web, "/page.tar.gz"), tmp_path / "cache", plain_http=True)


def test_everything_below_a_prefix_of_a_bucket_is_copied_once(
    tmp_path: Path, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    s3_server.store("models").put("digits/3/inference.json", b"program")
    s3_server.store("models").put("digits/3/assets/words.txt", b"words")
    monkeypatch.setenv("PADDLECLOUD_ENDPOINTS", f"s3://models={s3_server.endpoint}/models")
    with pytest.raises(ModelError, match="access denied"):
        source.local_folder("s3://models/digits/3", tmp_path / "cache")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    folder = source.local_folder("s3://models/digits/3", tmp_path / "cache").folder
    assert (folder / "inference.json").read_bytes() == b"program"
    assert (folder / "assets/words.txt").read_bytes() == b"words"
    assert source.local_folder("s3://models/digits/3", tmp_path / "cache") == (folder, True)
    with pytest.raises(ModelError, match="nothing at s3://models/digits/4"):
        source.local_folder("s3://models/digits/4", tmp_path / "cache")
