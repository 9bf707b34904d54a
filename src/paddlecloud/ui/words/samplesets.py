"""Words of the pages of SampleSets."""

from __future__ import annotations

WORDS: dict[str, tuple[str, str]] = {
    "samplesets.empty": (
        "There is no sample set yet. What one is and how it is made: docs/data.md",
        "还没有样本集。什么是样本集、如何创建：docs/data.md",
    ),
    "samplesets.source": ("Source", "数据源"),
    "samplesets.size": ("Size", "大小"),
    "samplesets.cached": ("Cached", "已缓存"),
    "samplesets.files": ("Files", "文件数"),
    "samplesets.servers": ("Cache servers", "缓存服务"),
    "samplesets.filling": ("Filling", "数据装载"),
    "samplesets.rate": ("{rate} each second", "每秒 {rate}"),
    "samplesets.disk": ("Cache disks", "缓存磁盘"),
    "samplesets.free": ("{free} free of {whole}", "共 {whole}，剩余 {free}"),
    "samplesets.driver": ("Engine", "引擎"),
    "samplesets.hit-ratio": ("Hit ratio", "命中率"),
    "samplesets.no-reads": ("No job has reported how it reads the set.", "还没有作业上报读取情况。"),
    "samplesets.placement": ("Placement", "分布"),
    "samplesets.partition": ("Part", "分区"),
    "samplesets.jobs": ("Jobs that use it", "使用它的作业"),
    "samplesets.job": ("Job", "作业"),
    "samplesets.content": ("Revision of the data", "数据版本"),
}
