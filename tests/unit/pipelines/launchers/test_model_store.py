"""Models in the store: the original's layout, on a real S3 server and in a folder, and how pods fetch them."""

from __future__ import annotations

import http.client
import http.server
import io
import json
import os
import subprocess
import sys
import tarfile
import threading
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from paddlecloud.pipelines.launchers import fetch_model, model_store
from paddlecloud.pipelines.launchers.failures import StepFailed
from paddlecloud.storage.credentials import Credentials
from tools.s3 import ACCESS_KEY, SECRET_KEY, S3Server

KEYS = Credentials(ACCESS_KEY, SECRET_KEY)


def packed(folder: Path, members: dict[str, bytes], name: str = "det") -> Path:
    target = folder / f"{name}.tar.gz"
    with tarfile.open(target, "w:gz") as archive:
        for path, content in members.items():
            about = tarfile.TarInfo(path)
            about.size = len(content)
            archive.addfile(about, io.BytesIO(content))
    return target


def test_a_model_lies_where_the_original_put_it_and_nobody_reads_it_without_keys(
    s3_server: S3Server, tmp_path: Path
) -> None:
    file = packed(tmp_path, {"det/server/model": b"weights"})
    uri = model_store.upload(s3_server.endpoint, file, "det", "v1", KEYS)
    assert uri == f"{s3_server.endpoint}/model-center/det/v1/det.tar.gz"
    connection = http.client.HTTPConnection(urlsplit(uri).netloc)
    connection.request("GET", urlsplit(uri).path)
    assert connection.getresponse().status == 403
    digest = model_store.find(s3_server.endpoint, "det", "v1", KEYS).digest
    assert len(digest) == 64
    file.write_bytes(b"another")
    model_store.upload(s3_server.endpoint, file, "det", "v1", KEYS)
    assert model_store.find(s3_server.endpoint, "det", "v1", KEYS).digest != digest


def test_a_folder_has_the_same_layout(tmp_path: Path) -> None:
    file = packed(tmp_path, {"det/server/model": b"weights"})
    model_store.upload(f"file://{tmp_path}/store", file, "det", "latest", Credentials())
    stored = tmp_path / "store" / "model-center" / "det" / "latest"
    assert sorted(path.name for path in stored.iterdir()) == ["det.tar.gz", "manifest.json"]
    manifest = json.loads((stored / "manifest.json").read_text())
    assert manifest["size"] == file.stat().st_size


@pytest.mark.parametrize("endpoint", ["http", "file"])
def test_a_model_that_is_not_there_is_named(endpoint: str, s3_server: S3Server, tmp_path: Path) -> None:
    where = s3_server.endpoint if endpoint == "http" else f"file://{tmp_path}"
    with pytest.raises(StepFailed, match="no model 'absent' of version 'v9'.*upload it by modelhub first"):
        model_store.find(where, "absent", "v9", KEYS)


def test_the_signature_goes_to_the_model_store_and_not_where_it_redirects(tmp_path: Path) -> None:
    asked: list[tuple[str, bool]] = []

    class Store(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, "authorization" in self.headers))
            self.send_response(302 if self.path == "/model" else 200)
            if self.path == "/model":
                self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Not into the output of the tests."""

    with http.server.HTTPServer(("127.0.0.1", 0), Store) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        url = f"http://127.0.0.1:{server.server_port}/model"
        fetch_model.fetch(url, tmp_path / "model", {"MODEL_ACCESS_KEY": "a", "MODEL_SECRET_KEY": "s"})
        server.shutdown()
        serving.join()
    assert asked == [("/model", True), ("/elsewhere", False)]


def test_a_missing_archive_is_named_before_anything_is_sent(tmp_path: Path) -> None:
    with pytest.raises(StepFailed, match="det.tar.gz does not exist"):
        model_store.upload("http://127.0.0.1:1", tmp_path / "det.tar.gz", "det", "v1", KEYS)


def test_refused_keys_are_not_shown(s3_server: S3Server, tmp_path: Path) -> None:
    file = packed(tmp_path, {"a": b""})
    wrong = Credentials(ACCESS_KEY, "not-the-secret-key")
    with pytest.raises(StepFailed, match="check the endpoint and the keys") as failed:
        model_store.upload(s3_server.endpoint, file, "det", "v1", wrong)
    assert "not-the-secret-key" not in str(failed.value)


def test_pods_fetch_with_keys_by_standard_input_alone(s3_server: S3Server, tmp_path: Path) -> None:
    """As the service's shell line does: the program has no file and no package of this project."""
    uri = model_store.upload(s3_server.endpoint, packed(tmp_path, {"det/server/m": b"weights"}), "det", "v2", KEYS)
    keys = {"MODEL_ACCESS_KEY": ACCESS_KEY, "MODEL_SECRET_KEY": SECRET_KEY, "MODEL_DIGEST": ""}
    env = {"PATH": os.environ["PATH"], **keys}
    program = Path(fetch_model.__file__).read_text()
    pod = tmp_path / "pod"
    pod.mkdir()
    done = subprocess.run(
        [sys.executable, "-I", "-", uri], input=program, capture_output=True, text=True, cwd=pod, env=env
    )
    assert done.returncode == 0, done.stderr
    assert (pod / "det" / "server" / "m").read_bytes() == b"weights"
    other = tmp_path / "other"
    other.mkdir()
    changed = subprocess.run(
        [sys.executable, "-I", "-", uri], input=program, capture_output=True, text=True, cwd=other,
        env={**env, "MODEL_DIGEST": "of the model that was deployed"},
    )  # fmt: skip
    assert changed.returncode != 0
    assert "has another model than the one that was deployed; deploy it again" in changed.stderr
    assert list(other.iterdir()) == []
    refused = subprocess.run(
        [sys.executable, "-I", "-", uri], input=program, capture_output=True, text=True, cwd=pod, env={}
    )
    assert refused.returncode != 0
    assert "the model store answered 403" in refused.stderr


@pytest.mark.parametrize("member", ["../outside", "/absolute", "det/../../outside"])
def test_an_archive_cannot_write_outside_of_its_folder(member: str, tmp_path: Path) -> None:
    archive = packed(tmp_path, {member: b"x"})
    inside = tmp_path / "inside"
    inside.mkdir()
    with pytest.raises(SystemExit, match="is not taken"):
        fetch_model.unpack(str(archive), str(inside))
    assert list(inside.iterdir()) == []


def test_the_bucket_is_created_by_a_signed_request_and_one_that_exists_is_kept(s3_server: S3Server) -> None:
    for _ in range(2):
        model_store.S3Store(s3_server.endpoint, KEYS).create_bucket()
    with pytest.raises(OSError, match="403"):
        model_store.S3Store(s3_server.endpoint, Credentials(ACCESS_KEY, "not-the-secret-key")).create_bucket()
