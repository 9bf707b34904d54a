"""How much data there is and how much of it is cached, in words for people."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from paddlecloud.api.sampleset.spec import CacheStatus, TransferProgress
from paddlecloud.controllers.sampledata.servers.responses import DiskFigures, Figures, JobReport
from paddlecloud.kube.clock import parse_rfc3339, rfc3339
from paddlecloud.kube.sizes import binary_size
from paddlecloud.kube.wording import number_of


def total(figures: Mapping[str, Figures], silent: Mapping[str, str]) -> CacheStatus:
    """The sum over all servers: `figures` by server, and why the `silent` ones gave none."""
    answers = list(figures.values())
    total = max((answer.total_bytes for answer in answers), default=0)
    files = max((answer.total_files for answer in answers), default=0)
    cached = min(total, sum(answer.cached_bytes for answer in answers))
    once = {disk.id: disk for name, answer in figures.items() for disk in _disks(name, answer)}.values()
    size, used, free = (sum(getattr(disk, name) for disk in once) for name in ("size", "used", "available"))
    errors = [f"{name}: {answer.error}" for name, answer in figures.items() if answer.error]
    errors += [f"{name}: {error}" for name, error in silent.items()]
    return CacheStatus(
        total_size=binary_size(total),
        total_files=f"{files:,}",
        cached_size=binary_size(cached),
        disk_size=binary_size(size),
        disk_used=binary_size(used),
        disk_avail=binary_size(free),
        disk_usage_rate=f"{100 * used / size if size else 0:.1f}%",
        error_massage="; ".join(errors) or None,
    )


def _disks(server: str, answer: Figures) -> list[DiskFigures]:
    """The disks that one server reports. A disk without an id counts as one that no other server uses."""
    sums = DiskFigures(size=answer.disk_bytes, used=answer.disk_used_bytes, available=answer.disk_avail_bytes)
    given = answer.disks or (sums,)
    return [
        disk if disk.id else msgspec.structs.replace(disk, id=f"{server}-{number}") for number, disk in enumerate(given)
    ]


def is_due(old: TransferProgress | None, *, now: float, every: float) -> bool:
    """Whether progress is to be written again: often enough to watch, seldom enough not to matter."""
    return old is None or not old.update_time or now - parse_rfc3339(old.update_time) >= every


def progress_of(reports: list[JobReport], *, now: float) -> TransferProgress | None:
    """How far work on one or several servers has come, together."""
    reported = [report.progress for report in reports if report.progress is not None]
    if not reported:
        return None
    left = max((part.seconds_left or 0 for part in reported), default=0)
    return TransferProgress(
        files=sum(part.files for part in reported),
        total_files=sum(part.files_total for part in reported),
        skipped_files=sum(part.skipped for part in reported) or None,
        deleted_files=sum(part.deleted for part in reported) or None,
        bytes=sum(part.bytes for part in reported),
        total_bytes=sum(part.bytes_total for part in reported),
        bytes_per_second=int(sum(part.bytes_per_second for part in reported)),
        seconds_left=int(left),
        update_time=rfc3339(now),
    )


def kept(imported: JobReport, name: str) -> str:
    """What the import found in the set that the source does not have, as data of a deleted set of that name; else
    empty."""
    other = imported.progress.only_here if imported.progress else 0
    if not other:
        return ""
    files = f"{number_of(other, 'file', grouped=True)} that the source did not have {'was' if other == 1 else 'were'}"
    return f"{files} in the set at its import and kept: `pdc samplejob sync {name} --delete-dst` deletes such files"


def done(reports: list[JobReport], *, dry: bool = False) -> str:
    """What work that has succeeded did, in words: of a sync what was copied, kept and deleted; of a warm-up what was
    brought and what was there."""
    reported = [report.progress for report in reports if report.progress is not None]
    files, size = sum(part.files for part in reported), binary_size(sum(part.bytes for part in reported))
    same, gone = sum(part.skipped for part in reported), sum(part.deleted for part in reported)
    if not files and not gone:
        return "done"
    types = {report.type for report in reports}
    if "rmr" in types:
        return f"{number_of(files, 'file', grouped=True)} removed ({size})"
    if "warmup" in types:
        return f"{number_of(files - same, 'file', grouped=True)} brought ({size}), {same:,} cached already"
    if "sync" not in types:
        return f"{number_of(files, 'file', grouped=True)}, {size}"
    other = sum(part.only_here for part in reported)
    kept = f", {other:,} only in the set (kept)" if other else ""
    new = number_of(files - same, "file", grouped=True)
    if dry:
        return f"dry run: would copy {new} ({size}){f', delete {gone:,}' if gone else ''}; {same:,} unchanged{kept}"
    return f"{new} copied ({size}), {same:,} unchanged{f', {gone:,} deleted' if gone else ''}{kept}"
