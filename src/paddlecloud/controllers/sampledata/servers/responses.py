"""What cache servers answer, as far as controllers read it. Unknown fields are ignored: servers may be newer.

Texts reach the status of a set, so they are taken on one line, of bounded length, without control characters.
"""

from __future__ import annotations

from typing import Literal

import msgspec

ENDED = frozenset({"Succeeded", "Failed", "Cancelled"})
_MOST_TEXT = 1000
"""Characters of a message that reach a status."""
_MOST_NAMED = 10
"""Files of a warm-up that are named."""


def for_people(text: str) -> str:
    """A server's text on one line, of bounded length, without control characters."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text[: 4 * _MOST_TEXT]).split())
    return line if len(line) <= _MOST_TEXT else f"{line[:_MOST_TEXT]}…"


class ServerResponse(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """Base of what servers answer."""


class Progress(ServerResponse, frozen=True):
    files: int = 0
    files_total: int = 0
    bytes: int = 0
    bytes_total: int = 0
    bytes_per_second: float = 0
    seconds_left: float | None = None
    skipped: int = 0
    deleted: int = 0
    only_here: int = 0
    """Files of the set that the source does not have; servers of earlier releases do not count them."""
    failed: int = 0


class Coverage(ServerResponse, frozen=True):
    """How much of a warm-up's plan is cached; `missing` names the first files that are not."""

    planned: int = 0
    cached: int = 0
    missing: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        named = tuple(for_people(path) for path in self.missing[:_MOST_NAMED])
        msgspec.structs.force_setattr(self, "missing", named)


class JobReport(ServerResponse, frozen=True):
    """One job on one server: Queued, Running, Succeeded, Failed or Cancelled."""

    id: str = ""
    type: str = ""
    state: Literal["Queued", "Running", "Succeeded", "Failed", "Cancelled"] = "Queued"
    position: int | None = None
    message: str | None = None
    progress: Progress | None = None
    coverage: Coverage | None = None

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "message", for_people(self.message or "") or None)

    @property
    def ended(self) -> bool:
        return self.state in ENDED


class JobList(ServerResponse, frozen=True):
    jobs: list[JobReport] = []


class DiskFigures(ServerResponse, frozen=True):
    """One file system of caches. Servers on one machine, as those of virtual nodes, may share it."""

    id: str = ""
    size: int = 0
    used: int = 0
    available: int = 0


class Figures(ServerResponse, frozen=True):
    """What one server has: the size of the data, of its part of the cache, and of its disks."""

    total_bytes: int = 0
    total_files: int = 0
    cached_bytes: int = 0
    cached_files: int = 0
    disk_bytes: int = 0
    disk_used_bytes: int = 0
    disk_avail_bytes: int = 0
    disks: tuple[DiskFigures, ...] = ()
    """The same one by one; servers of earlier releases give sums alone."""
    error: str | None = None

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "error", for_people(self.error or "") or None)
