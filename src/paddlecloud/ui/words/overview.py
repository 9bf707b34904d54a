"""Words of the overview."""

from __future__ import annotations

WORDS: dict[str, tuple[str, str]] = {
    "overview.attention": ("Needs attention", "需要关注"),
    "overview.fine": ("Nothing waits for you. Everything runs, or has ended as it should.", "没有需要处理的事项。"),
    "overview.running": ("Running", "正在运行"),
    "overview.idle": ("No job runs.", "没有正在运行的作业。"),
    "overview.first": (
        "There are no jobs yet. To start one:",
        "还没有作业。运行第一个作业：",
    ),
}
