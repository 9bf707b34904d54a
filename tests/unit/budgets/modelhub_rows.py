"""What callers of the model hub's server send: lists of files, credentials, ranges, and manifests in a store."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Iterator

from paddlecloud.modelhub import manifest, read_grant
from paddlecloud.modelhub.errors import Damaged, Refused
from paddlecloud.modelhub.received import Received
from paddlecloud.modelhub.server import authorisation, downloads, uploads
from paddlecloud.modelhub.server.replies import Answered
from unit.budgets.inputs import JSON, Row, times

BLOB = ',"blob":"a"'
HEADERS = 16 * 1024
"""More is refused before the server sees it."""


def files_of(size: int, blob: str = "") -> str:
    file = '{"path":"%s%d","sha256":"%s","size":1%s}'
    return ",".join(file % ("a/" * (number % 20), number, "0" * 64, blob) for number in range(max(1, size // 150)))


def manifest_of(size: int) -> bytes:
    head = '"format":1,"namespace":"n","model":"m","version":"1","digest":"","size":0'
    return f'{{{head},"files":[{files_of(size, BLOB)}]}}'.encode()


def read_manifest(content: bytes) -> None:
    with contextlib.suppress(Damaged):
        manifest.decode(content, "a manifest")


def read_request(content: bytes) -> None:
    with contextlib.suppress(Answered, Refused):
        Received("team", tuple(uploads.decoded(content).files))


def read_credential(header: str) -> None:
    with contextlib.suppress(Answered):
        authorisation.credential_of(header)


def basic_of(size: int) -> str:
    return "Basic " + base64.b64encode(b":" * (size * 3 // 4)).decode()


def modelhub() -> Iterator[Row]:
    for name, make in {**JSON, "files": manifest_of}.items():
        yield Row("modelhub: manifests", name, make, read_manifest)
    lists = {**JSON, "files": lambda size: f'{{"files":[{files_of(size)}]}}'.encode()}
    for name, make in lists.items():
        yield Row("modelhub: POST /v1/namespaces/{namespace}/models/{model}/versions", name, make, read_request)
    for name, header in {"password": basic_of, "token": times("a", "Bearer ")}.items():
        yield Row("modelhub: Authorization", name, header, read_credential, HEADERS)
    for name, text in {"slashes": times("/", read_grant.PREFIX), "names": times("a/", read_grant.PREFIX)}.items():
        yield Row("modelhub: read grants", name, text, lambda text: read_grant.verify(b"k" * 32, text), HEADERS)
    yield Row("modelhub: If-None-Match", "tags", times('W/"a",'), downloads.tags_of, HEADERS)
