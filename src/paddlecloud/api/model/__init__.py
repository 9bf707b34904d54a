"""Model and ModelVersion: what `modelhub` stores, as objects. `modelhub.paddlepaddle.org/v1alpha1`.

A ModelVersion never changes. A Model has the aliases of its versions, each with the history of its moves (`aliases`).
`pdc model` and the SDK write them; `controllers.model` removes them with their files. `decode` and `validate` as for
every kind.
"""

from __future__ import annotations

from typing import Any

from paddlecloud.api.model.declaration import MODEL, MODEL_VERSION
from paddlecloud.api.model.spec import (
    Model,
    ModelSpec,
    ModelStatus,
    ModelVersion,
    ModelVersionSpec,
    ModelVersionStatus,
    Move,
    NextRemoval,
    Retention,
)
from paddlecloud.api.model.validation import validate
from paddlecloud.api.problems import decode_as, encode

__all__ = [
    "MODEL",
    "MODEL_VERSION",
    "Model",
    "ModelSpec",
    "ModelStatus",
    "ModelVersion",
    "ModelVersionSpec",
    "ModelVersionStatus",
    "Move",
    "NextRemoval",
    "Retention",
    "decode",
    "decode_version",
    "encode",
    "validate",
]


def decode(obj: Any) -> Model:
    """Read a Model; `DecodeError` names the field that has the wrong shape."""
    return decode_as(Model, obj)


def decode_version(obj: Any) -> ModelVersion:
    return decode_as(ModelVersion, obj)
