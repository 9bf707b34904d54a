"""PaddleJob: distributed training with PaddlePaddle (`batch.paddlepaddle.org/v1`, short name `pdj`).

`decode` reads an object, `validate` says what makes it impossible to run, `normalise` says what it means.
"""

from __future__ import annotations

from typing import Any

from paddlecloud.api import names
from paddlecloud.api.kind import AGE, Column, KindDeclaration, Scale
from paddlecloud.api.paddlejob.settings import JobSettings, Normalised, RoleSettings, mode_of, normalise, unknown_words
from paddlecloud.api.paddlejob.spec import ROLES, PaddleJob, PaddleJobSpec, RoleSpec
from paddlecloud.api.paddlejob.status import ALL_PHASES, CONDITIONS, PHASES, PaddleJobStatus, RoleStatus, phase_of
from paddlecloud.api.paddlejob.validation import validate
from paddlecloud.api.problems import decode_as, encode

__all__ = [
    "DECLARATION",
    "ENDED_ANNOTATION",
    "PHASES",
    "ROLES",
    "JobSettings",
    "Normalised",
    "PaddleJob",
    "PaddleJobSpec",
    "PaddleJobStatus",
    "RoleSettings",
    "RoleSpec",
    "RoleStatus",
    "decode",
    "encode",
    "mode_of",
    "normalise",
    "phase_of",
    "unknown_words",
    "validate",
]

ENDED_ANNOTATION = "paddlepaddle.org/ended"
"""Of pods that their controller ended on purpose: why. Their exit code is that of the signal."""

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


def decode(obj: Any) -> PaddleJob:
    """Read an object; `DecodeError` names the field that has the wrong shape."""
    return decode_as(PaddleJob, obj)
