"""What cache servers answer, as far as controllers read it. Unknown fields are ignored: servers may be newer."""

from __future__ import annotations

import msgspec

ENDED = frozenset({"Succeeded", "Failed", "Cancelled"})


class Answer(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """Base of all answers."""


class Progress(Answer, frozen=True):
    files: int = 0
    files_total: int = 0
    bytes: int = 0
    bytes_total: int = 0
    bytes_per_second: float = 0
    seconds_left: float | None = None
    failed: int = 0


class Coverage(Answer, frozen=True):
    """How much of a warm-up's plan is cached; `missing` names the first files that are not."""

    planned: int = 0
    cached: int = 0
    missing: tuple[str, ...] = ()


class JobReport(Answer, frozen=True):
    """One job on one server: Queued, Running, Succeeded, Failed or Cancelled."""

    id: str = ""
    type: str = ""
    state: str = "Queued"
    position: int | None = None
    message: str | None = None
    progress: Progress | None = None
    coverage: Coverage | None = None

    @property
    def ended(self) -> bool:
        return self.state in ENDED


class JobList(Answer, frozen=True):
    jobs: list[JobReport] = []


class Figures(Answer, frozen=True):
    """What one server has: the size of the data, of its part of the cache, and of its disks."""

    total_bytes: int = 0
    total_files: int = 0
    cached_bytes: int = 0
    cached_files: int = 0
    disk_bytes: int = 0
    disk_used_bytes: int = 0
    disk_avail_bytes: int = 0
    error: str | None = None
