"""Sets and jobs that ask for two billion of something, stored before the schema had maxima: refused, never counted."""

from __future__ import annotations

import pytest

from paddlecloud.controllers.sampledata import names
from paddlecloud.controllers.sampledata.samplejob import decide as decide_job
from paddlecloud.controllers.sampledata.samplejob.draft import Observed
from paddlecloud.controllers.sampledata.sampleset import SampleSetOptions
from paddlecloud.controllers.sampledata.sampleset import case as sets
from paddlecloud.controllers.sampledata.sampleset import decide as decide_set
from paddlecloud.kube.resource import Object

HUGE = 2_000_000_000
NOW = 1_700_000_000.0


def stored(kind: str, name: str, spec: Object, status: Object | None = None) -> Object:
    finalizer = names.finalizer(name) if kind == "SampleSet" else names.job_finalizer(name)
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", "generation": 1, "finalizers": [finalizer]}
    body = {"apiVersion": "batch.paddlepaddle.org/v1alpha1", "kind": kind, "metadata": meta, "spec": spec}
    return {**body, "status": status} if status else body


def huge_set(phase: str) -> Object:
    return stored("SampleSet", "imagenet", {"partitions": HUGE, "noSync": True}, {"phase": phase} if phase else None)


@pytest.mark.parametrize("phase", ["", "Bound", "PartialReady", "Ready"])
def test_a_stored_set_of_two_billion_partitions_is_refused_in_every_phase(phase: str) -> None:
    found = decide_set(huge_set(phase), sets.Observed(), NOW, SampleSetOptions())
    assert not found.create
    assert found.status is not None
    valid = next(c for c in found.status["conditions"] if c["type"] == "Valid")
    assert (valid["status"], valid["reason"]) == ("False", "InvalidSpec")
    assert "spec.partitions: Invalid value: 2000000000: must be at most 10000" in valid["message"]


@pytest.mark.parametrize("type", ["warmup", "clear"])
def test_a_job_of_such_a_set_waits_and_names_a_few_servers(type: str) -> None:
    job = stored("SampleJob", "warm", {"type": type, "sampleSetRef": {"name": "imagenet"}})
    found = decide_job(job, Observed(sample_set=huge_set("Ready")), NOW, SampleSetOptions())
    assert found.status is not None
    first = "imagenet-runtime-0, imagenet-runtime-1, imagenet-runtime-2"
    assert found.status["message"] == f"waiting for cache server {first} and {HUGE - 3} more"
    assert not found.submit


def test_a_status_that_names_two_billion_servers_is_followed_within_bounds() -> None:
    status = {"phase": "Running", "jobName": "uid-warm-1", "partitions": HUGE}
    job = stored("SampleJob", "warm", {"type": "warmup", "sampleSetRef": {"name": "imagenet"}}, status)
    found = decide_job(job, Observed(sample_set=huge_set("Ready")), NOW, SampleSetOptions())
    assert not found.submit
