"""Whether what a version says of itself besides its files can become a ModelVersion. Pure."""

from __future__ import annotations

import math

from paddlecloud.api.model.spec import ModelVersionSpec
from paddlecloud.api.problems import declared_problems
from paddlecloud.modelhub.errors import Refused
from paddlecloud.modelhub.manifest import Facts


def check_facts(facts: Facts) -> None:
    """Before anything is stored: what the API server would refuse afterwards. Raises `Refused`."""
    if not all(math.isfinite(value) for value in facts.metrics.values()):
        raise Refused("a metric is a finite number")
    spec = ModelVersionSpec(
        framework=facts.framework or None,
        signature=facts.signature,
        description=facts.description or None,
        metrics=dict(facts.metrics) or None,
        origin=dict(facts.origin) or None,
        created_by=facts.created_by,
        created_at=facts.created_at,
    )
    lacking = {"spec.model", "spec.version", "spec.digest", "spec.size", "spec.files"}
    for problem in declared_problems(spec, "spec"):
        if problem.field not in lacking:
            raise Refused(str(problem))
