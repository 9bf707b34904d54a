"""When a step goes on: a table for each kind."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.pipelines.launchers import verdicts
from paddlecloud.pipelines.launchers.verdicts import Judge


def holds(*conditions: str, **more: Any) -> dict[str, Any]:
    """An object with these conditions, written `Type=Status`, in this order."""
    listed = [dict(zip(("type", "status"), one.split("="), strict=True)) for one in conditions]
    return {"metadata": {"generation": 2}, "spec": {"replicas": 1}, "status": {"conditions": listed, **more}}


def phase(name: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"generation": 2}, "status": {"phase": name, **more}}


AVAILABLE = {"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}
LATE = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "late"}


@pytest.mark.parametrize(
    ("judge", "obj", "done"),
    [
        (verdicts.job, holds("Complete=True", "SuccessCriteriaMet=True"), True),
        (verdicts.job, holds("SuccessCriteriaMet=True", "Complete=True"), True),
        (verdicts.job, holds("SuccessCriteriaMet=True"), None),
        (verdicts.job, holds("Failed=True", "Other=True"), False),
        (verdicts.job, holds("Suspended=True"), None),
        (verdicts.job, {"metadata": {}}, None),
        (verdicts.deployment, holds("Available=True", "Progressing=True", **AVAILABLE), True),
        (verdicts.deployment, holds("Progressing=True", observedGeneration=2), None),
        (verdicts.deployment, holds(**{**AVAILABLE, "observedGeneration": 1}), None),
        (verdicts.deployment, holds(**{**AVAILABLE, "replicas": 2}), None),
        (verdicts.deployment, holds(**{**AVAILABLE, "availableReplicas": 0, "conditions": [LATE]}), False),
        (verdicts.paddle_service, holds("Ready=True", "RoutesReady=True", observedGeneration=2), True),
        (verdicts.paddle_service, holds("RoutesReady=True", observedGeneration=2), None),
        (verdicts.paddle_service, holds("Ready=True", observedGeneration=1), None),
        (verdicts.paddle_service, {"metadata": {}}, None),
        (verdicts.SAMPLESET, phase("Ready"), True),
        (verdicts.SAMPLESET, phase("PartialReady"), None),
        (verdicts.SAMPLESET, phase("SyncFailed"), False),
        (verdicts.SAMPLEJOB, phase("Succeeded"), True),
        (verdicts.SAMPLEJOB, phase("Failed"), False),
        (verdicts.PADDLEJOB, phase("Completed"), True),
        (verdicts.PADDLEJOB, phase("Succeed"), True),
        (verdicts.PADDLEJOB, phase("Terminated"), False),
        (verdicts.PADDLEJOB, phase("Completed", observedGeneration=1), None),
        (verdicts.PADDLEJOB, phase(""), None),
    ],
)
def test_a_verdict_is_about_the_present_object_and_finds_conditions_by_their_type(
    judge: Judge, obj: dict[str, Any], done: bool | None
) -> None:
    verdict = judge(obj)
    assert (None if verdict is None else verdict.done) is done
