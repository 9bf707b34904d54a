"""The kind PaddleJob as API servers know it: names, columns, scale."""

from __future__ import annotations

from paddlecloud.api import names
from paddlecloud.api.kind import AGE, Column, KindDeclaration, Scale
from paddlecloud.api.paddlejob.spec import PaddleJob
from paddlecloud.api.paddlejob.status import ALL_PHASES, CONDITIONS

DECLARATION = KindDeclaration(
    group=names.PADDLEJOB.group,
    versions=(names.PADDLEJOB.version,),
    kind=names.PADDLEJOB.kind,
    plural=names.PADDLEJOB.plural,
    singular="paddlejob",
    short_names=("pdj",),
    categories=("all", "paddle"),
    type=PaddleJob,
    doc=(
        "A distributed training job with PaddlePaddle: parameter servers and workers, collective workers, or a single "
        "process."
    ),
    conditions=CONDITIONS,
    phases=ALL_PHASES,
    columns=(
        Column("Status", "string", ".status.phase"),
        Column("Valid", "string", '.status.conditions[?(@.type=="Valid")].status', priority=1),
        Column("Mode", "string", ".status.mode"),
        Column("PS", "string", ".status.ps.ready"),
        Column("Worker", "string", ".status.worker.ready"),
        AGE,
        Column("Heter", "string", ".status.heter.ready", priority=1),
        Column("Restarts", "integer", ".status.restarts", priority=1),
        Column("Start", "date", ".status.startTime", priority=1),
        Column("Completion", "date", ".status.completionTime", priority=1),
        Column("Progress", "string", ".status.progress.done", priority=1),
        Column("ETA", "string", ".status.progress.eta", priority=1),
    ),
    scale=Scale(".spec.worker.replicas", ".status.worker.running", ".status.worker.selector"),
)
