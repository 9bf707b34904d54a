"""The hub's server, for programs that push and pull: versions with a token or a read grant, and no keys of a store.

Blocking, with the standard library alone, as it also runs in pods. A connection that ends is no failure: a read
continues at its byte, an upload at the part where it stopped, each a bounded number of times without progress.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec

from paddlecloud.modelhub import manifest
from paddlecloud.modelhub.catalogue import VersionKey
from paddlecloud.modelhub.errors import Damaged, HubError, Refused, UnknownVersion, VersionExists
from paddlecloud.modelhub.manifest import Facts, File, Manifest
from paddlecloud.modelhub.parallel import each
from paddlecloud.modelhub.push import Local, Progress, Pushed
from paddlecloud.storage.errors import BadUri, Denied, Missing, NoSpace, StorageError, Unreachable
from paddlecloud.storage.sources import CHUNK

PART = 16 << 20
TIMEOUT = 300.0
"""Seconds without a byte: the last part of a large file is answered when the file is put together."""
ATTEMPTS = 5
"""Without any progress."""
LARGEST_ANSWER = 64 << 20

_HUB: dict[str, type[HubError]] = {
    "NotFound": UnknownVersion, "AlreadyExists": VersionExists, "Invalid": Refused, "Damaged": Damaged,
}  # fmt: skip
_STORE: dict[int, type[StorageError]] = {401: Denied, 403: Denied, 507: NoSpace}


class RemoteHub:
    """`address` is http(s)://HOST[:PORT]; `token` one of Kubernetes, or a read grant."""

    def __init__(self, address: str, token: str, *, ca: bytes | None = None) -> None:
        place = urlsplit(address)
        if place.scheme not in ("http", "https") or not place.hostname:
            raise BadUri(f"{address!r} is no address of a model hub: http(s)://HOST[:PORT]")
        self.address = address.rstrip("/")
        self._secure, self._host, self._port = place.scheme == "https", place.hostname, place.port
        self._base, self._token = place.path.rstrip("/"), token
        self._tls = ssl.create_default_context(cadata=ca.decode() if ca else None) if self._secure else None

    def manifest(self, which: VersionKey) -> Manifest:
        """Raises `UnknownVersion`, and `Denied` where the token has no right to it."""
        content = self._ask("GET", f"{_versions(which.namespace, which.model)}/{which.version}")
        found = manifest.decode(content, f"the manifest of {which}", stored=False)
        if (found.namespace, found.model, found.version) != which:
            raise Damaged(f"the hub answered with another manifest than that of {which}")
        return found

    def remove(self, which: VersionKey) -> bool:
        """False if there was no such version."""
        try:
            self._ask("DELETE", f"{_versions(which.namespace, which.model)}/{which.version}")
        except UnknownVersion:
            return False
        return True

    def versions(self, namespace: str, model: str) -> list[str]:
        found = json.loads(self._ask("GET", _versions(namespace, model)))["versions"]
        return [str(name) for name in found]

    def read(self, which: VersionKey, file: File, start: int = 0) -> Iterator[bytes]:
        """A `pull.Reader` once the version is given. Raises `Missing`."""
        path = f"{_versions(which.namespace, which.model)}/{which.version}/files/{quote(file.path)}"
        failures = 0
        while start < file.size:
            began = start
            headers = {"Range": f"bytes={start}-", "If-Range": f'"{file.sha256}"'} if start else {}
            try:
                with self._answer("GET", path, headers=headers) as answer:
                    if start and answer.status != 206:
                        raise Damaged(f"the hub has other bytes for {file.path} than its manifest says")
                    while piece := answer.read(CHUNK):
                        start += len(piece)
                        yield piece
                    if start < file.size:
                        raise Unreachable(f"{self.address}: the connection ended early")
            except UnknownVersion as error:
                raise Missing(str(error)) from error
            except (OSError, http.client.HTTPException, Unreachable) as error:
                failures = 0 if start > began else failures + 1
                if failures >= ATTEMPTS:
                    raise self._unreachable(error) from error

    def push(
        self, namespace: str, model: str, version: str, local: Local, facts: Facts, progress: Progress = lambda _: None
    ) -> Pushed:
        """As `push.push`, and with an empty version as `push.push_next`. Who pushed it is what the token says."""
        body = msgspec.json.encode({
            "files": [{"path": file.path, "sha256": file.sha256, "size": file.size} for file in local.files],
            "version": version, "framework": facts.framework, "description": facts.description,
            "metrics": dict(facts.metrics), "origin": dict(facts.origin),
            **({"signature": facts.signature} if facts.signature else {}),
        })  # fmt: skip
        by_digest = {file.sha256: file for file in local.files}
        uploaded: set[str] = set()
        for _ in range(ATTEMPTS):
            answer = self._post(_versions(namespace, model), body)
            if isinstance(answer, bytes):
                found = json.loads(answer)
                created = bool(found.pop("created", False))
                stored = manifest.decode(json.dumps(found).encode(), f"{model}:{version}", stored=False)
                for file in by_digest.values():
                    if file.sha256 not in uploaded:
                        progress(file.size)
                return Pushed(stored, created, sum(by_digest[one].size for one in uploaded))
            missing = [by_digest[one] for one in answer if one in by_digest]
            each(lambda file: self._upload(namespace, local.path(file), file, progress), missing)
            uploaded |= {file.sha256 for file in missing}
        raise Damaged("the hub loses files while they are uploaded; its garbage collection may run with a short grace")

    def _post(self, path: str, body: bytes) -> bytes | list[str]:
        """The manifest, or the digests of files that are missing."""
        status, content = self._exchange("POST", path, body)
        if status == 409 and _problem(content).get("reason") == "MissingFiles":
            return [str(one) for one in _problem(content).get("missing") or ()]
        self._check(status, content)
        return content

    def _upload(self, namespace: str, path: Path, file: File, progress: Progress) -> None:
        """One part after the other; after a failure where the server says that it continues."""
        address = f"/v1/namespaces/{namespace}/blobs/{file.sha256}"
        sent = failures = 0
        problem: Exception = Unreachable("it does not take the file")
        while failures <= ATTEMPTS:
            try:
                status, offset = self._offset(address)
                if status == 200:
                    progress(file.size - sent)
                    return
                failures = 0 if offset > sent else failures + 1
                progress(offset - sent)
                sent = offset
                self._send_from(address, path, file, offset)
            except (OSError, http.client.HTTPException, Unreachable) as error:
                failures, problem = failures + 1, error
        raise self._unreachable(problem) from problem

    def _send_from(self, address: str, path: Path, file: File, start: int) -> None:
        with _opened(path) as content:
            content.seek(start)
            body = content.read(PART)
        headers: dict[str, str] = {}
        if body and (start or len(body) < file.size):
            headers = {"Content-Range": f"bytes {start}-{start + len(body) - 1}/{file.size}"}
        elif start:  # all parts are there, and a kill came before they were put together
            headers = {"Content-Range": f"bytes */{file.size}"}
        status, answer = self._exchange("PUT", address, body, headers=headers)
        if status != 409:  # another push of the same file is further on
            self._check(status, answer)

    def _offset(self, address: str) -> tuple[int, int]:
        with self._answer("HEAD", address, check=False) as answer:
            offset = answer.getheader("Upload-Offset")
            if answer.status not in (200, 404) or offset is None:
                self._check(answer.status if answer.status >= 400 else 502, b"")
            return answer.status, int(offset or 0)

    def _ask(self, method: str, path: str) -> bytes:
        for attempt in range(ATTEMPTS):
            try:
                status, content = self._exchange(method, path)
                break
            except (OSError, http.client.HTTPException) as error:
                if attempt + 1 == ATTEMPTS:
                    raise self._unreachable(error) from error
        self._check(status, content)
        return content

    def _exchange(
        self, method: str, path: str, body: bytes | None = None, *, headers: dict[str, str] | None = None
    ) -> tuple[int, bytes]:
        with self._answer(method, path, body, headers=headers, check=False) as answer:
            return answer.status, answer.read(LARGEST_ANSWER)

    @contextlib.contextmanager
    def _answer(
        self, method: str, path: str, body: bytes | None = None, *,
        headers: dict[str, str] | None = None, check: bool = True,
    ) -> Iterator[http.client.HTTPResponse]:  # fmt: skip
        made: Callable[[], http.client.HTTPConnection] = (
            (lambda: http.client.HTTPSConnection(self._host, self._port, timeout=TIMEOUT, context=self._tls))
            if self._secure
            else (lambda: http.client.HTTPConnection(self._host, self._port, timeout=TIMEOUT))
        )
        with contextlib.closing(made()) as connection:
            given = {"Authorization": f"Bearer {self._token}", "User-Agent": "paddlecloud", **(headers or {})}
            connection.request(method, self._base + path, body, given)
            answer = connection.getresponse()
            if check and answer.status >= 300:
                self._check(answer.status, answer.read(LARGEST_ANSWER))
            yield answer

    def _check(self, status: int, content: bytes) -> None:
        if status < 300:
            return
        problem = _problem(content)
        message = str(problem.get("message") or f"answered {status}")
        if status in _STORE:
            raise _STORE[status](f"the model hub at {self.address}: {message}")
        if (kind := _HUB.get(str(problem.get("reason")))) is not None:
            raise kind(message)
        raise Unreachable(f"the model hub at {self.address}: {message}")

    def _unreachable(self, error: Exception) -> StorageError:
        if isinstance(error, StorageError):
            return error
        return Unreachable(
            f"the model hub at {self.address} does not answer: {error}; check the address and the network"
        )


def _versions(namespace: str, model: str) -> str:
    return f"/v1/namespaces/{namespace}/models/{model}/versions"


def _problem(content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Any]:
    try:
        file = path.open("rb")
    except OSError as error:
        raise Refused(f"{path} cannot be read: {error.strerror}") from error
    with file:
        yield file
