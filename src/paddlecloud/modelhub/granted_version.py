"""The one version that a pod was given, at the hub's server: judged by the digest that the controller gave with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from paddlecloud.modelhub.catalogue import VersionKey
from paddlecloud.modelhub.errors import Damaged
from paddlecloud.modelhub.manifest import File, Manifest
from paddlecloud.modelhub.pod_access import PodAccess
from paddlecloud.modelhub.remote import RemoteHub


class GrantedVersion:
    def __init__(self, access: PodAccess) -> None:
        self._access = access
        self._key = VersionKey(access.namespace, access.model, access.version)
        self._hub = RemoteHub(access.hub, access.grant)

    def manifest(self) -> Manifest:
        """Raises `UnknownVersion`, `Damaged` if it is not the content that was asked for, or `StorageError`."""
        found = self._hub.manifest(self._key)
        if found.digest != self._access.digest:
            raise Damaged(
                f"the hub has other files for {self._access.shown} than this service was made with: "
                f"{found.digest[:19]}… instead of {self._access.digest[:19]}…"
            )
        return found

    def read(self, file: File, start: int = 0) -> Iterator[Any]:
        """As `pull_by` reads."""
        return self._hub.read(self._key, file, start)
