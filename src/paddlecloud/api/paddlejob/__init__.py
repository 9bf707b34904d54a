"""PaddleJob: distributed training with PaddlePaddle (`batch.paddlepaddle.org/v1`, short name `pdj`).

`decode` reads an object, `validate` says what makes it impossible to run, `normalise` says what it means.
"""

from __future__ import annotations

from typing import Any

from paddlecloud.api.names import ROLES
from paddlecloud.api.paddlejob.declaration import DECLARATION
from paddlecloud.api.paddlejob.settings import JobSettings, Normalised, RoleSettings, mode_of, normalise, unknown_values
from paddlecloud.api.paddlejob.spec import PaddleJob, PaddleJobSpec, RoleSpec
from paddlecloud.api.paddlejob.status import PHASES, PaddleJobStatus, RoleStatus, phase_of
from paddlecloud.api.paddlejob.validation import validate
from paddlecloud.api.problems import decode_as, encode

__all__ = [
    "DECLARATION",
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
    "unknown_values",
    "validate",
]


def decode(obj: Any) -> PaddleJob:
    """Read an object; `DecodeError` names the field that has the wrong shape."""
    return decode_as(PaddleJob, obj)
