"""When a step goes on: a table for each kind."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.pipelines.launchers import completion
from paddlecloud.pipelines.launchers.completion import CompletionCheck


def holds(*conditions: str, **more: Any) -> dict[str, Any]:
    """An object with these conditions, written `Type=Status`, in this order."""
    listed = [dict(zip(("type", "status"), one.split("="), strict=True)) for one in conditions]
    return {"metadata": {"generation": 2}, "spec": {"replicas": 1}, "status": {"conditions": listed, **more}}


def phase(name: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"generation": 2}, "status": {"phase": name, **more}}


AVAILABLE = {"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}
LATE = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "late"}


@pytest.mark.parametrize(
    ("check", "obj", "done"),
    [
        (completion.job, holds("Complete=True", "SuccessCriteriaMet=True"), True),
        (completion.job, holds("SuccessCriteriaMet=True", "Complete=True"), True),
        (completion.job, holds("SuccessCriteriaMet=True"), None),
        (completion.job, holds("Failed=True", "Other=True"), False),
        (completion.job, holds("Suspended=True"), None),
        (completion.job, {"metadata": {}}, None),
        (completion.deployment, holds("Available=True", "Progressing=True", **AVAILABLE), True),
        (completion.deployment, holds("Progressing=True", observedGeneration=2), None),
        (completion.deployment, holds(**{**AVAILABLE, "observedGeneration": 1}), None),
        (completion.deployment, holds(**{**AVAILABLE, "replicas": 2}), None),
        (completion.deployment, holds(**{**AVAILABLE, "availableReplicas": 0, "conditions": [LATE]}), False),
        (completion.paddle_service, holds("Ready=True", "RoutesReady=True", observedGeneration=2), True),
        (completion.paddle_service, holds("RoutesReady=True", observedGeneration=2), None),
        (completion.paddle_service, holds("Ready=True", observedGeneration=1), None),
        (completion.paddle_service, {"metadata": {}}, None),
        (completion.SAMPLESET, phase("Ready"), True),
        (completion.SAMPLESET, phase("PartialReady"), None),
        (completion.SAMPLESET, phase("SyncFailed"), False),
        (completion.SAMPLEJOB, phase("Succeeded"), True),
        (completion.SAMPLEJOB, phase("Failed"), False),
        (completion.PADDLEJOB, phase("Completed"), True),
        (completion.PADDLEJOB, phase("Succeed"), True),
        (completion.PADDLEJOB, phase("Terminated"), False),
        (completion.PADDLEJOB, phase("Running", observedGeneration=1), None),
        (completion.PADDLEJOB, phase("Completed", observedGeneration=1), True),
        (completion.PADDLEJOB, phase("Failed", reason="InvalidSpec", observedGeneration=1), None),
        (completion.PADDLEJOB, phase("Failed", reason="InvalidSpec", observedGeneration=2), False),
        (completion.PADDLEJOB, phase(""), None),
    ],
)
def test_a_verdict_is_about_the_present_object_and_finds_conditions_by_their_type(
    check: CompletionCheck, obj: dict[str, Any], done: bool | None
) -> None:
    found = check(obj)
    assert (None if found is None else found.done) is done
