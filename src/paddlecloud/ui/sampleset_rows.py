"""A SampleSet as a row, and how jobs read it: what its pages show and filter by. Pure."""

from __future__ import annotations

from typing import Any, NamedTuple

from paddlecloud.cli.objects.why import OK, why
from paddlecloud.kube.resource import Object
from paddlecloud.ui.formatting import share
from paddlecloud.ui.object_lists import searched


class SampleSetRow(NamedTuple):
    namespace: str
    name: str
    phase: str
    created: str
    source: str
    total: str
    cached: str
    files: str
    servers: str
    filled: float | None
    """Of the import that goes on."""
    why: str
    text: str


class Reads(NamedTuple):
    """One epoch of one job."""

    job: str
    epoch: int
    hits: int
    misses: int
    ratio: float | None
    stall: Any


def row_of(sample_set: Object) -> SampleSetRow:
    meta, status = sample_set["metadata"], sample_set.get("status") or {}
    cache, progress = status.get("cacheStatus") or {}, status.get("progress") or {}
    source = str(((sample_set.get("spec") or {}).get("source") or {}).get("uri") or "")
    phase = str(status.get("phase") or "Pending")
    verdict = why(sample_set, now=0.0)
    return SampleSetRow(
        namespace=str(meta.get("namespace", "")),
        name=str(meta["name"]),
        phase=phase,
        created=str(meta.get("creationTimestamp") or ""),
        source=source,
        total=str(cache.get("totalSize") or ""),
        cached=str(cache.get("cachedSize") or ""),
        files=str(cache.get("totalFiles") or ""),
        servers=str((status.get("runtimeStatus") or {}).get("runtimeReady") or ""),
        filled=share(progress.get("bytes"), progress.get("totalBytes")) if phase == "Syncing" else None,
        why="" if verdict.state == OK else verdict.text,
        text=searched(sample_set, source, verdict.text),
    )


def reads_of(sample_set: Object) -> list[Reads]:
    """Newest first."""
    return [_reads(one) for one in reversed((sample_set.get("status") or {}).get("reads") or ())]


def _reads(one: Object) -> Reads:
    hits, misses = int(one.get("hits") or 0), int(one.get("misses") or 0)
    ratio = share(hits, hits + misses)
    return Reads(str(one.get("job") or ""), int(one.get("epoch") or 0), hits, misses, ratio, one.get("stallSeconds"))
