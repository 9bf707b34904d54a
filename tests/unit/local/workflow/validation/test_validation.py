"""What is refused when a workflow is written, and at what cost."""

from __future__ import annotations

import time
from typing import Any

import pytest

from paddlecloud.kube import errors
from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.objects.admission import WriteOptions
from paddlecloud.local.apiserver.registry import KindInfo
from paddlecloud.local.workflow.names import WORKFLOWS
from paddlecloud.local.workflow.validation.admission import judge

SAY: dict[str, Any] = {"name": "say", "container": {"image": "busybox"}}


def steps(**step: Any) -> Object:
    return spec({"steps": [[{"name": "a", "template": "say", **step}]]})


def dag(*tasks: dict[str, Any]) -> Object:
    return spec({"dag": {"tasks": list(tasks)}})


def spec(main: dict[str, Any], **more: Any) -> Object:
    return {"entrypoint": "main", "templates": [{"name": "main", **main}, SAY], **more}


def judged(new: Any, old: Any = None, **more: Any) -> list[str]:
    """The fields that are refused."""
    info = KindInfo(WORKFLOWS, "workflow")
    try:
        judge(info, _object(new), None if old is None else _object(old), WriteOptions(manager="kubectl"), **more)
    except errors.Invalid as refused:
        return [cause["field"] for cause in (refused.details or {})["causes"]]
    return []


def _object(spec: Any) -> Object:
    return {"metadata": {"name": "wf", "namespace": "default"}, "spec": spec}


def nested(depth: int) -> dict[str, Any]:
    made: dict[str, Any] = {"container": {"image": "x"}}
    for _ in range(depth):
        made = {"steps": [[{"name": "s", "inline": made}]]}
    return made


UNREADABLE = {
    "a text as a template": steps(inline="text"),
    "numbers as dependencies": dag({"name": "a", "template": "say", "dependencies": [1]}),
    "a number as continueOn": dag(
        {"name": "a", "template": "say", "continueOn": 3}, {"name": "b", "template": "say", "depends": "a"}
    ),
    "a number as arguments": steps(arguments={"parameters": 3}),
    "a map as a name": steps(arguments={"parameters": [{"name": {"a": 1}}]}),
    "templates a thousand deep": spec(nested(1000)),
}


@pytest.mark.parametrize("spec", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_value_of_another_type_is_an_answer_and_no_failure_of_the_server(spec: Object) -> None:
    assert judged(spec)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("activeDeadlineSeconds", "x"),
        ("activeDeadlineSeconds", float("inf")),
        ("activeDeadlineSeconds", True),
        ("activeDeadlineSeconds", 2**70),
        ("parallelism", [1]),
        ("parallelism", 1.5),
        ("ttlStrategy.secondsAfterCompletion", "x"),
        ("podGC.deleteDelayDuration", "soon"),
        ("podGC.labelSelector", "x"),
        ("podGC", "x"),
        ("workflowTemplateRef", "x"),
        ("templateDefaults", "x"),
        ("volumes", 3),
        ("suspend", "no"),
        ("shutdown", "x" * 100_000),
    ],
    ids=lambda value: str(value)[:20],
)
def test_an_odd_value_is_refused_by_the_name_of_its_field(field: str, value: Any) -> None:
    outer, _, inner = field.partition(".")
    odd = spec({"container": {"image": "x"}}, **{outer: {inner: value} if inner else value})
    assert judged(odd) == [f"spec.{field}"]
    if not inner and outer in ("suspend", "shutdown"):
        assert judged(odd, old=spec({"container": {"image": "x"}})) == [f"spec.{field}"], "neither is it written later"


def test_a_workflow_that_runs_is_stopped_and_resumed() -> None:
    before = spec({"container": {"image": "x"}}, suspend=True)
    assert judged({**before, "suspend": None, "shutdown": "Stop"}, old=before) == []


def test_the_cost_of_a_judgement_grows_with_its_size() -> None:
    chain = dag(*({"name": f"t{n}", "template": "say", "depends": f"t{n + 1}"} for n in range(9_999)), _task("t9999"))
    unknown = spec({"steps": [[{"name": f"s{n}", "template": "no"} for n in range(5_000)]]})
    unknown["templates"] += [{"name": f"template-{n}", "container": {"image": "x"}} for n in range(5_000)]
    began = time.process_time()
    assert judged(chain) == []
    assert len(judged(unknown)) == 10
    assert time.process_time() - began < 3


def _task(name: str) -> dict[str, Any]:
    return {"name": name, "template": "say"}


def test_tasks_in_a_circle_are_refused() -> None:
    circle = dag(
        {**_task("a"), "depends": "b"}, {**_task("b"), "depends": "c"}, {**_task("c"), "depends": "a"}, _task("free")
    )
    assert judged(circle) == ["spec.templates[0].dag.tasks"]


PARAMETER = {"container": {"image": "x", "args": ["{{workflow.parameters.p}}"]}}
LABEL = {"container": {"image": "x", "args": ["{{workflow.labels.app}} {{ workflow.annotations.note }}"]}}
METADATA = {"labelsFrom": {"app": {"expression": "'a'"}}, "annotations": {"note": "n"}}
EMPTY = {"inputs": {"artifacts": [{"name": "a", "path": "/a", "http": {"url": ""}}]}, "container": {"image": "x"}}
DEFAULTS = {"templateDefaults": {"container": {"image": "x"}}}


@pytest.mark.parametrize(
    ("given", "fields"),
    [
        (spec(PARAMETER), ["spec.templates[0]"]),
        (spec(PARAMETER, arguments={"parameters": [{"name": "p", "value": "v"}]}), []),
        (spec(PARAMETER, arguments={"parameters": [{"name": "p"}]}), ["spec.arguments.parameters[0].value"]),
        (
            spec(PARAMETER, arguments={"parameters": [{"name": "p", "value": "v"}, {"name": False, "value": 1}]}),
            ["spec.arguments.parameters[1].name"],
        ),
        (spec(LABEL), ["spec.templates[0]"] * 2),
        (spec(LABEL, workflowMetadata=METADATA), []),
        (steps(dependencies=["b"]), ["spec.templates[0].steps[0][0].dependencies"]),
        (spec(EMPTY), ["spec.arguments.artifacts"]),
        (spec({"container": {"command": ["a"]}}), ["spec.templates[0].container.image"]),
        (spec({"container": {"command": ["a"]}}, **DEFAULTS), []),
    ],
)
def test_a_workflow_is_refused_for_what_argo_refuses(given: Object, fields: list[str]) -> None:
    assert judged(given) == fields
