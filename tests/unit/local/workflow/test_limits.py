"""A workflow from a tenant cannot hold the control plane, whatever is in it."""

from __future__ import annotations

import json
import random
import time
import tracemalloc
from typing import Any

import pytest

from unit.local.workflow.simulation import Simulation, workflow

SAY = "- name: say\n  inputs: {parameters: [{name: x, default: ''}]}\n  container: {image: busybox, command: [echo]}\n"


def steps(text: str, more: str = "") -> str:
    main = "- name: main\n  inputs: {parameters: [{name: x, default: ab}]}\n  steps:\n"
    return f"entrypoint: main\n{more}templates:\n{main}{text}\n{SAY}"


HOSTILE = {
    "loops in loops": steps("  - - {name: a, template: main, withSequence: {count: 100}}"),
    "a very long loop": steps("  - - {name: a, template: say, withSequence: {count: 1000000000}}"),
    "many loops": steps(
        "  - - "
        + "\n    - ".join(f"{{name: a{number}, template: say, withSequence: {{count: 4000}}}}" for number in range(50))
    ),
    "doubling texts": steps(
        "  - - {name: a, template: main, arguments: {parameters: "
        "[{name: x, value: '{{inputs.parameters.x}}{{inputs.parameters.x}}'}]}}"
    ),
    "a large text many times": steps(
        "  - - {name: a, template: say, withSequence: {count: 4000}, arguments: {parameters: "
        "[{name: x, value: '{{workflow.parameters.big}}'}]}}",
        f"arguments: {{parameters: [{{name: big, value: '{'x' * 200_000}'}}]}}\n",
    ),
    "itself twice": steps("  - - {name: a, template: main}\n    - {name: b, template: main}"),
}


@pytest.mark.parametrize("spec", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_workflow_that_grows_without_end_fails_in_bounded_time(spec: str) -> None:
    run = Simulation(workflow(spec))
    longest = 0.0
    for _ in range(60):
        began = time.process_time()
        created = run.step()
        longest = max(longest, time.process_time() - began)
        for pod in created:
            run.finish(pod)
        if run.status.get("phase") in ("Failed", "Error"):
            break
    assert run.status["phase"] in ("Failed", "Error")
    assert len(run.status.get("nodes") or {}) <= 5000
    assert longest < 5, "one pass holds everybody up"


def test_a_script_that_no_container_can_be_given_is_an_error_of_its_step() -> None:
    script = f"{{image: busybox, command: [sh], source: {'$' * 600_000}}}"
    run = Simulation(workflow(f"entrypoint: main\ntemplates:\n- name: main\n  script: {script}\n"))
    assert run.step() == []
    assert run.status["phase"] == "Error"
    assert "template main: the source of its script" in run.status["nodes"]["wf"]["message"]


def written_node(name: str, kind: str, phase: str, *children: str) -> dict[str, Any]:
    texts = {"id": name, "name": name, "displayName": name, "type": kind, "phase": phase}
    return {**texts, "startedAt": "2026-09-21T14:13:20Z", "children": [*children]}


MALFORMED: dict[str, Any] = {
    "a list of nodes": [],
    "a node without fields": {"wf": {}},
    "a node of another type": {"wf": "text"},
    "a group that contains itself": {
        "wf": written_node("wf", "DAG", "Running", "wf-1"),
        "wf-1": {**written_node("wf-1", "TaskGroup", "Running", "wf-1"), "name": "wf.g", "boundaryID": "wf"},
    },
}


@pytest.mark.parametrize("nodes", MALFORMED.values(), ids=MALFORMED.keys())
def test_given_nodes_that_somebody_wrote_then_the_workflow_runs_to_its_end(nodes: Any) -> None:
    spec = (
        "entrypoint: main\ntemplates:\n- name: main\n  dag: {tasks: [{name: g, template: say, withItems: [1]}]}\n" + SAY
    )
    broken = workflow(spec)
    broken["status"] = {"phase": "Running", "startedAt": "2026-09-21T14:13:20Z", "nodes": nodes}
    run = Simulation(broken)
    for _ in range(5):
        for pod in run.step():
            run.finish(pod)
    assert (run.status["phase"], run.status.get("message")) == ("Succeeded", None)
    assert (run.phases()["g(0:1)"], len(run.created)) == ("Succeeded", 1)


def longest_pass(run: Simulation, passes: int) -> float:
    longest = 0.0
    for _ in range(passes):
        began = time.process_time()
        created = run.step()
        longest = max(longest, time.process_time() - began)
        for pod in created:
            run.finish(pod)
    return longest


def main(template: dict[str, Any], *others: dict[str, Any], **more: Any) -> Any:
    """A workflow from its first template, others, and `say`."""
    made = workflow("entrypoint: main\ntemplates:\n" + SAY)
    made["spec"] |= {**more, "templates": [{"name": "main", **template}, *others, *made["spec"]["templates"]]}
    return made


CHAIN = [
    {"name": f"t{n}", "template": "say", "when": "1 == 2", **({"depends": f"t{n - 1}"} if n else {})}
    for n in range(3000)
]
COSTLY = {
    "thousands of expressions": main({"container": {"image": "x", "args": ["{{=all(1..20000, # > 0)}}" * 10_000]}}),
    "thousands of tags for each pod": main(
        {"steps": [[{"name": "a", "template": "tags", "withSequence": {"count": 400}}]]},
        {"name": "tags", "container": {"image": "x", "args": ["{{workflow.name}} " * 20_000]}},
    ),
    "expressions among thousands of variables": main(
        {"container": {"image": "x", "args": ["{{=1}}" * 20_000]}},
        arguments={"parameters": [{"name": f"p{n}", "value": "x"} for n in range(3000)]},
    ),
    "a long chain of tasks": main({"dag": {"tasks": CHAIN}}),
    "tags that are never closed": main(
        {
            "steps": [
                [{"name": "s", "template": "say", "when": "1 == 2"}],
                [
                    {
                        "name": "t",
                        "template": "say",
                        "arguments": {
                            "parameters": [
                                {"name": "x", "value": '{{=steps.s.status == "" ? "" : repeat("{", 100000)}}'}
                            ]
                        },
                    }
                ],
            ]
        }
    ),
    "a skipped loop among very many variables": main(
        {"steps": [[{"name": "a", "template": "say", "when": "1 == 2", "withSequence": {"count": 5000}}]]},
        arguments={"parameters": [{"name": f"p{n}", "value": "x"} for n in range(40_000)]},
    ),
    "JSON with more indentation than content": main(
        {
            "container": {
                "image": "x",
                "args": ['{{=toJSON(fromJSON(repeat("[", 200) + repeat("1,", 100000) + "1" + repeat("]", 200)))}}'],
            }
        }
    ),
}


@pytest.mark.parametrize("hostile", COSTLY.values(), ids=COSTLY.keys())
def test_one_pass_does_a_bounded_amount_of_work(hostile: Any) -> None:
    assert longest_pass(Simulation(hostile), 3) < 5, "one pass holds everybody up"


def test_a_template_of_another_object_is_found_without_reading_all_of_them_each_time() -> None:
    many: dict[str, Any] = {"templates": [{"name": f"t{n}", "suspend": {}} for n in range(15_000)]}
    referred = {"templateRef": {"name": "many", "template": "t0"}, "when": "1 == 2"}
    tasks = [{"name": f"a{n}", **referred, **({"depends": f"a{n - 1}"} if n else {})} for n in range(150)]
    run = Simulation(main({"dag": {"tasks": tasks}}), specs=lambda name, clusterwide: many)
    assert longest_pass(run, 1) < 5, "one pass holds everybody up"


LARGE: dict[str, Any] = {
    "one parameter in thousands of arguments": main(
        {"container": {"image": "x", "args": ["{{workflow.parameters.big}}"] * 1500}},
        arguments={"parameters": [{"name": "big", "value": "x" * 250_000}]},
    ),
    "numbers in a long text": main(
        {"steps": [[{"name": "a", "template": "say", "withSequence": {"count": 1000, "format": "%d" + "x" * 400_000}}]]}
    ),
    "very many values in the input of every node": main(
        {"steps": [[{"name": "a", "template": "wait", "withSequence": {"count": 100}}]]},
        {"name": "wait", "suspend": {}, "inputs": {"parameters": [{"name": "x", "value": "", "enum": [[]] * 40_000}]}},
    ),
    "very many arguments of every pod": main(
        {"steps": [[{"name": "a", "template": "args", "withSequence": {"count": 100}}]]},
        {"name": "args", "container": {"image": "x", "args": ["a"] * 150_000}},
    ),
    "lines that only Python sees": main(
        {"container": {"image": "x", "args": ['{{=len(sprig.indent(1000, repeat("\\r", 500000)))}}']}}
    ),
}


@pytest.mark.parametrize("hostile", LARGE.values(), ids=LARGE.keys())
def test_one_pass_builds_a_bounded_amount(hostile: Any) -> None:
    run = Simulation(hostile)
    tracemalloc.start()
    try:
        run.step()
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 100_000_000


def test_given_steps_that_wait_for_others_then_the_next_pass_is_not_asked_for_at_once() -> None:
    run = Simulation(
        main({"steps": [[{"name": "a", "template": "say", "withSequence": {"count": 1000}}]]}, parallelism=1)
    )
    run.step()
    run.step()
    assert (len(run.created), run.plan.patch, run.plan.after) == (1, [], None)


def test_given_more_nodes_than_an_object_can_hold_then_the_workflow_ends_and_says_so() -> None:
    noise = random.Random(1)
    items = json.dumps([noise.randbytes(600).hex() for _ in range(190)])
    loop = {"template": "say", "withParam": "{{workflow.parameters.items}}"}
    steps = [{"name": name, **loop} for name in "abcdefghijklmn"]
    made = main({"steps": [steps]})
    made["spec"]["arguments"] = {"parameters": [{"name": "items", "value": items}]}
    run = Simulation(made)
    for _ in range(20):
        run.step()
    assert run.status["phase"] == "Error"
    assert "larger than" in run.status["message"]
    assert len(json.dumps(run.workflow)) < 1.5 * 1024 * 1024
    assert not run.pods, "its pods go with it"


def test_given_a_workflow_that_is_given_up_then_its_pods_end_and_none_begin() -> None:
    run = Simulation(main({"steps": [[{"name": "a", "template": "say"}]]}))
    run.step()
    assert len(run.pods) == 1
    run.workflow["spec"]["activeDeadlineSeconds"] = "soon"
    run.step()
    assert (run.status["phase"], run.pods, run.plan.create) == ("Error", {}, [])


NO_MAP = "AttributeError: 'str' object has no attribute"
ODD: list[tuple[dict[str, Any], str, str]] = [
    ({"activeDeadlineSeconds": "x"}, "Error", "ValueError: could not convert string to float: 'x'"),
    ({"activeDeadlineSeconds": [1]}, "Error", "TypeError: float() argument must be"),
    ({"parallelism": float("inf")}, "Failed", "child wf[0].a error: cannot convert float infinity to integer"),
    ({"podGC": "x"}, "Error", NO_MAP),
    (
        {"podGC": {"strategy": "OnPodCompletion", "deleteDelayDuration": "x"}},
        "Error",
        "unable to parse 'x' as a duration",
    ),
    ({"podGC": {"strategy": "OnPodCompletion", "labelSelector": "x"}}, "Error", NO_MAP),
    ({"workflowTemplateRef": "x"}, "Error", NO_MAP),
    ({"ttlStrategy": {"secondsAfterCompletion": "x"}}, "Succeeded", ""),
    ({"templateDefaults": "x"}, "Error", NO_MAP),
]


@pytest.mark.parametrize(("more", "phase", "message"), ODD, ids=str)
def test_a_workflow_with_odd_values_ends(more: dict[str, Any], phase: str, message: str) -> None:
    run = Simulation(main({"steps": [[{"name": "a", "template": "say"}]]}, **more))
    longest_pass(run, 5)
    assert run.status["phase"] == phase
    found = run.status.get("message", "")
    assert message in found if message else not found
    assert phase != "Error" or found.startswith("the workflow or its status cannot be read: ")


@pytest.mark.parametrize(
    ("status", "phase", "message"),
    [
        ("text", "Error", NO_MAP),
        ({"phase": "Running", "startedAt": "x"}, "Error", "'x' is not an RFC 3339 time"),
        ({"phase": "Succeeded", "finishedAt": "x"}, "Succeeded", ""),
    ],
    ids=str,
)
def test_a_status_with_odd_values_ends_the_workflow(status: Any, phase: str, message: str) -> None:
    rules = {"activeDeadlineSeconds": 5, "ttlStrategy": {"secondsAfterCompletion": 5}}
    hostile = main({"steps": [[{"name": "a", "template": "say"}]]}, **rules)
    hostile["status"] = status
    run = Simulation(hostile)
    longest_pass(run, 3)
    assert (run.status["phase"], run.created) == (phase, [])
    found = run.status.get("message", "")
    assert message in found if message else not found


@pytest.mark.parametrize("message", ["[" * 4000, '{"result": {"a": 1}}', '{"parameters": [1]}', "null", "7"])
def test_a_report_of_a_pod_is_data(message: str) -> None:
    template = {"script": {"image": "x", "command": ["sh"], "source": "true"}}
    run = Simulation(main({"steps": [[{"name": "a", "inline": template}], [{"name": "b", "template": "say"}]]}))
    for _ in range(5):
        for pod in run.step():
            run.finish(pod)
            pod["status"]["containerStatuses"][0]["state"]["terminated"]["message"] = message
    assert run.status["phase"] == "Succeeded"
