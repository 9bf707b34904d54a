"""Workflows as kfp 1.8.22 compiles them (`kfp1/pipelines.py`), unchanged: files, claims, resources, conditions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from embedded.test_workflow_pods import messages
from embedded.test_workflows import OVER, nodes
from harness import until
from unit.local.workloads.real import Kubectl, read


@pytest.fixture(autouse=True)
def pipeline_runner(kubectl: Kubectl) -> None:
    """The account that compiled workflows name, with what Kubeflow's own may do."""
    kubectl("create", "serviceaccount", "pipeline-runner")
    resources = ("persistentvolumeclaims", "jobs", "configmaps")
    kubectl("create", "role", "pipeline-runner", "--verb=*", *(f"--resource={each}" for each in resources))
    namespace = read(kubectl, "role/pipeline-runner")["metadata"]["namespace"]
    account = f"--serviceaccount={namespace}:pipeline-runner"
    kubectl("create", "rolebinding", "pipeline-runner", "--role=pipeline-runner", account)


def run_file(kubectl: Kubectl, name: str) -> dict[str, Any]:
    made = kubectl("create", "-f", str(Path(__file__).with_name("kfp1") / f"{name}.yaml"), "-o", "name").stdout.strip()
    found = until(lambda: read(kubectl, made), lambda wf: wf.get("status", {}).get("phase") in OVER)
    status = dict(found["status"])
    assert status["phase"] == "Succeeded", messages(status)
    return status


def test_functions_pass_files_and_values(kubectl: Kubectl) -> None:
    found = nodes(run_file(kubectl, "files"))
    outputs = {each["name"]: each["value"] for each in found["count"]["outputs"]["parameters"]}
    assert outputs == {"count-Output": "9"}
    assert [each["name"] for each in found["show"]["outputs"]["artifacts"]] == ["show-out"]


def test_a_claim_of_a_volume_op_is_used_by_two_steps(kubectl: Kubectl) -> None:
    found = nodes(run_file(kubectl, "volume"))
    outputs = {each["name"]: each["value"] for each in found["pvc"]["outputs"]["parameters"]}
    assert json.loads(outputs["pvc-manifest"])["kind"] == "PersistentVolumeClaim"
    assert outputs["pvc-name"].endswith("-mypvc")


def test_a_resource_op_waits_for_its_job(kubectl: Kubectl) -> None:
    found = nodes(run_file(kubectl, "resource"))
    name = next(each["value"] for each in found["job"]["outputs"]["parameters"] if each["name"] == "job-name")
    assert read(kubectl, f"job/{name}")["status"]["succeeded"] == 1


def test_conditions_and_loops_of_functions(kubectl: Kubectl) -> None:
    status = run_file(kubectl, "conditions")
    made = [node["displayName"] for node in status["nodes"].values() if (node.get("outputs") or {}).get("artifacts")]
    assert len([name for name in made if name.startswith("make")]) == 3
