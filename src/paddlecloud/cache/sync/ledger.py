"""What a sync has brought, on its way to the manifest: gathered over all threads and written many at a time."""

from __future__ import annotations

import threading

from paddlecloud.cache.manifest import File, SampleManifest

BATCH = 500
"""Files noted in the manifest at a time."""


class Ledger:
    """Losing what it has gathered costs hashing those files again, nothing else."""

    def __init__(self, manifest: SampleManifest) -> None:
        self._manifest = manifest
        self._lock = threading.Lock()
        self._noted: list[File] = []
        self.error: OSError | None = None
        """Why the manifest could not be written; the files themselves are whole all the same."""

    def note(self, file: File) -> None:
        with self._lock:
            self._noted.append(file)
            if len(self._noted) >= BATCH:
                self._write()

    def close(self) -> None:
        with self._lock:
            self._write()

    def _write(self) -> None:
        if not self._noted:
            return
        try:
            self._manifest.put(self._noted)
        except OSError as error:
            self.error = self.error or error
        self._noted.clear()
