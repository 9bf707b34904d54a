"""The pod of a PaddleJob whose program makes the model: its spec as the job's author wrote it.

Plain data, for what reads jobs and does not run them. Pod templates have no schema: what is no mapping, or no list, is
as if it were not there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TRAINING_ROLES = ("worker", "ps", "heter")
"""The first of these that a job has is the one that trains."""


def training_pod(job: Mapping[str, Any]) -> dict[str, Any]:
    """The spec of the pods that train."""
    spec = mapping(job.get("spec"))
    block = next((spec[role] for role in TRAINING_ROLES if isinstance(spec.get(role), dict)), None)
    return mapping(mapping(mapping(block).get("template")).get("spec"))


def training_container(job: Mapping[str, Any]) -> dict[str, Any]:
    return next(iter(mappings(training_pod(job).get("containers"))), {})


def mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def mappings(value: Any) -> list[dict[str, Any]]:
    return [one for one in listed(value) if isinstance(one, dict)]


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
