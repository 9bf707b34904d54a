"""Real Argo on the fixture: workflows by its own command line, artifacts through the S3 server, Argo's own examples."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable

import pytest
import yaml

from argo.examples import catalogue, platforms, record, runner
from argo.examples.catalogue import Case
from argo.examples.comparison import Result, compare
from harness import Completed, Kubectl, Target, need
from tools import argo as tool

from .harness.argo import BUCKET, NAMESPACE, namespace_objects

pytestmark = [pytest.mark.timeout(600)]

ARTIFACTS = """
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: passes}
spec:
  entrypoint: main
  templates:
  - name: main
    dag:
      tasks:
      - {name: write, template: write}
      - name: read
        template: read
        depends: write
        arguments: {artifacts: [{name: given, from: "{{tasks.write.outputs.artifacts.made}}"}]}
  - name: write
    container: {image: busybox, command: [sh, -c], args: ["mkdir /tmp/made; echo from the first step > /tmp/made/text"]}
    outputs: {artifacts: [{name: made, path: /tmp/made}]}
  - name: read
    inputs: {artifacts: [{name: given, path: /tmp/given}]}
    container: {image: busybox, command: [cat, /tmp/given/text]}
"""
CORE = (
    "examples/steps.yaml",
    "examples/coinflip.yaml",
    "examples/dag-enhanced-depends.yaml",
    "examples/loops.yaml",
)
Argo = Callable[..., Completed]


@pytest.fixture
def argo(argo_binary: str, server: Target, kubectl: Kubectl, namespace: str) -> Argo:
    """Argo's command line, in a namespace in which workflows may run."""
    have = kubectl("get", "deployment", "workflow-controller", "-n", NAMESPACE, check=False).returncode == 0
    need("argo", have=have, hint="`make cluster WITH=argo`")
    objects = namespace_objects(tool.files(), namespace)
    kubectl("apply", "--server-side", "-f", "-", input=yaml.safe_dump_all(objects))

    def run(*args: str, input: str | None = None) -> Completed:
        command = [argo_binary, "--namespace", namespace, *args]
        return subprocess.run(
            command, env=server.env, input=input, capture_output=True, text=True, timeout=300, check=True
        )

    return run


@pytest.mark.core
def test_a_step_reads_what_another_wrote_through_the_artifact_repository(argo: Argo) -> None:
    argo("submit", "--wait", "-", input=ARTIFACTS)
    workflow = json.loads(argo("get", "passes", "-o", "json").stdout)
    assert workflow["status"]["phase"] == "Succeeded", workflow["status"]
    nodes = {node["displayName"]: node for node in workflow["status"]["nodes"].values()}
    (made,) = nodes["write"]["outputs"]["artifacts"]
    assert made["s3"]["key"].startswith("passes/"), f"its place in {BUCKET}"
    assert "from the first step" in argo("logs", "passes").stdout


def _recorded(cases: list[Case]) -> list[Case]:
    known = record.load(record.CLUSTER)
    return [case for case in cases if case.name in known and known[case.name].judges]


def _verdicts(server: Target, cases: list[Case]) -> list[str]:
    """What differs from the record."""
    known = record.load(record.CLUSTER)
    found = runner.run(platforms.fixture(server.kubeconfig), cases)
    compared = [(case.name, compare(known[case.name], verdict)) for case, verdict, _ in found]
    return [f"{name}: {each.difference}" for name, each in compared if each.result is not Result.SAME]


@pytest.mark.core
def test_some_of_argos_examples_end_as_recorded(argo: Argo, server: Target) -> None:
    cases = [case for case in catalogue.cases(tool.files()) if case.name in CORE]
    assert _recorded(cases) == cases
    assert _verdicts(server, cases) == []


@pytest.mark.full
@pytest.mark.timeout(1200)
def test_the_examples_that_argo_itself_tests_end_as_recorded(argo: Argo, server: Target) -> None:
    cases = [case for case in catalogue.cases(tool.files()) if case.labelled and case.name not in CORE]
    assert _verdicts(server, _recorded(cases)) == []
