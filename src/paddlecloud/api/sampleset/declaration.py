"""The kind SampleSet as API servers know it: names and columns."""

from __future__ import annotations

from paddlecloud.api import names
from paddlecloud.api.kind import AGE, Column, KindDeclaration
from paddlecloud.api.sampleset.spec import CONDITIONS, PHASES, SampleSet

DECLARATION = KindDeclaration(
    group=names.SAMPLESET.group,
    versions=(names.SAMPLESET.version,),
    kind=names.SAMPLESET.kind,
    plural=names.SAMPLESET.plural,
    singular="sampleset",
    categories=("all", "paddle"),
    type=SampleSet,
    doc="A data set that is imported once and cached, in partitions, on the nodes that train with it.",
    conditions=CONDITIONS,
    phases=PHASES,
    columns=(
        Column("TOTAL SIZE", "string", ".status.cacheStatus.totalSize"),
        Column("CACHED SIZE", "string", ".status.cacheStatus.cachedSize"),
        Column("AVAIL SPACE", "string", ".status.cacheStatus.diskAvail"),
        Column("Runtime", "string", ".status.runtimeStatus.runtimeReady"),
        Column("PHASE", "string", ".status.phase"),
        AGE,
        Column("Files", "string", ".status.cacheStatus.totalFiles", priority=1),
        Column("Driver", "string", ".status.driver", priority=1),
    ),
)
