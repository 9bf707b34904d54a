"""SampleSet: a data set that is imported once and cached on the nodes that train with it.

`batch.paddlepaddle.org/v1alpha1`. `decode` reads an object, `validate` says what makes it impossible to serve,
`normalise` says what it means.
"""

from __future__ import annotations

from typing import Any

from paddlecloud.api.problems import decode_as, encode
from paddlecloud.api.sampleset.declaration import DECLARATION
from paddlecloud.api.sampleset.settings import LevelSettings, Normalised, SampleSetSettings, Secret, normalise
from paddlecloud.api.sampleset.spec import (
    ADDRESS_RULES,
    MAX_PARTITIONS,
    PHASES,
    SampleSet,
    SampleSetSpec,
    SampleSetStatus,
    TransferProgress,
)
from paddlecloud.api.sampleset.validation import SCHEMES, uri_problem, validate

__all__ = [
    "ADDRESS_RULES",
    "DECLARATION",
    "MAX_PARTITIONS",
    "PHASES",
    "SCHEMES",
    "LevelSettings",
    "Normalised",
    "SampleSet",
    "SampleSetSettings",
    "SampleSetSpec",
    "SampleSetStatus",
    "Secret",
    "TransferProgress",
    "decode",
    "encode",
    "normalise",
    "uri_problem",
    "validate",
]


def decode(obj: Any) -> SampleSet:
    """Read an object; `DecodeError` names the field that has the wrong shape."""
    return decode_as(SampleSet, obj)
