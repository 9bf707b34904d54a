"""Every PaddleJob of the examples, the manual's own among them, is taken as it stands and comes to run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from paddlecloud.api.paddlejob import PHASES
from paddlecloud.controllers.paddlejob import kubeflow
from paddlecloud.kube.clock import rfc3339

from .world import START, JobCluster

EXAMPLES = Path(__file__).parents[4] / "examples"
GROUPS = {"batch.paddlepaddle.org/v1", "kubeflow.org/v1"}


def jobs() -> list[Any]:
    found = []
    for path in sorted(EXAMPLES.glob("**/*.yaml")):
        for number, document in enumerate(yaml.safe_load_all(path.read_text())):
            if isinstance(document, dict) and document.get("kind") == "PaddleJob" and document["apiVersion"] in GROUPS:
                found.append(pytest.param(document, id=f"{path.relative_to(EXAMPLES)}-{number}"))
    return found


@pytest.mark.parametrize("job", jobs())
def test_it_runs(job: dict[str, Any]) -> None:
    stored = {"namespace": "default", "uid": "u", "generation": 1, "creationTimestamp": rfc3339(START)}
    job = {**job, "metadata": {**stored, **job["metadata"], "resourceVersion": "1"}}
    if job["apiVersion"] == "kubeflow.org/v1":
        (job,) = kubeflow.decide(job, None, START).create
        job["metadata"] |= stored
    job["spec"].pop("suspend", None)
    world = JobCluster(job)
    world.claim = {"metadata": {"name": "data"}}
    world.now += 5  # past the time a job waits for a PodGroup of the user's
    world.start()
    assert world.phase in PHASES
    assert len(world.pods) == sum(
        world.job["spec"][role].get("replicas", 1) for role in ("ps", "worker", "heter") if role in world.job["spec"]
    )


def test_there_are_examples() -> None:
    assert len(jobs()) >= 15


def test_the_pipeline_launcher_understands_how_jobs_end() -> None:
    """It takes Succeed and Completed for success, Failed and Terminated for failure, and waits for all other words."""
    assert {"Completed", "Failed"} <= set(PHASES)
    assert not {"Succeed", "Terminated"} & set(PHASES)
