"""Fields of a workflow that are about its pods, and pods that never run."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.local.workflow.executor.jsonpath import jq
from paddlecloud.local.workflow.executor.orders import ExecutorError
from unit.local.workflow.simulation import Simulation, workflow
from unit.local.workflow.validation.test_validation import judged

ONE = """
entrypoint: main
%s
templates:
- name: main
  container: {image: busybox, command: [x]}
"""


def test_a_budget_protects_the_pods_of_a_workflow_until_it_is_over() -> None:
    flow = workflow(ONE % "podDisruptionBudget: {minAvailable: 9999}")
    simulation = Simulation(flow)
    (budget,) = [each for each in simulation.decided().create if each["kind"] == "PodDisruptionBudget"]
    assert budget["spec"] == {
        "minAvailable": 9999,
        "selector": {"matchLabels": {"workflows.argoproj.io/workflow": "wf"}},
    }
    budget["metadata"]["uid"] = "uid-of-budget"
    assert [each["kind"] for each in simulation.decided(budgets=[budget]).create] == ["Pod"]
    flow["status"] = {"phase": "Succeeded", "nodes": {}}
    (deleted,) = Simulation(flow).decided(budgets=[budget]).delete
    assert (deleted.name, deleted.uid) == ("wf", "uid-of-budget")


def test_a_priority_class_of_all_pods_gives_way_to_that_of_a_template() -> None:
    (pod,) = Simulation(workflow(ONE % "podPriorityClassName: low")).step()
    assert pod["spec"]["priorityClassName"] == "low"
    own = (ONE % "podPriorityClassName: low") + "  priorityClassName: high\n"
    (pod,) = Simulation(workflow(own)).step()
    assert pod["spec"]["priorityClassName"] == "high"


def test_a_plugin_template_fails_as_on_argo_without_plugins() -> None:
    spec = """
entrypoint: main
templates:
- name: main
  steps: [[{name: one, template: plug, withItems: [1, 2]}]]
- {name: plug, plugin: {hello: {}}}
"""
    simulation = Simulation(workflow(spec)).run()
    assert simulation.status["phase"] == "Failed"
    node = simulation.nodes["one(0:1)"]
    assert (node["type"], node["phase"], node["message"]) == ("Plugin", "Failed", "no plugin executed the template")


@pytest.mark.parametrize(
    ("why", "code", "shown"),
    [
        (
            'exec: "x": executable file not found in $PATH', "64",
            'Error (exit code 64): failed to find name in PATH: exec: "x": executable file not found in $PATH',
        ),
        ("working directory /x: no such", "128", "StartError (exit code 128): working directory /x: no such"),
    ],
)  # fmt: skip
def test_a_program_that_the_kubelet_cannot_start_ends_as_under_the_executor(why: str, code: str, shown: str) -> None:
    simulation = Simulation(workflow(ONE % ""))
    (pod,) = simulation.step()
    simulation.finish(pod)
    ended = {"exitCode": 128, "reason": "StartError", "message": why}
    pod["status"]["containerStatuses"][0]["state"] = {"terminated": ended}
    pod["status"]["phase"] = "Failed"
    simulation.step()
    node = simulation.nodes["wf"]
    assert (node["outputs"]["exitCode"], node["message"]) == (code, f"main: {shown}")


def test_a_data_template_gives_a_result_that_a_loop_reads() -> None:
    spec = """
entrypoint: main
templates:
- name: main
  steps:
  - - {name: list, template: list}
  - - {name: each, template: say, withParam: "{{steps.list.outputs.result}}"}
- name: list
  data:
    source: {artifactPaths: {name: logs, s3: {key: logs}}}
    transformation: [{expression: 'filter(data, {# endsWith ".log"})'}]
- {name: say, container: {image: busybox, command: [say]}}
"""
    simulation = Simulation(workflow(spec), lambda pod: '["a","b"]' if "-list-" in pod["metadata"]["name"] else 0).run()
    assert simulation.status["phase"] == "Succeeded"
    assert {"each(0:a)", "each(1:b)"} <= simulation.nodes.keys()


PATHS = {"artifactPaths": {"s3": {"key": "x"}}}


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({}, "source.artifactPaths"),
        ({"source": PATHS}, "transformation"),
        ({"source": PATHS, "transformation": [{}]}, "transformation[0].expression"),
        ({"source": {"artifactPaths": {"gcs": {"key": "x"}}}, "transformation": []}, "source.artifactPaths[0].gcs"),
        ({"source": {"artifactPaths": {"raw": {"data": "x"}}}, "transformation": []}, "source.artifactPaths.raw"),
    ],
)
def test_a_data_template_that_lists_nothing_is_refused(data: dict[str, Any], field: str) -> None:
    assert judged({"entrypoint": "main", "templates": [{"name": "main", "data": data}]}) == [
        f"spec.templates[0].data.{field}"
    ]


def test_jq_reads_json_inside_of_texts_and_refuses_other_functions() -> None:
    found = {"data": {"some": '{"one": [{"foo": "bar"}]}'}}
    assert jq(".data.some | fromjson | .one", found) == '[{"foo":"bar"}]'
    with pytest.raises(ExecutorError, match="not served"):
        jq("input", found)


def test_a_misspelt_source_of_a_value_is_a_mistake_and_no_missing_service() -> None:
    outputs = {"parameters": [{"name": "x", "valueFrom": {"jqfilter": ".a"}}]}
    template = {"name": "main", "resource": {"action": "get", "manifest": "x"}, "outputs": outputs}
    assert judged({"entrypoint": "main", "templates": [template]}) == [
        "spec.templates[0].outputs.parameters[0].valueFrom.jqfilter"
    ]
