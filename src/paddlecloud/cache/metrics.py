"""The server's figures in Prometheus' text format."""

from __future__ import annotations

from collections import Counter

from paddlecloud.cache.engines.base import Status
from paddlecloud.cache.jobs import Jobs

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_STATUS = (
    ("total_bytes", "Size of the set", "totalBytes"),
    ("total_files", "Files of the set", "totalFiles"),
    ("cached_bytes", "Size of what this node has cached", "cachedBytes"),
    ("cached_files", "Files this node has cached", "cachedFiles"),
    ("disk_bytes", "Size of the cache disks", "diskBytes"),
    ("disk_used_bytes", "Used on the cache disks", "diskUsedBytes"),
    ("disk_available_bytes", "Free on the cache disks", "diskAvailBytes"),
)


def render(jobs: Jobs, status: Status) -> str:
    lines = []
    for name, text, field in _STATUS:
        lines += [*_head(name, text), f"paddlecloud_cache_{name} {getattr(status, field)}"]
    lines += _head("level_used_bytes", "Used by a level of the cache")
    for level in status.levels:
        lines.append(
            f'paddlecloud_cache_level_used_bytes{{medium="{level.medium}",path="{level.path}"}} {level.usedBytes}'
        )
    lines += _head("jobs", "Jobs by type and state")
    counts = Counter((job.type, job.state) for job in jobs.all())
    for (kind, state), count in sorted(counts.items()):
        lines.append(f'paddlecloud_cache_jobs{{type="{kind}",state="{state}"}} {count}')
    lines += _head("transferred_bytes", "Bytes moved by the jobs that are remembered")
    moved: Counter[str] = Counter()
    for job in jobs.all():
        moved[job.type] += jobs.shown(job)["progress"]["bytes"]
    for kind, size in sorted(moved.items()):
        lines.append(f'paddlecloud_cache_transferred_bytes{{type="{kind}"}} {size}')
    return "\n".join(lines) + "\n"


def _head(name: str, text: str) -> list[str]:
    return [f"# HELP paddlecloud_cache_{name} {text}", f"# TYPE paddlecloud_cache_{name} gauge"]
