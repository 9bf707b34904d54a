"""The sentences of verdicts, in English and Chinese. What a server or scheduler said is quoted as it is."""

from __future__ import annotations

import os

PHRASES: dict[str, tuple[str, str]] = {
    # key: (English, Chinese)
    "deleting-held": (
        "being deleted (for {since}); held by finalizers: {holders}",
        "正在删除（已 {since}），被 finalizer 阻挡：{holders}",
    ),
    "deleting-grace": (
        "being deleted; its processes have until the grace period ends",
        "正在删除，等待进程在宽限期内结束",
    ),
    "unschedulable": ("no node can take it: {message}", "没有节点可以容纳它：{message}"),
    "gated": ("held back by scheduling gates: {names}", "被调度门（scheduling gate）挡住：{names}"),
    "container-ended": ("container {name} {ending}", "容器 {name} {ending}"),
    "crash-loop": (
        "container {name} {ending}, restarted {restarts} times",
        "容器 {name} {ending}，已重启 {restarts} 次",
    ),
    "container-waits": ("container {name} waits: {what}", "容器 {name} 在等待：{what}"),
    "ending": ("ended with exit code {code}{detail}", "以退出码 {code} 结束{detail}"),
    "pod-failed": ("failed: {what}", "失败：{what}"),
    "pod-succeeded": ("finished: every container ended with exit code 0", "已完成：所有容器都以退出码 0 结束"),
    "ended": ("ended {why}", "已结束：{why}"),
    "starting": ("starting on node {node}", "正在节点 {node} 上启动"),
    "not-scheduled": ("waiting for the scheduler", "等待调度器"),
    "not-ready": ("running, but not ready: {names}", "正在运行，但尚未就绪：{names}"),
    "running": ("running", "正在运行"),
    "some-pods": ("{count} of {total} pods: {name}: {text}", "{total} 个 Pod 中有 {count} 个：{name}：{text}"),
    "one-pod": ("{name}: {text}", "{name}：{text}"),
    "fine": ("nothing stands in its way", "一切正常"),
    "succeeded": ("succeeded", "已成功"),
    "failed": ("failed", "已失败"),
    "suspended": ("suspended: it has no pods until it is resumed", "已挂起：恢复之前没有 Pod"),
    "condition": ("{name} is {status}: {what}", "{name} 为 {status}：{what}"),
    "no-reason": ("no reason given", "没有说明原因"),
    "cordoned": ("cordoned: takes no new pods", "已封锁（cordon）：不再接收新的 Pod"),
    "ready": ("ready", "已就绪"),
    "replicas": ("{ready} of {wanted} replicas are ready", "{wanted} 个副本中有 {ready} 个就绪"),
    "detail": ("{what}: {detail}", "{what}：{detail}"),
    "warning": ("{text}; last warning{where}: {warning}", "{text}；最近的警告{where}：{warning}"),
    "where": (" on {object}", "（{object}）"),
}

LANGUAGES = ("en", "zh")


class Phrasebook:
    def __init__(self, language: str = "en") -> None:
        self._index = LANGUAGES.index(language)

    def say(self, key: str, **values: object) -> str:
        return PHRASES[key][self._index].format(**values)


def preferred() -> str:
    """The language of the user's locale, where it is one of ours."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        value = os.environ.get(name)
        if value:
            return "zh" if value.lower().startswith("zh") else "en"
    return "en"
