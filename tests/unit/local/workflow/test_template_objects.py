"""Workflows made of a WorkflowTemplate, or that use templates of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from paddlecloud.kube.resource import Object
from paddlecloud.local.workflow.merging import joined
from unit.local.workflow.simulation import Simulation, command_of, workflow
from unit.local.workflow.validation.test_validation import judged

SHARED: dict[str, Any] = yaml.safe_load("""
    entrypoint: main
    arguments: {parameters: [{name: who, value: world}, {name: greeting, value: hello}]}
    podMetadata: {labels: {team: a}}
    templates:
    - name: main
      steps:
      - - {name: say, template: say, arguments: {parameters: [{name: text, value: "{{workflow.parameters.who}}"}]}}
    - name: say
      inputs: {parameters: [{name: text}]}
      container: {image: busybox, command: [echo], args: ["{{inputs.parameters.text}}"]}
""")
REFERS = "workflowTemplateRef: {name: shared}\narguments: {parameters: [{name: who, value: you}]}"
USES = """
    entrypoint: main
    arguments: {parameters: [{name: who, value: you}]}
    templates:
    - name: main
      steps:
      - - {name: a, templateRef: {name: shared, template: main}}
      - - {name: b, templateRef: {name: shared, template: say}, arguments: {parameters: [{name: text, value: b}]}}
"""


class Shelf:
    """WorkflowTemplates that may change while a workflow runs."""

    def __init__(self) -> None:
        self.spec: Mapping[str, Any] | None = SHARED

    def __call__(self, name: str, clusterwide: bool) -> Mapping[str, Any] | None:
        return self.spec if name == "shared" and not clusterwide else None


def test_given_a_template_ref_then_the_workflow_is_merged_and_its_spec_is_stored() -> None:
    said: list[str] = []

    def program(pod: Object) -> int:
        said.append(command_of(pod))
        return 0

    done = Simulation(workflow(REFERS), program, specs=Shelf()).run()
    assert (done.status["phase"], said) == ("Succeeded", ["you"])
    stored = done.status["storedWorkflowTemplateSpec"]
    values = {each["name"]: each["value"] for each in stored["arguments"]["parameters"]}
    assert (stored["entrypoint"], values) == ("main", {"who": "you", "greeting": "hello"})
    assert "storedTemplates" not in done.status


@pytest.mark.parametrize("text", ["REFERS", "USES"])
def test_given_a_template_that_is_deleted_meanwhile_then_the_workflow_goes_on_with_what_was_stored(text: str) -> None:
    shelf = Shelf()
    simulation = Simulation(workflow(globals()[text]), specs=shelf)
    for pod in simulation.step():
        simulation.finish(pod)
    shelf.spec = None
    assert simulation.run().status["phase"] == "Succeeded", simulation.status


def test_templates_of_other_objects_are_stored_under_argos_ids() -> None:
    done = Simulation(workflow(USES), specs=Shelf()).run()
    assert done.status["phase"] == "Succeeded", done.status
    assert set(done.status["storedTemplates"]) == {"namespaced/shared/main", "namespaced/shared/say"}
    assert done.nodes["say"]["templateScope"] == "namespaced/shared"
    assert all(pod["metadata"]["labels"]["team"] == "a" for pod in done.pods.values())


def test_given_no_such_template_object_then_the_workflow_ends_with_its_name() -> None:
    done = Simulation(workflow(REFERS)).run()
    assert (done.status["phase"], done.status["message"]) == ("Error", "WorkflowTemplate shared not found")


def test_suspend_and_shutdown_come_from_the_workflow_not_from_what_is_stored() -> None:
    simulation = Simulation(workflow(REFERS + "\nsuspend: true"), specs=Shelf())
    simulation.step()
    assert not simulation.pods
    del simulation.workflow["spec"]["suspend"]
    assert simulation.run().status["phase"] == "Succeeded"


def test_a_parameter_with_a_value_replaces_the_whole_parameter_of_the_template() -> None:
    usual = {"arguments": {"parameters": [{"name": "a", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}}]}}
    text = "workflowTemplateRef: {name: shared}\narguments: {parameters: [{name: a, value: given}]}"
    simulation = Simulation(workflow(text), specs=lambda name, clusterwide: {**SHARED, **usual})
    simulation.step()
    arguments = simulation.status["storedWorkflowTemplateSpec"]["arguments"]
    assert arguments == {"parameters": [{"name": "a", "value": "given"}]}


def test_specs_are_merged_as_kubernetes_merges_them() -> None:
    usual = {"a": {"x": 1, "y": 1}, "tolerations": [1], "volumes": [{"name": "v", "emptyDir": {}}]}
    given = {"a": {"y": 2}, "tolerations": [2], "volumes": [{"name": "w"}], "empty": None}
    volumes = [{"name": "w"}, {"name": "v", "emptyDir": {}}]
    assert joined(usual, given) == {"a": {"x": 1, "y": 2}, "tolerations": [2], "volumes": volumes}


def test_template_defaults_of_another_kind_do_not_count() -> None:
    spec = """
        entrypoint: main
        templateDefaults:
          container: {image: busybox, env: [{name: A, value: "1"}]}
          script: {image: python}
          activeDeadlineSeconds: 30
        templates:
        - {name: main, container: {command: ["true"], env: [{name: B, value: "2"}]}}
    """
    simulation = Simulation(workflow(spec))
    simulation.step()
    (pod,) = simulation.pods.values()
    (main,) = pod["spec"]["containers"]
    assert (main["image"], [each["name"] for each in main["env"]][:2]) == ("busybox", ["B", "A"])
    assert pod["spec"]["activeDeadlineSeconds"] == 30


# When they are written


def test_a_workflow_is_judged_with_the_templates_that_it_names() -> None:
    shelf = Shelf()

    def specs(namespace: str, name: str, clusterwide: bool) -> Mapping[str, Any] | None:
        return shelf(name, clusterwide) if namespace == "default" else None

    def fields(text: str) -> list[str]:
        return judged(yaml.safe_load(text), specs=specs)

    assert fields(REFERS) == fields(USES) == []
    assert fields("workflowTemplateRef: {name: other}") == ["spec.workflowTemplateRef"]
    assert fields("workflowTemplateRef: {name: shared, clusterScope: true}") == ["spec.workflowTemplateRef"]
    assert fields("workflowTemplateRef: {name: shared}\nentrypoint: nothing") == ["spec.entrypoint"]
    assert fields("workflowTemplateRef: {name: shared}\nentrypoint: say") == ["spec.arguments.parameters"]
    step = "spec.templates[0].steps[0][0]"
    assert fields(USES.replace("name: shared, template: main", "name: x, template: main")) == [
        f"{step}.templateRef.name"
    ]
    assert fields(USES.replace("template: main}}", "template: gone}}")) == [f"{step}.templateRef.template"]
    assert fields(USES.replace("template: main}}", "template: say}}")) == [f"{step}.arguments.parameters"]
