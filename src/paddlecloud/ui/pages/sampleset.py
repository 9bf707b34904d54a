"""One SampleSet: how far it is filled, how jobs read it, which node caches which part, and which jobs use it."""

from __future__ import annotations

from typing import Any, NamedTuple

from paddlecloud.kube.pods import phase_of
from paddlecloud.kube.resource import PADDLEJOBS, PODS, SAMPLESETS, Object
from paddlecloud.sdk.members import member
from paddlecloud.ui import job_rows, sampleset_rows
from paddlecloud.ui.asked import Asked, DashboardPage, found
from paddlecloud.ui.feed import SAMPLE_SET
from paddlecloud.ui.formatting import share
from paddlecloud.ui.job_rows import JobRow
from paddlecloud.ui.sampleset_rows import Reads, SampleSetRow
from paddlecloud.ui.subject import Subject, subject

MOST_SERVERS = 200
MOST_JOBS = 50
MOST_READS = 30


class CacheServer(NamedTuple):
    partition: int
    node: str
    pod: str
    phase: str


class SampleSetView(NamedTuple):
    subject: Subject
    row: SampleSetRow
    imported: float | None
    """Share of the bytes; None where no import was measured."""
    progress: Any
    reads: list[Reads]
    servers: list[CacheServer]
    jobs: list[JobRow]

    @property
    def phase(self) -> str:
        return self.row.phase


async def load(asked: Asked) -> SampleSetView:
    namespace, name = asked.params["namespace"], asked.params["name"]
    sample_set = found(await asked.reader.get(SAMPLESETS, namespace, name))
    pods = await asked.reader.by_index(PODS, SAMPLE_SET, f"{namespace}/{name}")
    jobs = await asked.reader.by_index(PADDLEJOBS, SAMPLE_SET, f"{namespace}/{name}")
    progress = (sample_set.get("status") or {}).get("progress") or {}
    commands = (["explain", f"sampleset/{name}"], ["get", f"sampleset/{name}", "-o", "yaml"])
    return SampleSetView(
        subject=await subject(asked, "samplesets", sample_set, pods, commands),
        row=sampleset_rows.row_of(sample_set),
        imported=share(progress.get("bytes"), progress.get("totalBytes")),
        progress=progress,
        reads=sampleset_rows.reads_of(sample_set)[:MOST_READS],
        servers=sorted(map(_server, pods))[:MOST_SERVERS],
        jobs=sorted(map(job_rows.row_of, jobs), key=lambda row: row.created, reverse=True)[:MOST_JOBS],
    )


def _server(pod: Object) -> CacheServer:
    one = member(pod)
    node = str((pod.get("spec") or {}).get("nodeName") or "")
    return CacheServer(one.rank if one.rank is not None else -1, node, one.name, phase_of(pod))


PAGE = DashboardPage("sampleset", "/samplesets/{namespace}/{name}", load)
