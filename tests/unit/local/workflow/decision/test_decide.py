"""What a workflow makes of its spec and of what its pods gave."""

from __future__ import annotations

import copy

import pytest

from paddlecloud.local.workflow.names import pod_name
from unit.local.workflow.simulation import Simulation, command_of, workflow

FAILS = pod_name("wf", "wf.B", "say")

SAY = """
- name: say
  inputs: {parameters: [{name: text, default: hello}]}
  container: {image: busybox, command: [echo], args: ["{{inputs.parameters.text}}"]}
"""
DIAMOND = f"""
entrypoint: main
templates:
- name: main
  dag:
    tasks:
    - {{name: A, template: say}}
    - {{name: B, template: say, dependencies: [A]}}
    - {{name: C, template: say, dependencies: [A]}}
    - {{name: D, template: say, depends: "B && C"}}
{SAY}"""


def steps(text: str, more: str = "") -> str:
    return f"entrypoint: main\n{more}\ntemplates:\n- name: main\n  steps:\n{text}\n{SAY}"


def test_a_chain_whose_tasks_all_depend_on_one_more_is_walked_to_its_beginning() -> None:
    tasks = "".join(f"    - {{name: t{n}, template: say, depends: 't{n - 1} && made'}}\n" for n in range(1, 10))
    made = "    - {name: made, template: say}\n    - {name: t0, template: say, depends: made}\n"
    spec = f"entrypoint: main\ntemplates:\n- name: main\n  dag:\n    tasks:\n{tasks}{made}{SAY}"
    run = Simulation(workflow(spec)).run()
    assert (run.status["phase"], run.status.get("progress")) == ("Succeeded", "11/11")


def test_one_container_is_a_workflow() -> None:
    run = Simulation(workflow(f"entrypoint: say\ntemplates:{SAY}")).run()
    assert run.status["phase"] == "Succeeded"
    assert run.status["progress"] == "1/1"
    assert run.created == ["wf"]
    assert run.workflow["metadata"]["labels"] == {
        "workflows.argoproj.io/completed": "true",
        "workflows.argoproj.io/phase": "Succeeded",
    }


def test_groups_of_steps_run_one_after_the_other_and_their_steps_together() -> None:
    run = Simulation(
        workflow(
            steps("""
    - - {name: first, template: say}
    - - {name: second, template: say}
      - {name: third, template: say}
    """)
        )
    )
    (pod,) = run.step()
    assert run.step() == []
    run.finish(pod)
    run.run()
    assert run.phases() == dict.fromkeys(["wf", "[0]", "first", "[1]", "second", "third"], "Succeeded")
    first, group = run.nodes["first"], run.nodes["[1]"]
    assert first["children"] == [group["id"]]
    assert sorted(run.nodes["wf"]["outboundNodes"]) == sorted(run.nodes[name]["id"] for name in ("second", "third"))


def test_what_a_step_gave_is_an_argument_of_the_next() -> None:
    spec = steps("""
    - - {name: made, template: say}
    - - name: shown
        template: say
        arguments:
          parameters: [{name: text, value: "{{steps.made.outputs.result}} {{=steps.made.outputs.parameters.n + '!'}}"}]
    """)
    spec += "  outputs: {parameters: [{name: n, valueFrom: {path: /n}}]}\n"
    run = Simulation(workflow(spec), lambda pod: {"result": "one", "parameters": {"n": "two"}}).run()
    assert run.status["phase"] == "Succeeded"
    shown = next(pod for pod in run.pods.values() if pod["metadata"]["name"] != run.created[0])
    assert command_of(shown) == "one two!"


@pytest.mark.parametrize(
    ("condition", "phase"),
    [("heads == heads", "Succeeded"), ("heads == tails", "Skipped"), ("3 > 2 && !(a == b)", "Succeeded")],
)
def test_a_step_is_skipped_if_its_condition_does_not_hold(condition: str, phase: str) -> None:
    run = Simulation(workflow(steps(f"    - - {{name: a, template: say, when: '{condition}'}}"))).run()
    assert (run.status["phase"], run.phases()["a"]) == ("Succeeded", phase)


def test_a_condition_that_cannot_be_judged_is_an_error_with_a_hint() -> None:
    run = Simulation(workflow(steps("    - - {name: a, template: say, when: 'a b == c'}"))).run()
    assert run.status["phase"] == "Failed"
    assert "Invalid 'when' expression 'a b == c'" in run.status["message"]


def test_a_loop_runs_for_each_item_and_gives_its_results_in_their_order() -> None:
    spec = steps("""
    - - name: loop
        template: say
        withItems: [a, {k: b}, 3]
        arguments: {parameters: [{name: text, value: "{{item}}"}]}
    - - name: sum
        template: say
        arguments: {parameters: [{name: text, value: "{{steps.loop.outputs.result}}"}]}
    """)
    run = Simulation(workflow(spec), lambda pod: command_of(pod).upper()).run()
    assert run.status["phase"] == "Succeeded"
    assert {name for name in run.phases() if name.startswith("loop")} == {"loop(0:a)", "loop(1:k:b)", "loop(2:3)"}
    asked = {command_of(pod) for pod in run.pods.values()}
    assert {"a", '{"k":"b"}', "3"} < asked
    assert '["A",{"K":"B"},3]' in asked


def test_a_list_that_a_step_made_is_looped_over_and_an_empty_one_skips() -> None:
    spec = steps("""
    - - {name: made, template: say}
    - - {name: loop, template: say, withParam: "{{steps.made.outputs.result}}"}
    """)
    full = Simulation(workflow(spec), lambda pod: "[1, 2]").run()
    assert {"loop(0:1)", "loop(1:2)"} < full.phases().keys()
    empty = Simulation(workflow(spec), lambda pod: "[]").run()
    assert (empty.status["phase"], empty.phases()["loop"]) == ("Succeeded", "Skipped")
    broken = Simulation(workflow(spec), lambda pod: "no list").run()
    assert broken.status["phase"] == "Failed"
    assert "withParam value could not be parsed" in broken.status["message"]


def test_tasks_wait_for_what_they_depend_on() -> None:
    run = Simulation(workflow(DIAMOND))
    order = []
    for _ in range(12):
        created = run.step()
        order += [[pod["metadata"]["annotations"]["workflows.argoproj.io/node-name"][3:] for pod in created]]
        for pod in created:
            run.finish(pod)
    assert [each for each in order if each] == [["A"], ["B", "C"], ["D"]]
    assert run.status["phase"] == "Succeeded"
    assert run.nodes["D"]["id"] in run.nodes["B"]["children"] + run.nodes["C"]["children"]


def test_what_depends_on_a_failed_task_is_omitted_and_the_workflow_fails() -> None:
    run = Simulation(workflow(DIAMOND), lambda pod: 1 if pod["metadata"]["name"].endswith(FAILS) else 0).run()
    assert run.phases() == {"wf": "Failed", "A": "Succeeded", "B": "Failed", "C": "Succeeded", "D": "Omitted"}
    assert run.nodes["B"]["message"] == "main: Error (exit code 1)"


def test_a_task_may_depend_on_a_failure() -> None:
    spec = DIAMOND.replace('depends: "B && C"', 'depends: "B.Failed || C.AnySucceeded"')
    run = Simulation(workflow(spec), lambda pod: 1 if pod["metadata"]["name"].endswith(FAILS) else 0).run()
    assert run.phases()["D"] == "Succeeded"
    assert run.status["phase"] == "Succeeded"


def test_a_step_that_may_fail_does_not_fail_the_rest() -> None:
    spec = steps("""
    - - {name: bad, template: say, continueOn: {failed: true}}
    - - {name: after, template: say}
    """)
    run = Simulation(workflow(spec), lambda pod: 1 if pod["metadata"]["name"] == run_first(spec) else 0).run()
    assert (run.status["phase"], run.phases()["bad"], run.phases()["after"]) == ("Succeeded", "Failed", "Succeeded")


def run_first(spec: str) -> str:
    """The name of the first pod of a workflow."""
    return str(Simulation(workflow(spec)).step()[0]["metadata"]["name"])


def test_attempts_are_made_until_one_succeeds() -> None:
    codes = iter([1, 1, 0])
    spec = f"entrypoint: say\ntemplates:{SAY}  retryStrategy: {{limit: 3}}\n"
    run = Simulation(workflow(spec), lambda pod: next(codes)).run()
    assert run.phases() == {"wf": "Succeeded", "wf(0)": "Failed", "wf(1)": "Failed", "wf(2)": "Succeeded"}
    assert run.nodes["wf"]["type"] == "Retry"
    assert len(run.created) == 3


def test_attempts_end_at_the_limit_and_say_so() -> None:
    spec = f"entrypoint: say\ntemplates:{SAY}  retryStrategy: {{limit: 1}}\n"
    run = Simulation(workflow(spec), lambda pod: 2).run()
    assert (run.status["phase"], run.status["message"], len(run.created)) == ("Failed", "No more retries left", 2)


def test_attempts_wait_longer_each_time() -> None:
    spec = f"entrypoint: say\ntemplates:{SAY}  retryStrategy: {{limit: 2, backoff: {{duration: 10s, factor: 2}}}}\n"
    run = Simulation(workflow(spec), lambda pod: 1).run()
    started = [node["startedAt"] for name, node in sorted(run.nodes.items()) if name != "wf"]
    seconds = [int(text[14:16]) * 60 + int(text[17:19]) for text in started]
    first, second = seconds[1] - seconds[0], seconds[2] - seconds[1]
    assert 10 <= first < 15
    assert 20 <= second < 25


def test_an_expression_decides_whether_to_try_again() -> None:
    strategy = '{limit: 5, expression: "asInt(lastRetry.exitCode) != 3"}'
    spec = f"entrypoint: say\ntemplates:{SAY}  retryStrategy: {strategy}\n"
    codes = iter([1, 3, 0])
    run = Simulation(workflow(spec), lambda pod: next(codes)).run()
    assert (run.status["phase"], len(run.created)) == ("Failed", 2)
    assert run.status["message"] == "retryStrategy.expression evaluated to false"


def test_an_exit_handler_runs_also_after_a_failure_and_knows_of_it() -> None:
    spec = steps("    - - {name: bad, template: fail}", "onExit: bye")
    spec += "- name: fail\n  container: {image: busybox, command: ['false']}\n"
    said = "{{workflow.status}} {{workflow.duration}}"
    spec += f"- name: bye\n  container: {{image: busybox, command: [echo], args: ['{said}']}}\n"
    run = Simulation(workflow(spec), lambda pod: 1 if command_of(pod) == "false" else 0).run()
    assert run.status["phase"] == "Failed"
    assert command_of(run.pods[run.nodes["wf.onExit"]["id"]]) == "Failed 1.000000"


def test_a_workflow_that_is_stopped_begins_nothing_more() -> None:
    run = Simulation(workflow(DIAMOND))
    run.step()
    run.workflow["spec"]["shutdown"] = "Stop"
    run.run()
    assert run.status["phase"] == "Failed"
    assert run.status["message"] == "Stopped with strategy 'Stop'"
    assert len(run.created) == 1
    assert run.pods == {}


def test_a_workflow_ends_at_its_deadline() -> None:
    run = Simulation(workflow(f"entrypoint: say\nactiveDeadlineSeconds: 60\ntemplates:{SAY}"))
    run.step()
    run.step()
    assert run.plan.after == pytest.approx(59)
    run.now += 60
    run.run()
    assert (run.status["phase"], run.status["message"]) == ("Failed", "Step exceeded its deadline")


def test_a_workflow_waits_for_a_time_or_for_somebody() -> None:
    spec = "entrypoint: main\ntemplates:\n- name: main\n  suspend: {duration: 30}\n"
    run = Simulation(workflow(spec))
    run.step()
    assert run.plan.after == pytest.approx(30)
    run.run()
    assert run.status["phase"] == "Succeeded"
    forever = Simulation(workflow("entrypoint: main\ntemplates:\n- name: main\n  suspend: {}\n")).run()
    assert forever.status["phase"] == "Running"


def test_no_more_pods_than_allowed_run_at_a_time() -> None:
    loop = "    - - {name: a, template: say, withSequence: {count: 5}}"
    for spec in (
        steps(loop, "parallelism: 2"),
        steps(loop).replace("- name: main\n", "- name: main\n  parallelism: 2\n"),
    ):
        run = Simulation(workflow(spec))
        assert len(run.step()) == 2
        assert len(run.step()) == 0
        run = Simulation(workflow(spec)).run()
        assert (run.status["phase"], len(run.created)) == ("Succeeded", 5)


@pytest.mark.parametrize(
    "inner",
    [
        "steps: [[{name: a, template: say}], [{name: b, template: say}]]",
        "dag: {tasks: [{name: a, template: say}, {name: b, template: say, depends: a}]}",
        "dag: {tasks: [{name: a, template: say}, {name: b, template: say, depends: a}]}\n  retryStrategy: {limit: 1}",
    ],
    ids=["steps", "dag", "retried dag"],
)
@pytest.mark.parametrize(
    "loop",
    [
        "dag: {tasks: [{name: each, template: pair, withSequence: {count: 5}}]}",
        "steps: [[{name: each, template: pair, withSequence: {count: 5}}]]",
    ],
    ids=["of a dag", "of steps"],
)
def test_an_iteration_of_several_steps_takes_one_place_until_all_are_over(inner: str, loop: str) -> None:
    """As Argo's `getActiveChildren` (workflow/controller/node_counters.go)."""
    templates = f"- name: main\n  parallelism: 2\n  {loop}\n- name: pair\n  {inner}\n{SAY}"
    run = Simulation(workflow(f"entrypoint: main\ntemplates:\n{templates}"))
    first, second = run.step()
    run.finish(first)
    (follows,) = run.step()  # in the same iteration
    run.finish(follows)
    (third,) = run.step()
    for pod in (second, third):
        run.finish(pod)
    run.run()
    assert (run.status["phase"], len(run.created)) == ("Succeeded", 10)


def test_a_template_that_calls_itself_for_ever_is_stopped() -> None:
    spec = "entrypoint: main\ntemplates:\n- name: main\n  steps:\n  - - {name: again, template: main}\n"
    run = Simulation(workflow(spec)).run()
    assert run.status["phase"] == "Failed"
    assert "Maximum recursion depth exceeded" in str(run.status["nodes"])


def test_a_pod_that_was_placed_is_written_when_it_starts_and_not_before() -> None:
    run = Simulation(workflow(f"entrypoint: say\ntemplates:{SAY}"))
    (pod,) = run.step()
    pod["spec"]["nodeName"] = "node-1"
    assert run.decided().patch == []
    pod["status"] = {"phase": "Running"}
    run.step()
    (node,) = run.nodes.values()
    assert (node["phase"], node["hostNodeName"]) == ("Running", "node-1")


def test_a_pod_that_somebody_deleted_is_an_error() -> None:
    run = Simulation(workflow(f"entrypoint: say\ntemplates:{SAY}"))
    (pod,) = run.step()
    pod["status"] = {"phase": "Running"}
    run.step()
    run.pods = {}
    run.run()
    assert (run.status["phase"], run.status["message"]) == ("Error", "pod deleted")


def test_an_output_that_no_step_has_is_named() -> None:
    spec = steps("""
    - - {name: a, template: say}
    - - {name: b, template: say, arguments: {parameters: [{name: text, value: "{{steps.a.outputs.parameters.x}}"}]}}
    """)
    run = Simulation(workflow(spec)).run()
    assert run.status["phase"] == "Failed"
    assert "{{steps.a.outputs.parameters.x}}" in run.status["message"]


def test_given_a_pod_of_an_earlier_attempt_that_is_not_gone_then_its_node_waits() -> None:
    """`argo retry` takes a node out of the status and deletes its pod; a pod that ends slowly is there still."""
    simulation = Simulation(workflow("entrypoint: a\ntemplates: [{name: a, container: {image: busybox}}]"))
    (pod,) = simulation.step()
    old = copy.deepcopy(pod)
    old["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    simulation.finish(old)
    simulation.workflow["status"]["nodes"] = {}
    simulation.pods = dict.fromkeys(simulation.pods, old)
    assert simulation.step() == []
    simulation.pods = {}
    assert simulation.run().status["phase"] == "Succeeded"


def test_an_empty_retry_strategy_retries_until_it_succeeds() -> None:
    """As in Argo's example retry-to-completion."""
    codes = iter([1, 1, 0])
    text = "entrypoint: a\ntemplates: [{name: a, retryStrategy: {}, container: {image: busybox}}]"
    done = Simulation(workflow(text), lambda pod: next(codes)).run()
    assert (done.status["phase"], len(done.created)) == ("Succeeded", 3)
