"""What could not begin, as Argo shows it: which nodes are there, how they end, and with which words."""

from __future__ import annotations

import pytest

from paddlecloud.kube.errors import Forbidden, Invalid, ServiceUnavailable
from paddlecloud.kube.plan import Plan
from paddlecloud.kube.resource import Object
from paddlecloud.local.workflow.controller import left_over, refusals
from paddlecloud.local.workflow.decision.locks import Lock
from paddlecloud.local.workflow.names import NODE_ID, node_id
from unit.local.workflow.simulation import Simulation, workflow

SAY = "- {name: say, container: {image: busybox, command: [echo]}}"
LOOP = f"""
entrypoint: main
templates:
- {{name: main, steps: [[{{name: a, template: say, withItems: [1, 2]}}], [{{name: b, template: say}}]]}}
{SAY}"""
DAG = f"""
entrypoint: main
templates:
- name: main
  dag: {{tasks: [{{name: a, template: say, withItems: [1, 2]}}, {{name: b, template: say, depends: a}}]}}
{SAY}"""
ALONE = f"entrypoint: say\ntemplates:\n{SAY}"
EXIT = f"entrypoint: say\nonExit: say\ntemplates:\n{SAY}"
HOOK = f"""
entrypoint: main
templates:
- {{name: main, steps: [[{{name: a, template: say, onExit: say}}]]}}
{SAY}"""


@pytest.mark.parametrize(
    ("spec", "refused", "phases", "end"),
    [
        (ALONE, "wf", {"wf": "Error"}, ("Error", "error in entry template execution: no")),
        (
            LOOP, "wf[0].a(0:1)", {"wf": "Failed", "[0]": "Error", "a(0:1)": "Error"},
            ("Failed", "step group deemed errored due to child wf[0].a(0:1) error: no"),
        ),
        (DAG, "wf.a(0:1)", {"wf": "Error", "a": "Error", "a(0:1)": "Error", "b": "Omitted"}, ("Error", "")),
        (
            EXIT, "wf.onExit", {"wf": "Succeeded", "wf.onExit": "Error"},
            ("Error", "error in exit template execution : no"),
        ),
        (
            HOOK, "wf[0].a.onExit", {"wf": "Error", "[0]": "Error", "a": "Succeeded", "a.onExit": "Error"},
            ("Error", "no"),
        ),
    ],
    ids=["entrypoint", "steps", "dag", "exit handler", "exit hook"],
)  # fmt: skip
def test_given_a_pod_that_the_api_server_refuses_then_its_node_is_an_error(
    spec: str, refused: str, phases: dict[str, str], end: tuple[str, str]
) -> None:
    run = Simulation(workflow(spec), refused={node_id("wf", refused): "no"}).run()
    assert (run.status["phase"], run.status.get("message", "")) == end
    assert run.phases() == phases


def test_given_a_claim_that_the_api_server_refuses_then_nothing_begins() -> None:
    spec = ALONE + "\nvolumeClaimTemplates: [{metadata: {name: work}, spec: {accessModes: [Odd]}}]"
    run = Simulation(workflow(spec), refused={"wf-work": "no"}).run()
    assert (run.status["phase"], run.status["message"], run.phases()) == ("Error", "pvc create error: no", {})


@pytest.mark.parametrize(("policy", "attempts"), [("OnFailure", 1), ("Always", 2), ("OnError", 2)])
def test_an_attempt_that_is_refused_is_followed_by_another_where_errors_are_retried(policy: str, attempts: int) -> None:
    spec = ALONE.replace("name: say, ", f"name: say, retryStrategy: {{limit: 3, retryPolicy: {policy}}}, ")
    run = Simulation(workflow(spec), refused={node_id("wf", "wf(0)"): "no"}).run()
    assert run.phases()["wf(0)"] == "Error"
    assert len(run.phases()) - 1 == attempts
    assert run.status["phase"] == ("Error" if attempts == 1 else "Succeeded")


def test_a_workflow_that_is_stopped_is_not_tried_again() -> None:
    run = Simulation(workflow(ALONE.replace("name: say, ", "name: say, retryStrategy: {limit: 3}, ")))
    run.step()
    run.workflow["spec"]["shutdown"] = "Stop"
    run.run()
    assert (run.status["phase"], len(run.created)) == ("Failed", 1)


def test_an_output_that_cannot_be_resolved_is_an_error_of_its_template() -> None:
    output = "outputs: {parameters: [{name: p, valueFrom: {parameter: '{{tasks.a.outputs.parameters.q}}'}}]}"
    run = Simulation(workflow(DAG.replace("- name: main\n", f"- name: main\n  {output}\n"))).run()
    assert run.phases()["wf"] == "Error"
    assert run.status["message"].startswith("error in entry template execution: Unable to resolve")


@pytest.mark.parametrize(
    ("lock", "message"),
    [
        (
            "{semaphore: {configMapKeyRef: {name: c, key: k}}}",
            "failed to initialize semaphore default/ConfigMap/c/k with limit",
        ),
        ("{mutexes: [{name: m, database: true}]}", "database session is not available for mutex default/Database/m"),
        (
            "{semaphores: [{database: {key: k}}]}",
            "database session is not available for semaphore default/Database/k",
        ),
    ],
)
def test_a_lock_that_nobody_can_get_fails_the_workflow(lock: str, message: str) -> None:
    def locks(wanted: object) -> Lock:
        return Lock(limit=None)

    whole = Simulation(workflow(f"{ALONE}\nsynchronization: {lock}"), locks=locks).run()
    assert whole.status["phase"] == "Failed"
    assert whole.status["message"].startswith(f"Failed to acquire the synchronization lock. {message}")
    assert whole.phases() == {}
    inside = Simulation(workflow(LOOP.replace("name: say, ", f"name: say, synchronization: {lock}, ")), locks=locks)
    inside.run()
    assert inside.phases() == {"wf": "Failed", "[0]": "Error", "a(0:1)": "Error"}
    assert f"step group deemed errored due to child wf[0].a(0:1) error: {message}" in inside.status["message"]


def pod(name: str, node: str = "") -> Object:
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", "annotations": {NODE_ID: node}}
    return {"kind": "Pod", "metadata": meta}


def test_only_what_another_attempt_would_not_change_is_a_refusal() -> None:
    errors = [Invalid("a name"), Forbidden("exceeded quota: q"), ServiceUnavailable("later"), Forbidden("an account")]
    refused = [(pod(str(number), f"node-{number}"), error) for number, error in enumerate(errors)]
    assert refusals(refused) == {"node-0": "a name", "node-3": "an account"}


def test_pods_behind_one_that_was_refused_are_deleted() -> None:
    assert [each.name for each in left_over([pod("a"), pod("b")], Plan(create=[pod("a")]))] == ["b"]


def test_a_pause_of_a_container_set_that_is_no_duration_is_an_error_of_its_step() -> None:
    retries = "retryStrategy: {retries: 2, duration: soon}"
    main = f"{{name: a, containerSet: {{{retries}, containers: [{{name: main, image: b, command: [c]}}]}}}}"
    run = Simulation(workflow(f"entrypoint: a\ntemplates: [{main}]")).run()
    assert (run.status["phase"], run.created) == ("Error", [])
    assert "unable to parse 'soon' as a duration" in run.status["message"]
