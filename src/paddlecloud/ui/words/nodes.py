"""Words of the pages of nodes."""

from __future__ import annotations

WORDS: dict[str, tuple[str, str]] = {
    "nodes.title": ("Nodes", "节点"),
    "nodes.of": ("{used} of {whole}", "{used} / {whole}"),
    "nodes.cordoned": ("cordoned", "已封锁"),
    "nodes.ready": ("Ready", "就绪"),
    "nodes.not-ready": ("not ready", "未就绪"),
    "nodes.none": ("No node matches, or you may not list nodes.", "没有符合条件的节点，或你无权列出节点。"),
    "nodes.not-held": (
        "What pods hold is shown to those who may list all pods.",
        "只有可以列出所有 Pod 的用户才能看到 Pod 的占用量。",
    ),
    "nodes.pods": ("Pods", "Pod"),
    "nodes.holds": ("Holds", "占用"),
    "nodes.job": ("Job", "作业"),
    "nodes.no-pods": ("No pod of yours runs here.", "这里没有你可以查看的 Pod。"),
    "nodes.room": ("Room", "容量"),
    "nodes.conditions": ("Conditions", "状况"),
    "nodes.since": ("Since", "开始时间"),
}
