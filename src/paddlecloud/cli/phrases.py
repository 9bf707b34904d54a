"""What `pdc` says of the state of objects and of the scheduler's decisions, in English and Chinese.

What a server or scheduler said is quoted as it is.
"""

from __future__ import annotations

import os

PHRASES: dict[str, tuple[str, str]] = {
    # key: (English, Chinese)
    # of objects
    "deleting-held": (
        "being deleted (for {since}); held by finalizers: {holders}",
        "正在删除（已 {since}），被 finalizer 阻挡：{holders}",
    ),
    "deleting-waits": ("being deleted (for {since}): {what}", "正在删除（已 {since}）：{what}"),
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
    "crashed-once": ("container {name} {ending}, restarted once", "容器 {name} {ending}，已重启 1 次"),
    "container-waits": ("container {name} waits: {what}", "容器 {name} 在等待：{what}"),
    "ending": ("ended with exit code {code}{detail}", "以退出码 {code} 结束{detail}"),
    "pod-failed": ("failed: {what}", "失败：{what}"),
    "pod-succeeded": ("finished: every container ended with exit code 0", "已完成：所有容器都以退出码 0 结束"),
    "job-pod-failed": ("{pod} failed: {kind}{code}", "{pod} 失败：{kind}{code}"),
    "exit-code": (" (exit code {code})", "（退出码 {code}）"),
    "heading": ("{subject}: {state}{reason}", "{subject}：{state}{reason}"),
    "heading-reason": (" ({reason})", "（{reason}）"),
    "state-ok": ("ok", "正常"),
    "state-failed": ("failed", "失败"),
    "state-waiting": ("waiting", "等待中"),
    "state-deleting": ("deleting", "正在删除"),
    "next": ("next:  {step}", "下一步：{step}"),
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
    "workflow-suspended": (
        "suspended: no step begins until it is resumed: pdc pipeline resume {name}",
        "已挂起：恢复之前不开始任何步骤：pdc pipeline resume {name}",
    ),
    "step-suspended": (
        "step {step} is suspended. To go on: pdc pipeline resume {name}",
        "步骤 {step} 已挂起。继续：pdc pipeline resume {name}",
    ),
    "step": ("step {step}: {text}", "步骤 {step}：{text}"),
    "condition": ("{name} is {status}: {what}", "{name} 为 {status}：{what}"),
    "no-reason": ("no reason given", "没有说明原因"),
    "cordoned": ("cordoned: takes no new pods", "已封锁（cordon）：不再接收新的 Pod"),
    "ready": ("ready", "已就绪"),
    "went-back": (
        "the roll-out of {latest} {why}; {serving} is served. To try again: pdc retry pds/{name}, or change the spec",
        "{latest} 的分步发布已回退（{why}）；现在由 {serving} 提供服务。再试：pdc retry pds/{name}，或修改 spec",
    ),
    "still-serves": (
        "{text}; {serving} still gets the traffic. To go back to it: pdc rollback {name}",
        "{text}；流量仍由 {serving} 承担。回到该版本：pdc rollback {name}",
    ),
    "rolling-out": (
        "ready; {latest} is being rolled out: it has {percent} % of the traffic of {serving} (step {step})",
        "已就绪；{latest} 正在分步发布：占 {serving} 流量的 {percent} %（第 {step} 步）",
    ),
    "next-step": ("next step at {time}", "下一步：{time}"),
    "canary-failed": ("ready; its canary failed: {text}", "已就绪；其灰度（canary）失败：{text}"),
    "model-served": (
        "{endpoint}: {model} gets {percent} % of the traffic, since {since}",
        "{endpoint}：{model} 承担 {percent} % 的流量，自 {since} 起",
    ),
    "model-starts": ("{endpoint}: {model} gets no traffic yet", "{endpoint}：{model} 尚未承担流量"),
    "replicas": ("{ready} of {wanted} replicas are ready", "{wanted} 个副本中有 {ready} 个就绪"),
    "restarted": (
        "{text}; restarts: {count}, the last {since} ago after {pod}: {kind}",
        "{text}；重启次数：{count}，最近一次在 {since} 前，原因是 {pod}：{kind}",
    ),
    "restarted-uncounted": (
        "{text}; restarts: {count}, and {uncounted} that are not counted as retries, the last {since} ago after {pod}: "
        "{kind}",
        "{text}；重启次数：{count}，另有 {uncounted} 次不计入重试次数，最近一次在 {since} 前，原因是 {pod}：{kind}",
    ),
    "detail": ("{what}: {detail}", "{what}：{detail}"),
    "warning": ("{text}; last warning{where}: {warning}", "{text}；最近的警告{where}：{warning}"),
    "ignored-fields": (
        "{text}; the API server does not know these fields and ignores them: {fields}",
        "{text}；API 服务器不认识并忽略了这些字段：{fields}",
    ),
    "where": (" on {object}", "（{object}）"),
    # of the scheduler
    "needs": ("needs", "需要"),
    "free": ("free", "空闲"),
    "held-by": ("held by", "被占用"),
    "makes-room": ("making room", "正在腾出"),
    "would-start": ("would start if", "可启动条件"),
    "would-be-let-in": ("let in if", "可入队条件"),
    "let-in": ("its queue lets it in now; its pods are made next", "队列现已放行，随后创建 Pod"),
    "needs-all": (
        "{count} pods at once, {all} in all; none is made before its queue lets it in",
        "{count} 个 Pod 同时就位，合计 {all}；队列放行之前不创建 Pod",
    ),
    "nothing": ("nothing in particular", "无特别要求"),
    "a-place": ("a place", "一个位置"),
    "placed": ("a node is free for it: {node}, in the next round", "已有可用节点：{node}，下一轮调度即会放置"),
    "needs-any": ("a node that its rules admit", "一个符合其规则的节点"),
    "needs-one": ("{each}, on one node", "{each}（同一节点）"),
    "needs-gang": (
        "{count} pods at once ({placed} have a node), each {each}",
        "{count} 个 Pod 同时就位（已有节点的 {placed} 个），每个 {each}",
    ),
    "of": ("{name} {free} of {have}", "{name} {free}/{have}"),
    "more-nodes": ("… and {count} more nodes", "…… 另有 {count} 个节点"),
    "in-all": ("in all: {amounts}", "合计：{amounts}"),
    "blocker": ("{pod} on {node}: {amounts}, priority {priority}", "{pod}（{node}）：{amounts}，优先级 {priority}"),
    "leaving": ("{pod} must leave {node}", "{pod} 将离开 {node}"),
    "remedy-end": ("these ended: {pods}", "以下 Pod 结束：{pods}"),
    "remedy-priority": ("its priority were {atLeast} or more", "其优先级不低于 {atLeast}"),
    "remedy-request": ("each pod asked for at most {atMost}", "每个 Pod 的请求不超过 {atMost}"),
    "remedy-least": ("it asked for at most {atMost} in all", "其合计请求不超过 {atMost}"),
    "remedy-uncordon": ("node {node} took pods again", "节点 {node} 解除封锁"),
    "remedy-tolerate": ("it tolerated the taint {taint}", "它容忍污点 {taint}"),
    "remedy-label": ("node {node} had the label {pairs}", "节点 {node} 带有标签 {pairs}"),
    "remedy-min-member": ("its PodGroup needed only {minMember} pods", "其 PodGroup 只需要 {minMember} 个 Pod"),
    "remedy-pods": ("{more} more of its pods existed", "再创建 {more} 个同组 Pod"),
    "remedy-group": ("the PodGroup {name} existed", "存在 PodGroup {name}"),
    "remedy-queue": ("the queue {name} existed and were open", "队列 {name} 存在且开放"),
    "remedy-capability": ("queue {queue} might use {atLeast}", "队列 {queue} 的上限提高到 {atLeast}"),
    "remedy-replicas": (
        "the job had {workers} worker(s)  (pdc scale pdj/{job} --replicas {workers})",
        "作业只有 {workers} 个 worker  (pdc scale pdj/{job} --replicas {workers})",
    ),
    # of the origin and the use of models
    "trace-from": ("from", "来自"),
    "trace-to": ("to", "去向"),
    "trace-gone": ("gone, recorded", "已不存在，仅有记录"),
    "trace-replaced": ("gone, recorded; another of this name exists", "已不存在，仅有记录；现有同名的另一对象"),
    "trace-changed": ("changed since: {now} now", "此后有变化：现为 {now}"),
    "trace-unrecorded": ("where it came from was not recorded", "来源没有记录"),
    "trace-ready": ("ready", "已就绪"),
    "trace-not-ready": ("not ready", "未就绪"),
    "trace-generation": ("generation {number}", "第 {number} 代"),
    "trace-revision": ("revision {number}", "数据第 {number} 版"),
    "trace-file": ("{number} file", "{number} 个文件"),
    "trace-files": ("{number} files", "{number} 个文件"),
    "trace-step": ("step {step} of run {run}", "运行 {run} 的步骤 {step}"),
    "trace-commit": ("commit {commit}", "提交 {commit}"),
    "pipeline-run": ("run:         ", "运行：  "),
    "pipeline-status": ("status:      ", "状态：  "),
    "pipeline-why": ("why:         ", "原因：  "),
    "pipeline-parameters": ("parameters:  ", "参数：  "),
    "remedy-any-node": ("there were {count} more node(s)", "增加 {count} 个节点"),
    "remedy-node": ("there were {count} more node(s) with {capacity}", "增加 {count} 个节点，具备 {capacity}"),
}

LANGUAGES = ("en", "zh")


def say(language: str, key: str, /, **values: object) -> str:
    """The phrase with its values, which may have any name: a taint, for one, has a `key` of its own."""
    return PHRASES[key][LANGUAGES.index(language)].format(**values)


def preferred() -> str:
    """The language of the user's locale, where it is one of ours."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        value = os.environ.get(name)
        if value:
            return "zh" if value.lower().startswith("zh") else "en"
    return "en"
