"""A version on a node: fetched once for all replicas, believed by none before its digest is right."""

from __future__ import annotations

import http.server
import os
import shutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import unquote

import msgspec
import pytest

from paddlecloud.modelhub import catalogue, layout, manifest, node_folder, read_grant
from paddlecloud.modelhub.errors import Damaged, UnknownVersion
from paddlecloud.modelhub.granted_version import GrantedVersion
from paddlecloud.modelhub.manifest import Manifest
from paddlecloud.modelhub.pod_access import PodAccess, environment, from_environment
from paddlecloud.storage.errors import Denied, Unreachable
from paddlecloud.storage.stores import FolderStore
from unit.modelhub.hubs import V1, V2, folder_of, pushed

KEY = b"k" * 32
FILES = {"model.onnx": b"weights" * 1000, "more/ä b.txt": b"text"}


class HubServer(http.server.ThreadingHTTPServer):
    """The hub's routes for pods on a folder, counting what it is asked for and what it sends."""

    def __init__(self, store: FolderStore) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.store = store
        self.paths: list[str] = []
        self.sent = 0
        self.cut_after: int | None = None
        self.answers: int | None = None
        """How many requests for files are answered."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Answer(http.server.BaseHTTPRequestHandler):
    server: HubServer

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        self.server.paths.append(self.path)
        _, _, _, namespace, _, model, _, version, *rest = unquote(self.path).split("/")
        grant = read_grant.verify(KEY, self.headers["Authorization"].removeprefix("Bearer "))
        if grant is None or grant[:3] != (namespace, model, version):
            return self._say(403, b'{"reason": "Forbidden", "message": "no grant for this version"}')
        found = catalogue.find(self.server.store, catalogue.version_key(namespace, model, version))
        if found is None:
            return self._say(404, b'{"reason": "NotFound", "message": "no such version"}')
        if not rest:
            return self._say(200, msgspec.json.encode(manifest.shown(found)))
        (file,) = [file for file in found.files if file.path == "/".join(rest[1:])]
        start = int((self.headers.get("Range") or "bytes=0-")[6:-1])
        content = b"".join(self.server.store.read(layout.blob(file.sha256, file.blob), start))
        return self._say(206 if start else 200, content)

    def _say(self, code: int, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if "/files/" in self.path and self.server.answers is not None:
            self.server.answers -= 1
            body = body[: self.server.cut_after if self.server.answers >= 0 else 0]
        self.wfile.write(body)
        self.server.sent += len(body) if "/files/" in self.path else 0


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[HubServer]:
    server = HubServer(FolderStore(tmp_path / "store"))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def version(hub: HubServer, tmp_path: Path) -> Manifest:
    return pushed(hub.store, V1, folder_of(tmp_path / "model", FILES)).manifest


def access(hub: HubServer, version: Manifest) -> PodAccess:
    grant = read_grant.sign(KEY, version.namespace, version.model, version.version, version.digest)
    shown = f"{version.model}:{version.version}"
    return PodAccess(hub.url, version.namespace, shown, version.digest, grant)


def hold(hub: HubServer, version: Manifest, root: Path) -> node_folder.Held:
    return node_folder.hold(root, version.digest, GrantedVersion(access(hub, version)))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def size() -> int:
    return sum(map(len, FILES.values()))


def test_the_second_replica_on_a_node_asks_the_hub_for_nothing(
    hub: HubServer, version: Manifest, tmp_path: Path
) -> None:
    first = hold(hub, version, tmp_path / "node")
    assert (first.fetched, hub.sent) == (size(), size())
    assert contents(first.folder) == FILES
    asked = len(hub.paths)
    second = hold(hub, version, tmp_path / "node")
    assert (second.folder, second.fetched) == (first.folder, 0)
    assert (len(hub.paths), hub.sent) == (asked, size())


def test_replicas_that_start_together_fetch_once(hub: HubServer, version: Manifest, tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: hold(hub, version, tmp_path / "node"), range(8)))
    assert sorted(held.fetched for held in found) == [0] * 7 + [size()]
    assert hub.sent == size()


def test_what_lies_on_the_node_is_verified_and_repaired(hub: HubServer, version: Manifest, tmp_path: Path) -> None:
    first = hold(hub, version, tmp_path / "node")
    (first.folder / "model.onnx").write_bytes(b"tampered")
    (first.folder / "extra.txt").write_bytes(b"put here by another")
    again = hold(hub, version, tmp_path / "node")  # while the first one is held: it goes on with what it has open
    assert contents(again.folder) == FILES
    assert again.fetched == size()
    assert not list(again.folder.parent.glob("damaged-*"))


@pytest.mark.parametrize("content", [b"", b"{}", b'{"files": 3}', b"[" * 5000, b"other"])
def test_a_manifest_on_the_node_that_is_not_of_the_version_is_not_believed(
    hub: HubServer, version: Manifest, tmp_path: Path, content: bytes
) -> None:
    other = pushed(hub.store, V2, folder_of(tmp_path / "model2", {"model.onnx": b"another"})).manifest
    held = hold(hub, version, tmp_path / "node")
    written = manifest.encode(other) if content == b"other" else content
    (held.folder.parent / "manifest.json").write_bytes(written)
    again = hold(hub, version, tmp_path / "node")
    assert contents(again.folder) == FILES
    assert again.fetched == 0, "the hub's manifest vouches for what is there"


def test_a_fetch_that_was_cut_off_is_continued(hub: HubServer, version: Manifest, tmp_path: Path) -> None:
    hub.cut_after, hub.answers = 3000, 1
    with pytest.raises(Unreachable):
        hold(hub, version, tmp_path / "node")
    hub.cut_after, hub.answers = None, None
    assert hold(hub, version, tmp_path / "node").fetched < size()
    assert contents(tmp_path / "node" / version.digest.replace(":", "-") / "files") == FILES


def test_what_another_left_unfinished_is_not_believed(hub: HubServer, version: Manifest, tmp_path: Path) -> None:
    name = version.digest.replace(":", "-")
    draft = tmp_path / "node" / name / f".files.{name[7:23]}.pull"
    folder_of(draft / "files", {"model.onnx": b"planted"})
    draft.chmod(0o700)
    held = hold(hub, version, tmp_path / "node")
    assert contents(held.folder) == FILES
    assert [path.name for path in held.folder.parent.iterdir()] == ["files", "manifest.json"]


def test_damaged_files_are_refused(hub: HubServer, version: Manifest, tmp_path: Path) -> None:
    for path in (tmp_path / "store" / "blobs").rglob("*"):
        if path.is_file():
            path.write_bytes(b"x" * path.stat().st_size)
    with pytest.raises(Damaged, match="other bytes for"):
        hold(hub, version, tmp_path / "node")
    assert not (tmp_path / "node" / version.digest.replace(":", "-") / "files").exists()


def test_a_version_with_other_files_is_not_what_was_asked_for(
    hub: HubServer, version: Manifest, tmp_path: Path
) -> None:
    wanted = access(hub, version)._replace(digest="sha256:" + "0" * 64)
    with pytest.raises(Damaged, match="other files for ocr:1 than this service was made with"):
        node_folder.hold(tmp_path / "node", wanted.digest, GrantedVersion(wanted))


def test_a_version_that_is_gone_and_a_grant_for_another_say_so(
    hub: HubServer, version: Manifest, tmp_path: Path
) -> None:
    with pytest.raises(Denied, match="no grant for this version"):
        GrantedVersion(access(hub, version)._replace(shown="ocr:2")).manifest()
    catalogue.remove(hub.store, V1)
    with pytest.raises(UnknownVersion, match="no such version"):
        hold(hub, version, tmp_path / "node")
    hub.shutdown()
    hub.server_close()
    with pytest.raises(Unreachable, match="does not answer"):
        hold(hub, version, tmp_path / "node")


def test_a_node_that_has_the_version_needs_no_hub(hub: HubServer, version: Manifest, tmp_path: Path) -> None:
    hold(hub, version, tmp_path / "node")
    hub.shutdown()
    hub.server_close()
    assert hold(hub, version, tmp_path / "node").fetched == 0


def test_what_nobody_used_for_a_week_goes_when_something_is_fetched(
    hub: HubServer, version: Manifest, tmp_path: Path
) -> None:
    root = tmp_path / "node"
    third = catalogue.version_key("default", "ocr", "3")
    others = [
        pushed(hub.store, which, folder_of(tmp_path / which.version, {"model.onnx": which.version.encode()})).manifest
        for which in (V2, third)
    ]
    old, held = hold(hub, version, root), hold(hub, others[0], root)
    old.release()
    long_ago = time.time() - node_folder.UNUSED_SECONDS - 1
    for lock in (root / "locks").iterdir():
        os.utime(lock, (long_ago, long_ago))
    hold(hub, others[1], root)
    left = {path.name for path in root.glob("sha256-*")}
    assert left == {found.digest.replace(":", "-") for found in others}, "one is held, one is new"
    held.release()
    shutil.rmtree(root)


def test_what_a_pod_is_given_comes_through_its_environment() -> None:
    given = PodAccess("http://hub", "ns", "ocr:v1.2", "sha256:0", "grant")
    values = {entry["name"]: entry["value"] for entry in environment(given)}
    assert from_environment(values) == given
    assert (given.model, given.version) == ("ocr", "v1.2")
    assert from_environment({**values, "PADDLECLOUD_MODEL_HUB_TOKEN": ""}) is None
