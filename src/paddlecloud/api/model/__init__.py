"""Model and ModelVersion: what `modelhub` stores, as objects. `modelhub.paddlepaddle.org/v1alpha1`.

A ModelVersion never changes. A Model has the aliases of its versions, each with the history of its moves (`aliases`).
`pdc model` and the SDK write them; `controllers.model` removes them with their files. `decode` and `validate` as for
every kind. All are loaded when they are first used: `pdc model ls` needs the grammar of names (`reference`) alone.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paddlecloud.api.model.declaration import MODEL as MODEL
    from paddlecloud.api.model.declaration import MODEL_VERSION as MODEL_VERSION
    from paddlecloud.api.model.spec import Model as Model
    from paddlecloud.api.model.spec import ModelSpec as ModelSpec
    from paddlecloud.api.model.spec import ModelStatus as ModelStatus
    from paddlecloud.api.model.spec import ModelVersion as ModelVersion
    from paddlecloud.api.model.spec import ModelVersionSpec as ModelVersionSpec
    from paddlecloud.api.model.spec import ModelVersionStatus as ModelVersionStatus
    from paddlecloud.api.model.spec import Move as Move
    from paddlecloud.api.model.spec import NextRemoval as NextRemoval
    from paddlecloud.api.model.spec import Retention as Retention
    from paddlecloud.api.model.validation import validate as validate
    from paddlecloud.api.problems import encode as encode

_FROM = {
    **dict.fromkeys(("MODEL", "MODEL_VERSION"), "paddlecloud.api.model.declaration"),
    **dict.fromkeys(
        ("Model", "ModelSpec", "ModelStatus", "ModelVersion", "ModelVersionSpec", "ModelVersionStatus", "Move"),
        "paddlecloud.api.model.spec",
    ),
    **dict.fromkeys(("NextRemoval", "Retention"), "paddlecloud.api.model.spec"),
    "validate": "paddlecloud.api.model.validation",
    "encode": "paddlecloud.api.problems",
}


def __getattr__(name: str) -> Any:
    if name in _FROM:
        return getattr(importlib.import_module(_FROM[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def decode(obj: Any) -> Model:
    """Read a Model; `DecodeError` names the field that has the wrong shape."""
    from paddlecloud.api.model import spec
    from paddlecloud.api.problems import decode_as

    return decode_as(spec.Model, obj)


def decode_version(obj: Any) -> ModelVersion:
    from paddlecloud.api.model import spec
    from paddlecloud.api.problems import decode_as

    return decode_as(spec.ModelVersion, obj)
