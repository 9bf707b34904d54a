"""Words of curves and of the page that compares."""

from __future__ import annotations

WORDS: dict[str, tuple[str, str]] = {
    "curves.problem": ("The records of VisualDL were not read: {why}", "没有读到 VisualDL 记录：{why}"),
    "curves.reading": ("reading the records of VisualDL in the pod…", "正在 Pod 中读取 VisualDL 记录……"),
    "curves.none": (
        "The program has reported no metric, and no record of VisualDL was read.",
        "程序没有上报指标，也没有读到 VisualDL 记录。",
    ),
    "curves.read": ("Read the records of VisualDL", "读取 VisualDL 记录"),
    "curves.makes-pod": (
        "A job that has ended has no pod: one is made to read its volumes, and deleted again.",
        "作业已结束，没有 Pod：将创建一个 Pod 读取其数据卷，读完即删除。",
    ),
    "curves.all": ("All curves", "全部曲线"),
    "compare.title": ("Compare", "对比"),
    "compare.pick": ("Compare", "对比"),
    "compare.how": (
        "Tick at least two in a list, then press Compare.",
        "在列表中勾选至少两个，然后点“对比”。",
    ),
    "compare.differences": ("What differs", "不同之处"),
    "compare.what": ("What", "项目"),
    "compare.same": ("Nothing differs.", "没有不同之处。"),
}
