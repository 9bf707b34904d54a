"""Where a data set lies when it is not in the cache: a folder, or a server that answers GET."""

from __future__ import annotations

import hmac
import http.client
import os
import shutil
import threading
from typing import Protocol
from urllib.parse import quote, urlsplit

from paddlecloud.data.report import sign

PATIENCE = 60.0
"""Seconds a server may be silent."""
_CHUNK = 1 << 20
_REMOTE = ("fuse.", "nfs", "ceph", "cifs", "lustre", "9p")
"""Beginnings of the types of file systems that come over a network."""


class Origin(Protocol):
    def read(self, path: str) -> bytes:
        """A whole file. Raises OSError."""
        ...

    def copy(self, path: str, target: str) -> int:
        """Make a file a copy of one of the origin's; returns its size. Raises OSError."""
        ...


def origin_at(place: str) -> Origin:
    return Web(place) if place.startswith(("http://", "https://")) else Folder(place)


def is_remote(folder: str, mounts: str | None = None) -> bool:
    """Whether a folder lies on such a file system; `mounts` is the text of /proc/self/mounts."""
    if mounts is None:
        try:
            with open("/proc/self/mounts") as file:
                mounts = file.read()
        except OSError:
            return False
    path = os.path.join(os.path.realpath(folder), "")
    found = ("", "")
    for line in mounts.splitlines():
        _, point, kind, *_ = line.split(" ")
        point = os.path.join(point.replace("\\040", " "), "")
        if path.startswith(point) and len(point) >= len(found[0]):
            found = (point, kind)
    return found[1].startswith(_REMOTE)


class Folder:
    def __init__(self, root: str) -> None:
        self._root = root

    def read(self, path: str) -> bytes:
        with open(os.path.join(self._root, path), "rb") as file:
            return file.read()

    def copy(self, path: str, target: str) -> int:
        """With the original's time, so that comparing shows whether it is still true; a link where that is possible."""
        source = os.path.realpath(os.path.join(self._root, path))
        try:
            os.link(source, f"{target}.link")
            os.replace(f"{target}.link", target)
        except OSError:  # another disk, or no links there
            with open(source, "rb") as file, open(target, "wb") as copy:
                shutil.copyfileobj(file, copy, _CHUNK)
            shutil.copystat(source, target)
        return os.stat(target).st_size


PROOF = "X-Paddlecloud-Proof"


def request_proof(token: str, address: str, url: str, nonce: str) -> str:
    """The header `Authorization` of a request to one address; `nonce` makes its answer one that nobody can repeat."""
    return f"Signed {nonce}:{sign(token, b'GET', address.encode(), url.encode(), nonce.encode())}"


def answer_proof(token: str, nonce: str) -> str:
    return sign(token, b"answer", nonce.encode())


def is_same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(errors="replace"), expected.encode())


class Web:
    """A connection per thread and process, kept open; one that the server closed meanwhile is opened again.

    With a token both sides prove that they have it, and neither sends it (`request_proof`, `answer_proof`).
    """

    def __init__(self, url: str, *, token: str = "", patience: float = PATIENCE) -> None:
        self._place = urlsplit(url)
        self._token = token
        self._patience = patience
        self._mine = threading.local()

    def read(self, path: str) -> bytes:
        return self._get(path).read()

    def copy(self, path: str, target: str) -> int:
        with open(target, "wb") as file:
            shutil.copyfileobj(self._get(path), file, _CHUNK)
            return file.tell()

    def _get(self, path: str) -> http.client.HTTPResponse:
        url = f"{self._place.path.rstrip('/')}/{quote(path)}" + (f"?{self._place.query}" if self._place.query else "")
        try:
            return self._ask(url)
        except (http.client.HTTPException, ConnectionError):
            self._close()
            try:
                return self._ask(url)
            except http.client.HTTPException as error:
                raise OSError(f"{self._place.netloc} gave no answer for {path}: {error!r}") from error

    def _ask(self, url: str) -> http.client.HTTPResponse:
        connection = self._connection()
        nonce = os.urandom(16).hex()
        headers = {"Authorization": request_proof(self._token, self._place.netloc, url, nonce)} if self._token else {}
        connection.request("GET", url, headers=headers)
        answer = connection.getresponse()
        if self._token and not is_same(answer.getheader(PROOF, ""), answer_proof(self._token, nonce)):
            self._close()
            raise OSError(f"{self._place.netloc} does not prove that it is a rank of this job")
        if answer.status != 200:
            answer.read()
            kind = FileNotFoundError if answer.status == 404 else OSError
            raise kind(f"{self._place.netloc} answered {answer.status} {answer.reason} for {url}")
        return answer

    def _connection(self) -> http.client.HTTPConnection:
        if getattr(self._mine, "pid", None) != os.getpid():  # a forked worker must not share its parent's socket
            kind = http.client.HTTPSConnection if self._place.scheme == "https" else http.client.HTTPConnection
            self._mine.connection = kind(self._place.hostname or "", self._place.port, timeout=self._patience)
            self._mine.pid = os.getpid()
        connection: http.client.HTTPConnection = self._mine.connection
        return connection

    def _close(self) -> None:
        if (connection := getattr(self._mine, "connection", None)) is not None:
            connection.close()
            self._mine.pid = None
