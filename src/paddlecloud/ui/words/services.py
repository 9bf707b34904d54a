"""Words of the pages of PaddleServices."""

from __future__ import annotations

WORDS: dict[str, tuple[str, str]] = {
    "services.serves": ("Serves", "提供"),
    "services.traffic": ("Traffic", "流量"),
    "services.pods": ("Pods", "Pod"),
    "services.empty": (
        "No model is served yet. A folder, an archive or a version of a model becomes a service with:",
        "还没有推理服务。用一条命令即可把文件夹、压缩包或某个模型版本变成服务：",
    ),
    "services.sleeps": ("asleep: the next request starts a pod", "已休眠：下一个请求会启动 Pod"),
    "services.no-traffic": ("No revision has traffic yet.", "还没有版本获得流量。"),
    "services.default": ("default", "默认"),
    "services.rollout": ("being rolled out", "正在发布"),
    "services.canary": ("canary", "金丝雀"),
    "services.roll-out": ("Roll-out", "发布"),
    "services.next-step": ("next step at {time}", "下一步时间：{time}"),
    "services.step-done": ("done", "已完成"),
    "services.step-now": ("now", "当前"),
    "services.step-later": ("later", "之后"),
    "services.revisions": ("Revisions", "版本"),
    "services.revision": ("Revision", "版本"),
    "services.endpoint": ("Endpoint", "端点"),
    "services.requests": ("Requests", "请求数"),
    "services.errors": ("Errors", "错误率"),
    "services.latency": ("95th percentile", "95 分位延迟"),
    "services.no-revisions": (
        "There are no revisions: this service runs as Deployments, which sleep and measure nothing.",
        "没有版本列表：该服务以 Deployment 运行，不休眠，也不统计请求。",
    ),
    "services.figures": (
        "Requests, errors and latency are those of late; they are counted while revisions share the traffic.",
        "请求数、错误率和延迟为近期数据，仅在多个版本分担流量时统计。",
    ),
    "services.address": ("Address", "地址"),
    "services.engine": ("Runs on", "运行方式"),
    "services.models": ("Model", "模型"),
    "services.cold-start": ("Last start from zero", "最近一次从零启动"),
}
