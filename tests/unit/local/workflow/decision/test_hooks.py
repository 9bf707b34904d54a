"""Hooks of workflows, steps and tasks: when they run, what waits for them, what they may name."""

from __future__ import annotations

import json

import pytest
import yaml

from paddlecloud.kube.resource import Object
from unit.local.workflow.simulation import Simulation, command_of, workflow
from unit.local.workflow.validation.test_validation import judged

TEMPLATES = """
    - name: run
      inputs: {parameters: [{name: code, value: "0"}]}
      outputs: {parameters: [{name: made, valueFrom: {path: /tmp/made}}]}
      container: {image: busybox, command: [sh, -c], args: ["exit {{inputs.parameters.code}}"]}
    - name: say
      inputs: {parameters: [{name: text, value: nothing}]}
      container: {image: busybox, command: [echo], args: ["{{inputs.parameters.text}}"]}
"""


class World:
    def __init__(self, main: str, more: str = "", fails: str = "exit 1") -> None:
        self.said: list[str] = []
        self._fails = fails
        text = f"entrypoint: main\n{more}\ntemplates:{TEMPLATES}    - name: main\n{main}"
        self.simulation = Simulation(workflow(text), self._program)

    def _program(self, pod: Object) -> object:
        text = command_of(pod)
        self.said.append(text)
        return 1 if text == self._fails else {"parameters": {"made": "gold"}}


STEPS = """
      steps:
      - - name: a
          template: run
          HOOKS
      - - {name: b, template: say, arguments: {parameters: [{name: text, value: second}]}}
"""
DAG = """
      dag:
        tasks:
        - name: a
          template: run
          HOOKS
        - {name: b, template: say, depends: a, arguments: {parameters: [{name: text, value: second}]}}
"""


@pytest.mark.parametrize(("main", "prefix"), [(STEPS, "steps"), (DAG, "tasks")])
def test_an_exit_hook_runs_before_what_follows_and_gets_outputs(main: str, prefix: str) -> None:
    made = {"name": "text", "value": "{{" + prefix + ".a.outputs.parameters.made}}"}
    hook = f"hooks: {json.dumps({'exit': {'template': 'say', 'arguments': {'parameters': [made]}}})}"
    world = World(main.replace("HOOKS", hook))
    done = world.simulation.run()
    assert (done.status["phase"], world.said) == ("Succeeded", ["exit 0", "gold", "second"])
    node = done.nodes["a.onExit"]
    assert node["nodeFlag"] == {"hooked": True}
    assert node["id"] in done.nodes["a"]["children"]


@pytest.mark.parametrize("main", [STEPS, DAG])
def test_on_exit_of_a_step_runs_when_it_failed_too(main: str) -> None:
    hook = "arguments: {parameters: [{name: code, value: '1'}]}\n          onExit: say"
    world = World(main.replace("HOOKS", hook))
    done = world.simulation.run()
    assert (done.status["phase"], world.said) == ("Failed", ["exit 1", "nothing"])


@pytest.mark.parametrize(("main", "prefix"), [(STEPS, "steps"), (DAG, "tasks")])
@pytest.mark.parametrize(("phase", "runs"), [("Failed", False), ("Succeeded", True)])
def test_a_hook_runs_once_when_its_expression_holds(main: str, prefix: str, phase: str, runs: bool) -> None:
    hook = json.dumps({"each": {"template": "say", "expression": f'{prefix}.a.status == "{phase}"'}})
    world = World(main.replace("HOOKS", f"hooks: {hook}"))
    done = world.simulation.run()
    assert done.status["phase"] == "Succeeded"
    assert world.said.count("nothing") == int(runs)
    assert ("a.hooks.each" in done.nodes) is runs
    assert world.said[-1] == "second"


def test_a_hook_that_fails_does_not_fail_its_step() -> None:
    hook = json.dumps({"each": {"template": "say", "expression": 'steps.a.status == "Succeeded"'}})
    world = World(STEPS.replace("HOOKS", f"hooks: {hook}"), fails="nothing")
    done = world.simulation.run()
    assert (done.status["phase"], done.nodes["a.hooks.each"]["phase"]) == ("Succeeded", "Failed")


def test_hooks_of_the_workflow() -> None:
    hooks = {
        "running": {"template": "say", "expression": 'workflow.status == "Running"'},
        "failed": {"template": "say", "expression": 'workflow.status == "Failed"'},
        "exit": {"template": "say", "arguments": {"parameters": [{"name": "text", "value": "{{workflow.status}}"}]}},
    }
    world = World(STEPS.replace("HOOKS", ""), more=f"hooks: {json.dumps(hooks)}")
    done = world.simulation.run()
    assert done.status["phase"] == "Succeeded"
    assert sorted(world.said) == ["Succeeded", "exit 0", "nothing", "second"]
    assert {"wf.hooks.running", "wf.onExit"} < {node["name"] for node in done.nodes.values()}


def test_a_loop_has_the_exit_hook_of_each_item() -> None:
    main = """
      steps:
      - - {name: a, template: run, withItems: [x, y], hooks: {exit: {template: say}}}
    """
    world = World(main)
    done = world.simulation.run()
    assert (done.status["phase"], world.said.count("nothing")) == ("Succeeded", 2)


def test_a_stopped_workflow_runs_exit_hooks_and_a_terminated_one_does_not() -> None:
    for strategy, runs in (("Stop", True), ("Terminate", False)):
        world = World(STEPS.replace("HOOKS", "onExit: say"))
        world.simulation.step()
        world.simulation.workflow["spec"]["shutdown"] = strategy
        done = world.simulation.run()
        assert done.status["phase"] == "Failed"
        assert ("nothing" in world.said) is runs


def test_an_expression_that_cannot_be_evaluated_ends_the_step() -> None:
    hook = json.dumps({"each": {"template": "say", "expression": "nothing.there == 1"}})
    done = World(STEPS.replace("HOOKS", f"hooks: {hook}")).simulation.run()
    assert done.status["phase"] == "Failed"
    assert "nothing" in done.nodes["[0]"]["message"]


def test_what_is_refused() -> None:
    def fields(hooks: object) -> list[str]:
        main = STEPS.replace("HOOKS", f"hooks: {json.dumps(hooks)}")
        return judged(yaml.safe_load(f"entrypoint: main\ntemplates:{TEMPLATES}    - name: main\n{main}"))

    step = "spec.templates[2].steps[0][0].hooks"
    assert fields({"exit": {"template": "say"}}) == []
    assert fields({"exit": {"template": "gone"}}) == [f"{step}.exit.template"]
    assert fields({"each": {"template": "say"}}) == [f"{step}.each.expression"]
    assert fields({"each": 3}) == fields([3]) == [step]
