"""What real kubectl makes of the declared kinds: short names, scale, explain, defaults, refusals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from unit.api.examples import ROOT, documents

from .conftest import Kubectl


@pytest.fixture
def job(shell: Kubectl) -> Iterator[dict[str, Any]]:
    (obj,) = documents(ROOT / "paddlejob" / "wide-and-deep.yaml")
    obj["metadata"]["namespace"] = "kubeflow"
    del obj["spec"]["worker"]["replicas"]
    shell("create", "-f", "-", input=obj)
    yield obj
    shell("delete", "-f", "-", "--wait=false", input=obj)


def read(shell: Kubectl, *what: str) -> dict[str, Any]:
    return dict(json.loads(shell("get", *what, "-n", "kubeflow", "-o", "json").stdout))


def test_a_role_without_a_number_has_one_pod_and_scale_changes_it(shell: Kubectl, job: dict[str, Any]) -> None:
    name = job["metadata"]["name"]
    assert read(shell, "pdj", name)["spec"]["worker"]["replicas"] == 1
    shell("scale", "pdj", name, "-n", "kubeflow", "--replicas=3")
    assert read(shell, "paddlejobs.batch.paddlepaddle.org", name)["spec"]["worker"]["replicas"] == 3


def test_wide_output_shows_more(shell: Kubectl, job: dict[str, Any]) -> None:
    header = shell("get", "pdj", "-n", "kubeflow", "-o", "wide").stdout.splitlines()[0].split()
    more = ["HETER", "RESTARTS", "START", "COMPLETION", "PROGRESS", "ETA"]
    assert header == ["NAME", "STATUS", "VALID", "MODE", "PS", "WORKER", "AGE", *more]


def test_pod_templates_are_stored_whole(shell: Kubectl, job: dict[str, Any]) -> None:
    stored = read(shell, "pdj", job["metadata"]["name"])
    assert stored["spec"]["ps"]["template"] == job["spec"]["ps"]["template"]


def test_explain_shows_what_a_field_means(shell: Kubectl) -> None:
    text = " ".join(shell("explain", "paddlejobs.batch.paddlepaddle.org.spec.successPolicy").stdout.split())
    assert "Who decides that the job has completed" in text
    assert "Workers" in text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"worker": {"replicas": -1}}, "spec.worker.replicas"),
        ({"withGloo": "yes"}, "spec.withGloo"),
        ({"successPolicy": "Any"}, "spec.successPolicy"),
        ({"sampleSetRef": {"name": "x"}}, "spec.sampleSetRef.mountPath"),
    ],
)
def test_what_the_schema_forbids_is_refused_at_once(shell: Kubectl, change: dict[str, Any], said: str) -> None:
    obj = {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": "bad", "namespace": "kubeflow"},
        "spec": change,
    }
    with pytest.raises(AssertionError, match=said.replace(".", r"\.")):
        shell("create", "--dry-run=server", "-f", "-", input=obj)


def test_a_paddleservice_is_scaled_and_shows_its_condition(shell: Kubectl) -> None:
    (obj,) = documents(ROOT / "paddleservice" / "bert.yaml")
    name, place = obj["metadata"]["name"], ("-n", obj["metadata"]["namespace"])
    kind = "paddleservices.serving.paddlepaddle.org"
    shell("create", "-f", "-", input=obj)
    try:
        shell("scale", kind, name, *place, "--replicas=2")
        status = {
            "url": "http://bert.localhost",
            "traffic": "100/0",
            "replicas": 2,
            "default": {"name": f"{name}-default-1"},
            "conditions": [{"type": "RoutesReady", "status": "False"}, {"type": "Ready", "status": "True"}],
        }
        change = json.dumps({"status": status})
        shell("patch", kind, name, *place, "--subresource=status", "--type=merge", "--patch", change)
        header, line = shell("get", kind, name, *place).stdout.splitlines()
        assert header.split() == ["NAME", "URL", "DEFAULT", "CANARY", "TRAFFIC", "READY", "REPLICAS", "AGE"]
        assert line.split()[:6] == [name, "http://bert.localhost", f"{name}-default-1", "100/0", "True", "2"]
    finally:
        shell("delete", kind, name, *place, "--wait=false")
