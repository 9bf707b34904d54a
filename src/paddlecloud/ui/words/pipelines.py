"""Words of the pages of pipelines: runs, their steps and schedules."""

from __future__ import annotations

WORDS: dict[str, tuple[str, str]] = {
    "pipelines.empty": (
        "No pipeline has run yet. A file of kfp or Argo runs with:",
        "还没有流水线运行。用一条命令即可运行 kfp 或 Argo 文件：",
    ),
    "pipelines.no-schedules": (
        "Nothing is scheduled. A file of kfp or Argo runs again and again with:",
        "没有定时运行。用一条命令即可定时运行 kfp 或 Argo 文件：",
    ),
    "pipelines.schedule": ("Schedule", "定时"),
    "pipelines.runs": ("Runs", "运行记录"),
    "pipelines.when": ("Runs at", "运行时间"),
    "pipelines.last": ("Last run", "最近一次"),
    "pipelines.active": ("Running now", "正在运行"),
    "pipelines.concurrency": ("If the last run still goes on", "上次运行未结束时"),
    "pipelines.steps": ("Steps", "步骤"),
    "pipelines.step": ("Step", "步骤"),
    "pipelines.took": ("Took", "用时"),
    "pipelines.graph": ("Graph", "流程图"),
    "pipelines.no-graph": (
        "There are too many steps for a graph; the table has them.",
        "步骤过多，无法画成流程图；请看下表。",
    ),
    "pipelines.no-steps": ("No step has begun.", "还没有步骤开始。"),
    "pipelines.cached": ("cached", "来自缓存"),
    "pipelines.cache-hits": (
        "answered from the cache: {hits} of {keyed} steps with a key",
        "{keyed} 个可缓存步骤中有 {hits} 个来自缓存",
    ),
    "pipelines.after": ("after {steps}", "在 {steps} 之后"),
    "pipelines.values": ("What it got and gave", "输入与输出"),
    "pipelines.shown": (
        "{inputs} inputs, {outputs} outputs, {artifacts} artifacts",
        "{inputs} 个输入，{outputs} 个输出，{artifacts} 个产物",
    ),
    "pipelines.input": ("input", "输入"),
    "pipelines.output-value": ("output", "输出"),
    "pipelines.artifact": ("artifact", "产物"),
    "pipelines.image": ("image", "镜像"),
    "pipelines.cache-key": ("key of the cache", "缓存键"),
    "pipelines.parameters": ("Parameters", "参数"),
    "pipelines.called": ("Name of the run", "运行名称"),
}
