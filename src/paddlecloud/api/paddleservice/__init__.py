"""PaddleService: a model behind a URL that scales with its load, down to zero.

It is served under two groups with one schema: `serving.paddlepaddle.org/v1` and, for YAML written for the earlier
ElasticServing project, `elasticserving.paddlepaddle.org/v1`. `decode`, `validate` and `normalise` as for every kind.
"""

from __future__ import annotations

from typing import Any

from paddlecloud.api.paddleservice.declaration import DECLARATION, ELASTICSERVING
from paddlecloud.api.paddleservice.settings import (
    EndpointSettings,
    Normalised,
    ScalingSettings,
    ServiceSettings,
    normalise,
    window_seconds,
)
from paddlecloud.api.paddleservice.spec import PaddleService, PaddleServiceSpec, PaddleServiceStatus
from paddlecloud.api.paddleservice.validation import validate
from paddlecloud.api.problems import decode_as, encode

__all__ = [
    "DECLARATION",
    "ELASTICSERVING",
    "EndpointSettings",
    "Normalised",
    "PaddleService",
    "PaddleServiceSpec",
    "PaddleServiceStatus",
    "ScalingSettings",
    "ServiceSettings",
    "decode",
    "encode",
    "normalise",
    "validate",
    "window_seconds",
]


def decode(obj: Any) -> PaddleService:
    """Read an object of either group; `DecodeError` names the field that has the wrong shape."""
    return decode_as(PaddleService, obj)
