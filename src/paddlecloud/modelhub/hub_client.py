"""Reading one version from the hub's server, with a grant: what a pod needs, and no more.

`pull_by` verifies what comes, and continues what a killed pod left.
"""

from __future__ import annotations

import contextlib
import http.client
import ssl
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlsplit

from paddlecloud.modelhub import manifest
from paddlecloud.modelhub.catalogue import LARGEST_MANIFEST
from paddlecloud.modelhub.errors import Damaged, UnknownVersion
from paddlecloud.modelhub.manifest import File, Manifest
from paddlecloud.modelhub.pod_access import PodAccess
from paddlecloud.storage.errors import Denied, Missing, StorageError, Unreachable
from paddlecloud.storage.sources import CHUNK

SECONDS = 60.0
"""Without a byte."""


class HubVersion:
    """One version at the hub."""

    def __init__(self, access: PodAccess) -> None:
        self._access = access

    def manifest(self) -> Manifest:
        """Raises `UnknownVersion`, `Damaged` if it is not the content that was asked for, or `StorageError`."""
        access, content = self._access, bytearray()
        shown = f"the manifest of {access.shown} of namespace {access.namespace}"
        try:
            for piece in self._get("", 0):
                content += piece
                if len(content) > LARGEST_MANIFEST:
                    raise Damaged(f"{shown} is larger than {LARGEST_MANIFEST >> 20} MiB")
        except Missing:
            raise UnknownVersion(
                f"the hub at {access.hub} has no version {access.shown} of namespace {access.namespace}; "
                f"`pdc model ls {access.model}` lists those there are"
            ) from None
        found = manifest.decode(bytes(content), shown, stored=False)
        if found.digest != access.digest:
            raise Damaged(
                f"the hub has other files for {access.shown} than this service was made with: {found.digest[:19]}… "
                f"instead of {access.digest[:19]}…"
            )
        return found

    def read(self, file: File, start: int = 0) -> Iterator[Any]:
        """The bytes of a file, as `pull_by` reads them."""
        return self._get(f"/files/{quote(file.path)}", start)

    def _get(self, path: str, start: int) -> Iterator[bytes]:
        access = self._access
        place = urlsplit(access.hub)
        names = (access.namespace, access.model, access.version)
        target = place.path.rstrip("/") + "/v1/namespaces/{}/models/{}/versions/{}".format(*map(quote, names)) + path
        headers = {"Authorization": f"Bearer {access.grant}", **({"Range": f"bytes={start}-"} if start else {})}
        with self._failures(), contextlib.closing(_connection(place.scheme, place.netloc)) as connection:
            connection.request("GET", target, headers=headers)
            answer = connection.getresponse()
            if answer.status not in (200, 206):
                raise self._refused(answer)
            if start and answer.status == 200:  # it sends all of it
                _skip(answer, start)
            while piece := answer.read(CHUNK):
                yield piece
            if answer.length:
                raise Unreachable(f"{access.hub}: the connection ended before the file did")

    def _refused(self, answer: http.client.HTTPResponse) -> StorageError:
        said = " ".join(answer.read(1 << 12).decode(errors="replace").split())[:300]
        where = f"the hub at {self._access.hub} answers {answer.status}"
        if answer.status == 404:
            return Missing(f"{where}: {said}")
        if answer.status in (401, 403):
            return Denied(f"{where}: {said}; the grant of this pod is void, and a new revision gets another")
        return Unreachable(f"{where}: {said}")

    @contextlib.contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(
                f"the hub at {self._access.hub} cannot be read: {error or type(error).__name__}"
            ) from error


def _connection(scheme: str, place: str) -> http.client.HTTPConnection:
    """Without a proxy: the hub is beside the pods."""
    if scheme == "https":
        return http.client.HTTPSConnection(place, timeout=SECONDS, context=ssl.create_default_context())
    return http.client.HTTPConnection(place, timeout=SECONDS)


def _skip(answer: http.client.HTTPResponse, count: int) -> None:
    while count and (piece := answer.read(min(CHUNK, count))):
        count -= len(piece)
