"""Words of the page of queues."""

from __future__ import annotations

WORDS: dict[str, tuple[str, str]] = {
    "queues.title": ("Queues", "队列"),
    "queues.closed": ("closed", "已关闭"),
    "queues.weight": ("weight {weight}", "权重 {weight}"),
    "queues.parent": ("part of {parent}", "属于 {parent}"),
    "queues.limits": ("may use {limits}", "上限 {limits}"),
    "queues.share": ("{share} of what it deserves", "占应得份额的 {share}"),
    "queues.nobody": ("Nobody waits.", "没有等待者。"),
    "queues.waiting": ("{count} waiting", "{count} 个等待"),
    "queues.position": ("Position", "位置"),
    "queues.who": ("Who", "等待者"),
    "queues.needs": ("Needs", "需要"),
    "queues.priority": ("Priority", "优先级"),
    "queues.since": ("Since", "等待时间"),
    "queues.why": ("Why it waits", "等待原因"),
    "queues.next": ("the next round places it", "下一轮即可调度"),
    "queues.none": ("There are no queues, or you may not list them.", "没有队列，或你无权列出。"),
    "queues.no-rights": (
        "Lines and shares follow from all pods and nodes, and are shown to those who may list these. Your own jobs "
        "say why they wait on their pages.",
        "排队顺序与份额由所有 Pod 和节点得出，只显示给可以列出全部的用户；你的作业在各自页面说明等待原因。",
    ),
    "queues.other-scheduler": (
        "Another scheduler decides here: what is shown is what its queues say.",
        "这里由其他调度器决定：只显示其队列自身的信息。",
    ),
    "queues.follow": ("lines are being worked out…", "正在计算排队顺序……"),
    "queues.full": ("Show the lines", "显示排队情况"),
}
