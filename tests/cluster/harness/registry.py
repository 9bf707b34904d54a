"""A read-only image registry: `python registry.py IMAGES ADDRESS PORT [CERTIFICATE KEY]`.

It serves the blobs of an `oci.BlobStore` under the names of its catalogue. containerd asks it for every image, with the
host that the image's name begins with as `ns`; which image answers for which name is decided by the rules of the
embedded platform, so a YAML finds the same image on both. The catalogue is read anew when it changes: images can be
added while the cluster runs. With a certificate it also serves TLS on port 443, for programs in pods that look up the
real registries and are led here by the cluster's DNS.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from paddlecloud.local.images.reference import Reference, match_rank, parse_reference

CATALOGUE = "catalogue.json"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_ROUTE = re.compile(r"/v2/(?P<repository>.+)/(?P<what>manifests|blobs)/(?P<reference>[^/]+)")


class Catalogue:
    """Digests of manifests by image name."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / CATALOGUE

    def read(self) -> dict[str, str]:
        try:
            names: dict[str, str] = json.loads(self._file.read_text())
        except FileNotFoundError:
            return {}
        return names

    def add(self, names: dict[str, str]) -> None:
        unfinished = self._file.with_name(f".{CATALOGUE}.{os.getpid()}")
        unfinished.parent.mkdir(parents=True, exist_ok=True)
        with self._file.with_name(f".{CATALOGUE}.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # tests on two clusters may offer images at the same time
            unfinished.write_text(json.dumps({**self.read(), **names}, indent=1, sort_keys=True))
            unfinished.rename(self._file)

    def find(self, wanted: Reference) -> str | None:
        ranked = [
            (rank, digest)
            for name, digest in self.read().items()
            if (rank := match_rank(parse_reference(name), wanted)) is not None
        ]
        return min(ranked)[1] if ranked else None


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    images: Path

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def _answer(self, *, body: bool) -> None:
        url = urlsplit(self.path)
        if url.path in ("/v2", "/v2/"):
            self._send(b"{}", "application/json", {}, body=body)
            return
        match = _ROUTE.fullmatch(url.path)
        if match is None:
            self._refuse("UNSUPPORTED", "this registry answers GET and HEAD of manifests and blobs", body=body)
            return
        host = parse_qs(url.query).get("ns", [self.headers.get("Host", "")])[0]
        digest = self._digest(host, **match.groupdict())
        blob = self.images / "blobs" / "sha256" / (digest or "none").removeprefix("sha256:")
        if digest is None or not blob.is_file():
            what = f"{host}/{match['repository']}:{match['reference']}"
            self._refuse("MANIFEST_UNKNOWN", f"{what} is none of this cluster's images", body=body)
            return
        kind = _MANIFEST if match["what"] == "manifests" else "application/octet-stream"
        self._send(blob, kind, {"Docker-Content-Digest": digest}, body=body)

    def _digest(self, host: str, *, repository: str, what: str, reference: str) -> str | None:
        if re.fullmatch(r"sha256:[0-9a-f]{64}", reference):
            return reference
        if what == "blobs":
            return None
        return Catalogue(self.images).find(parse_reference(f"{host}/{repository}:{reference}"))

    def _send(
        self, content: bytes | Path, kind: str, headers: dict[str, str], *, body: bool, status: int = 200
    ) -> None:
        size = len(content) if isinstance(content, bytes) else content.stat().st_size
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(size))
        self.send_header("Docker-Distribution-API-Version", "registry/2.0")
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if not body:
            return
        if isinstance(content, bytes):
            self.wfile.write(content)
        else:
            with content.open("rb") as source:
                self.connection.sendfile(source)  # the kernel copies: an image of a gigabyte goes to several nodes

    def _refuse(self, code: str, message: str, *, body: bool) -> None:
        document = json.dumps({"errors": [{"code": code, "message": message}]}).encode()
        self._send(document, "application/json", {}, body=body, status=404)


def serve(images: Path, address: str, port: int, *, certificate: tuple[str, str] | None = None) -> ThreadingHTTPServer:
    """A server that is bound but not yet serving; port 0 takes a free one."""
    handler = type("ImagesHandler", (Handler,), {"images": images})
    server = ThreadingHTTPServer((address, port), handler)
    if certificate is not None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(*certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    return server


def main(images: str, address: str, port: str, *certificate: str) -> None:
    if certificate:
        secured = serve(Path(images), address, 443, certificate=(certificate[0], certificate[1]))
        threading.Thread(target=secured.serve_forever, daemon=True).start()
    serve(Path(images), address, int(port)).serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
