"""Words of the list of jobs."""

from __future__ import annotations

WORDS: dict[str, tuple[str, str]] = {
    "jobs.title": ("Jobs", "作业"),
    "jobs.all": ("all", "全部"),
    "jobs.why": ("Why", "原因"),
    "jobs.pods": ("Pods", "Pod"),
    "jobs.queue": ("Queue", "队列"),
    "jobs.progress": ("Progress", "进度"),
    "jobs.restarts": ("Restarts", "重启"),
    "jobs.none": ("There is no job yet.", "尚无作业。"),
}
