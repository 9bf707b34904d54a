"""What callers of the model hub's server send: lists of files, credentials, ranges, and manifests in a store."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Iterator

from paddlecloud.modelhub import manifest, origin, read_grant
from paddlecloud.modelhub.errors import Damaged, Refused
from paddlecloud.modelhub.server import authorisation, downloads, uploads
from paddlecloud.modelhub.server.replies import Answered
from unit.budgets.inputs import JSON, Row, times

BLOB = ',"blob":"a"'
HEADERS = 16 * 1024
"""More is refused before the server sees it."""


def files_of(size: int, blob: str = "") -> str:
    file = '{"path":"%s%d","sha256":"%s","size":1%s}'
    return ",".join(file % ("a/" * (number % 20), number, "0" * 64, blob) for number in range(max(1, size // 150)))


def deep_files_of(size: int) -> bytes:
    """Each as deep as a path may be."""
    file = '{"path":"%06d/%s","sha256":"%s","size":1}'
    shown = (file % (number, "/".join(["a"] * 508), "0" * 64) for number in range(max(1, size // 1100)))
    return f'{{"files":[{",".join(shown)}]}}'.encode()


def facts_of(size: int) -> bytes:
    entries = ",".join(f'"{number}":1' for number in range(size // 9))
    return f'{{"files":[{files_of(150)}],"metrics":{{{entries}}}}}'.encode()


def manifest_of(size: int) -> bytes:
    head = '"format":1,"namespace":"n","model":"m","version":"1","digest":"","size":0'
    return f'{{{head},"files":[{files_of(size, BLOB)}]}}'.encode()


def read_manifest(content: bytes) -> None:
    with contextlib.suppress(Damaged):
        manifest.decode(content, "a manifest")


def read_request(content: bytes) -> None:
    with contextlib.suppress(Answered, Refused):
        uploads.judged(content, "team", "ada", "2026-01-01T00:00:00Z")


def read_credential(header: str) -> None:
    with contextlib.suppress(Answered):
        authorisation.credential_of(header)


def basic_of(size: int) -> str:
    return "Basic " + base64.b64encode(b":" * (size * 3 // 4)).decode()


def modelhub() -> Iterator[Row]:
    for name, make in {**JSON, "files": manifest_of}.items():
        yield Row("modelhub: manifests", name, make, read_manifest)
    lists = {
        **JSON,
        "deep files": deep_files_of,
        "metrics": facts_of,
        "files": lambda size: f'{{"files":[{files_of(size)}]}}'.encode(),
    }
    for name, make in lists.items():
        yield Row("modelhub: POST /v1/namespaces/{namespace}/models/{model}/versions", name, make, read_request)
    for name, header in {"password": basic_of, "token": times("a", "Bearer ")}.items():
        yield Row("modelhub: Authorization", name, header, read_credential, HEADERS)
    for name, text in {"slashes": times("/", read_grant.PREFIX), "names": times("a/", read_grant.PREFIX)}.items():
        yield Row("modelhub: read grants", name, text, lambda text: read_grant.verify(b"k" * 32, text), HEADERS)
    commands = {
        "flags": "-key",
        "words": "key-",
        "flags with a value": "-key '",
        "spaces": "-key ",
        "addresses": "://a:",
    }
    for name, unit in commands.items():
        yield Row("origin: commands of jobs", name, times(unit), origin.without_secrets)
    yield Row("modelhub: If-None-Match", "tags", times('W/"a",'), downloads.tags_of, HEADERS)
