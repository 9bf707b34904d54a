"""The registry as containerd sees it."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from .harness.oci import MANIFEST, BlobStore, Descriptor, Entry, Settings
from .harness.registry import Catalogue, serve


@pytest.fixture
def images(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path)


@pytest.fixture
def demo(images: BlobStore) -> Descriptor:
    made = images.add_image([images.add_layer([Entry("app", data=b"x" * 100_000)])], Settings(cmd=["/app"]))
    Catalogue(images.folder).add({"paddlecloud/demo:v1": made.digest, "example.org/tools": made.digest})
    return made


@pytest.fixture
def connection(images: BlobStore) -> Iterator[http.client.HTTPConnection]:
    server = serve(images.folder, "127.0.0.1", 0)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    server.shutdown()
    thread.join()
    server.server_close()


def ask(connection: http.client.HTTPConnection, path: str, method: str = "GET") -> tuple[int, dict[str, str], bytes]:
    connection.request(method, path)
    response = connection.getresponse()
    return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/v2/paddlecloud/demo/manifests/v1?ns=docker.io", True),
        ("/v2/paddlecloud/demo/manifests/v1?ns=mirror.example.com", True),
        ("/v2/paddlecloud/demo/manifests/v2?ns=docker.io", False),
        ("/v2/tools/manifests/anything?ns=example.org", True),
        ("/v2/tools/manifests/anything?ns=docker.io", False),
    ],
)
def test_names_are_matched_as_on_the_embedded_platform(
    connection: http.client.HTTPConnection, demo: Descriptor, path: str, found: bool
) -> None:
    status, headers, body = ask(connection, path)
    if not found:
        assert status == 404
        assert json.loads(body)["errors"][0]["code"] == "MANIFEST_UNKNOWN"
        return
    assert (status, headers["content-type"], headers["docker-content-digest"]) == (200, MANIFEST, demo.digest)
    assert json.loads(body)["layers"]


def test_every_blob_of_a_manifest_can_be_fetched(
    connection: http.client.HTTPConnection, images: BlobStore, demo: Descriptor
) -> None:
    manifest = json.loads(ask(connection, f"/v2/paddlecloud/demo/manifests/{demo.digest}")[2])
    for blob in [manifest["config"], *manifest["layers"]]:
        _, headers, body = ask(connection, f"/v2/paddlecloud/demo/blobs/{blob['digest']}")
        assert (len(body), headers["content-length"]) == (blob["size"], str(blob["size"]))
        assert body == images.path(blob["digest"]).read_bytes()


def test_head_shows_size_and_digest_without_a_body(connection: http.client.HTTPConnection, demo: Descriptor) -> None:
    status, headers, body = ask(connection, "/v2/paddlecloud/demo/manifests/v1?ns=docker.io", "HEAD")
    assert (status, headers["docker-content-digest"], headers["content-length"]) == (200, demo.digest, str(demo.size))
    assert body == b""


def test_images_can_be_added_while_it_serves(connection: http.client.HTTPConnection, images: BlobStore) -> None:
    assert ask(connection, "/v2/late/manifests/1?ns=example.org")[0] == 404
    late = images.add_image([], Settings())
    Catalogue(images.folder).add({"example.org/late:1": late.digest})
    assert ask(connection, "/v2/late/manifests/1?ns=example.org")[0] == 200


@pytest.mark.parametrize("path", ["/v2/a/blobs/..%2f..%2fsecret", "/v2/a/blobs/../../secret", "/etc/passwd", "/v2/a"])
def test_nothing_but_blobs_is_served(connection: http.client.HTTPConnection, images: BlobStore, path: str) -> None:
    (images.folder / "secret").write_text("no")
    assert ask(connection, path)[0] == 404


def test_it_says_that_it_is_a_registry(connection: http.client.HTTPConnection) -> None:
    assert ask(connection, "/v2/")[0] == 200
