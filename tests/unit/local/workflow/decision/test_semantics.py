"""Rules of Argo's controller that its own examples rely on."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from paddlecloud.local.workflow.executor.orders import BROKEN
from paddlecloud.local.workflow.pods.node_state import observe
from unit.local.workflow.simulation import Simulation, command_of, workflow

SAY = """
- name: say
  inputs: {parameters: [{name: text, default: usual}]}
  outputs: {parameters: [{name: made, valueFrom: {path: /made}}]}
  container: {image: busybox, command: [echo], args: ["{{inputs.parameters.text}}"]}
- name: needs
  inputs: {parameters: [{name: text}]}
  container: {image: busybox, command: [echo], args: ["{{inputs.parameters.text}}"]}
"""


def steps(text: str, more: str = "") -> str:
    return f"{more}\nentrypoint: main\ntemplates:\n- name: main\n  steps:\n{text}{SAY}"


def dag(text: str, more: str = "") -> str:
    return f"{more}\nentrypoint: main\ntemplates:\n- name: main\n  dag:\n    tasks:\n{text}{SAY}"


def said(run: Simulation, name: str) -> str:
    """The argument of the program of a node."""
    return command_of(run.pods[run.nodes[name]["id"]])


# A skipped step made no outputs


SKIPPED_STEP = """
  - - {name: a, template: say, when: "1 == 2"}
  - - {name: b, template: TEMPLATE, arguments: {parameters: [{name: text, value: "VALUE"}]}}
"""
SKIPPED_TASK = """
    - {name: a, template: say, when: "1 == 2"}
    - {name: b, depends: a, template: TEMPLATE, arguments: {parameters: [{name: text, value: "VALUE"}]}}
"""


@pytest.mark.parametrize(("made", "kind"), [(steps(SKIPPED_STEP), "steps"), (dag(SKIPPED_TASK), "tasks")])
@pytest.mark.parametrize(
    ("template", "value", "phase"),
    [
        ("say", "{{KIND.a.outputs.parameters.made}}", "Succeeded"),
        ("needs", "{{KIND.a.outputs.parameters.made}}", "Error"),
        ("say", "the {{KIND.a.outputs.parameters.made}}", "Error"),
    ],
    ids=["the input has a default", "it has none", "a part of a text"],
)
def test_an_argument_that_only_names_an_output_of_a_skipped_step_counts_as_none(
    made: str, kind: str, template: str, value: str, phase: str
) -> None:
    spec = made.replace("TEMPLATE", template).replace("VALUE", value.replace("KIND", kind))
    run = Simulation(workflow(spec)).run()
    found = run.phases().get("b") or run.phases()["[1]"]
    assert found == phase
    if phase == "Succeeded":
        assert said(run, "b") == "usual"


# Retries


@pytest.mark.parametrize(
    "spec",
    [
        steps("  - - {name: a, template: fixed, withItems: [1, 2]}\n", "retryStrategy: {limit: 1}"),
        dag("    - {name: a, template: fixed, withItems: [1, 2]}\n", "retryStrategy: {limit: 1}"),
    ],
    ids=["steps", "dag"],
)
def test_the_retry_strategy_of_a_workflow_is_that_of_every_template(spec: str) -> None:
    spec += "- name: fixed\n  outputs: {parameters: [{name: n, value: '7'}]}\n  container: {image: a, command: [b]}\n"
    kind = "tasks" if "tasks:" in spec else "steps"
    output = (
        f"  outputs: {{parameters: [{{name: all, valueFrom: {{parameter: '{{{{{kind}.a.outputs.parameters.n}}}}'}}}}]}}"
    )
    run = Simulation(workflow(spec.replace("- name: main\n", f"- name: main\n{output}\n"))).run()
    assert run.status["phase"] == "Succeeded"
    assert {node["type"] for name, node in run.nodes.items() if name in ("wf", "a(0:1)")} == {"Retry"}
    assert run.nodes["wf"]["outputs"]["parameters"][0]["value"] == '["7","7"]'


# Names


@pytest.mark.parametrize(
    ("items", "names"),
    [
        ('[[{"a": 1}, "b"], "c (d)"]', {'a(0:[{"a":1} b])', "a(1:c d)"}),
        ('[{"x": "1", "y": [2]}]', {"a(0:x:1,y:[2])"}),
    ],
)
def test_items_of_a_loop_are_part_of_its_names(items: str, names: set[str]) -> None:
    run = Simulation(workflow(steps(f"  - - {{name: a, template: say, withParam: '{items}'}}\n"))).run()
    assert {name for name in run.phases() if name.startswith("a(")} == names


def test_a_template_may_name_its_node() -> None:
    spec = steps("""
  - - {name: a, template: named, withItems: [x, y], arguments: {parameters: [{name: text, value: "{{item}}"}]}}
  - - {name: b, template: needs, arguments: {parameters: [{name: text, value: "{{steps.a.outputs.result}}"}]}}
""")
    spec += """
- name: named
  annotations: {workflows.argoproj.io/display-name: "say-{{inputs.parameters.text}}"}
  inputs: {parameters: [{name: text}]}
  container: {image: busybox, command: [echo], args: ["{{inputs.parameters.text}}"]}
"""
    run = Simulation(workflow(spec), command_of).run()
    assert {"say-x", "say-y"} < run.phases().keys()
    assert said(run, "b") == '["x","y"]'
    wrong = Simulation(workflow(spec.replace("say-{{", "no {{"))).run()
    assert "displayName must match" in wrong.status["message"]


# Hooks


def test_hooks_of_a_loop_are_of_the_whole_but_for_the_exit_hook() -> None:
    hook = "{template: say, expression: \"tasks.a.status == 'Running'\"}"
    task = f"    - {{name: a, template: inner, withItems: [1], hooks: {{exit: {{template: say}}, running: {hook}}}}}\n"
    inner = "- {name: inner, steps: [[{name: b, template: say}]]}\n"
    run = Simulation(workflow(dag(task) + inner)).run()
    assert run.status["phase"] == "Succeeded"
    of_task = {"a", "a(0:1)", "a.hooks.running", "a.onExit", "a(0:1).onExit"}
    assert run.phases().keys() == {"wf", *of_task, "[0]", "b"}


def test_the_exit_hook_of_a_step_that_failed_gets_what_is_there_of_its_outputs() -> None:
    arguments = "{parameters: [{name: text, value: '<{{steps.a.outputs.parameters.made}}>'}]}"
    step = f"  - - {{name: a, template: say, hooks: {{exit: {{template: needs, arguments: {arguments}}}}}}}\n"
    run = Simulation(workflow(steps(step)), lambda pod: 1 if command_of(pod) == "usual" else 0).run()
    assert run.phases() == {"wf": "Failed", "[0]": "Failed", "a": "Failed", "a.onExit": "Succeeded"}
    assert said(run, "a.onExit") == "<>"
    assert [each["name"] for each in run.nodes["a"]["outputs"]["parameters"]] == ["made"]


# Pods


def test_a_resource_that_failed_gives_no_outputs() -> None:
    output = "outputs: {parameters: [{name: uid, valueFrom: {jsonPath: '{.metadata.uid}'}}]}"
    spec = f"entrypoint: r\ntemplates: [{{name: r, {output}, resource: {{action: create, manifest: 'a: b'}}}}]"
    run = Simulation(workflow(spec), lambda pod: 64).run()
    assert run.nodes["wf"]["outputs"] == {"exitCode": "64"}


def ended(code: int, message: str = "") -> dict[str, Any]:
    state = {"terminated": {"exitCode": code, "reason": "Error", "message": message}}
    status = {"phase": "Failed", "containerStatuses": [{"name": "main", "state": state}]}
    return {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "main"}]}, "status": status}


@pytest.mark.parametrize(
    ("code", "message", "phase", "shown"),
    [
        (BROKEN, '{"error": "no file", "withoutOutputs": true}', "Error", "0"),
        (BROKEN, '{"error": "not found"}', "Failed", "64"),
        (1, '{"withoutOutputs": true}', "Failed", "1"),
    ],
)
def test_a_program_that_succeeded_without_its_outputs_is_an_error(
    code: int, message: str, phase: str, shown: str
) -> None:
    found, _, more = observe(ended(code, message))
    assert (found, more["outputs"]["exitCode"]) == (phase, shown)


@pytest.mark.parametrize(("code", "phase"), [(0, "Succeeded"), (BROKEN, "Error"), (2, "Failed")])
def test_a_container_of_a_set_that_could_not_run_is_an_error(code: int, phase: str) -> None:
    spec = "entrypoint: a\ntemplates: [{name: a, containerSet: {containers: [{name: main, image: b, command: [c]}]}}]"
    run = Simulation(workflow(spec), lambda pod: code).run()
    assert run.phases()["main"] == phase


def test_fields_of_the_workflow_may_name_its_variables() -> None:
    spec = "podMetadata: {labels: {flow: '{{workflow.name}}'}}\nnodeSelector: {zone: '{{workflow.parameters.z}}'}\n"
    spec += "arguments: {parameters: [{name: z, value: east}]}\nentrypoint: say\ntemplates:" + SAY
    (pod,) = Simulation(workflow(spec)).step()
    assert (pod["metadata"]["labels"]["flow"], pod["spec"]["nodeSelector"]) == ("wf", {"zone": "east"})


def test_a_container_that_a_patch_adds_ends_with_the_program() -> None:
    patch = "{containers: [{name: wait, env: []}, {name: main, env: []}, {name: proxy, image: p}]}"
    (pod,) = Simulation(workflow(f"podSpecPatch: '{patch}'\nentrypoint: say\ntemplates:{SAY}")).step()
    assert [each["name"] for each in pod["spec"]["containers"]] == ["main"]
    assert pod["spec"]["initContainers"] == [{"name": "proxy", "image": "p", "restartPolicy": "Always"}]


@pytest.mark.parametrize(
    ("template", "patch", "runs"),
    [
        ("container: {image: b, command: [old], args: [x]}", "{name: main, command: [new]}", ["new", "x"]),
        ("container: {image: b, command: [old], args: [x]}", "{name: main, args: null}", ["old"]),
        ("container: {image: b}", "{name: main, command: [new], args: [y]}", ["new", "y"]),
        (
            "containerSet: {containers: [{name: a, image: b, command: [old]}, {name: main, image: b, command: [m]}]}",
            "{name: a, command: [new]}",
            ["new"],
        ),
    ],
)
def test_the_command_of_a_patch_is_started_by_the_executor_which_keeps_the_outputs(
    template: str, patch: str, runs: list[str]
) -> None:
    """Argo 3.7, workflowpod.go: the patch is applied, then the executor is put before the command."""
    outputs = "outputs: {parameters: [{name: p, valueFrom: {path: /p}}]}"
    spec = f"podSpecPatch: '{{containers: [{patch}]}}'\nentrypoint: x\ntemplates: [{{name: x, {template}, {outputs}}}]"
    (pod,) = Simulation(workflow(spec)).step()
    started = pod["spec"]["containers"][0]
    assert started["command"][0] == sys.executable
    assert [*started["command"][started["command"].index("run") + 1 :], *started.get("args", ())] == runs


def test_an_artifact_with_an_empty_address_is_none() -> None:
    artifact = "{name: a, path: /a, optional: true, http: {url: ''}}"
    spec = f"entrypoint: x\ntemplates: [{{name: x, inputs: {{artifacts: [{artifact}]}}, container: {{image: b}}}}]"
    (pod,) = Simulation(workflow(spec)).step()
    assert pod["spec"]["initContainers"] == []
