"""Where the files of a pod lie: `<data>/pods/<uid>/`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from paddlecloud.local.kubelet.shim import wire


@dataclass(frozen=True, slots=True)
class PodPaths:
    root: Path

    @property
    def spec(self) -> Path:
        return self.root / wire.SPEC

    @property
    def status(self) -> Path:
        return self.root / wire.STATUS

    @property
    def hosts(self) -> Path:
        return self.root / "etc-hosts"

    @property
    def hostname(self) -> Path:
        return self.root / "etc-hostname"

    @property
    def volumes(self) -> Path:
        return self.root / "volumes"

    def logs(self, container: str) -> Path:
        return self.root / "logs" / container

    def log(self, container: str, attempt: int) -> Path:
        return self.logs(container) / f"{attempt}.log"

    def termination(self, container: str, attempt: int) -> Path:
        return self.root / "termination" / f"{container}.{attempt}"

    def private(self, container: str, what: str) -> Path:
        """A directory of one container alone, kept over its restarts: `tmp`, `image`, `work`."""
        return self.root / "private" / container / what
