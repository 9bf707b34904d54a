"""Pipelines that cannot be carried out are refused before anything starts, with the field to mend."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.kube import yamlio
from paddlecloud.pipelines import ir

GOLDEN = Path(__file__).parent / "golden"


def documents(name: str) -> list[Any]:
    return [copy.deepcopy(value) for _, value in yamlio.load_all((GOLDEN / f"{name}.yaml").read_text())]


def _set(path: str, value: Any) -> Callable[[Any], None]:
    def change(document: Any) -> None:
        *before, last = path.split("/")
        for part in before:
            document = document[part]
        document[last] = value

    return change


def _delete(path: str) -> Callable[[Any], None]:
    def change(document: Any) -> None:
        *before, last = path.split("/")
        for part in before:
            document = document[part]
        del document[last]

    return change


TASKS = "root/dag/tasks"
MISTAKES = {
    "a newer schema": (_set("schemaVersion", "3.0.0"), "schemaVersion", "newer than 2.1"),
    "no schema": (_delete("schemaVersion"), "schemaVersion", "not a pipeline that kfp 2 compiled"),
    "an odd schema": (_set("schemaVersion", "two"), "schemaVersion", "not a version"),
    "an unknown field": (_set("root/dag/tasks/echo/colour", 1), "root.dag.tasks[...]", "unknown field `colour`"),
    "an unknown component": (
        _set(f"{TASKS}/echo/componentRef/name", "comp-eco"), "root.dag.tasks.echo.componentRef.name",
        "no component 'comp-eco'; there are: comp-echo",
    ),
    "an unknown executor": (
        _set("components/comp-echo/executorLabel", "exec-eco"), "components.comp-echo.executorLabel",
        "no executor 'exec-eco'",
    ),
    "an output that nobody gives": (
        _set(f"{TASKS}/show/inputs/parameters/text/taskOutputParameter/outputParameterKey", "in"),
        "root.dag.tasks.show.inputs.parameters.text", "no output parameter of task echo 'in'; there are: out",
    ),
    "a task that is not there": (
        _set(f"{TASKS}/show/inputs/parameters/text/taskOutputParameter/producerTask", "eco"),
        "root.dag.tasks.show.inputs.parameters.text", "no task 'eco'",
    ),
    "a circle": (
        _set(f"{TASKS}/echo/dependentTasks", ["show"]), "root.dag.tasks", "echo → show → echo depend on each other",
    ),
    "a component in itself": (
        _set("components/comp-echo", {"dag": {"tasks": {"a": {"componentRef": {"name": "comp-echo"}}}},
                                      "outputDefinitions": {"parameters": {"out": {}}}}),
        "components", "contain each other in a circle",
    ),
    "a constant of another type": (
        _set(f"{TASKS}/show-2/inputs/parameters/number/runtimeValue/constant", "one"),
        "root.dag.tasks.show-2.inputs.parameters.number.runtimeValue.constant",
        "must be a whole number (NUMBER_INTEGER), not 'one'",
    ),
    "a default of another type": (
        _set("root/inputDefinitions/parameters/flag/defaultValue", "yes"),
        "root.inputDefinitions.parameters.flag.defaultValue", "must be true or false",
    ),
    "an input that nobody gives": (
        _delete(f"{TASKS}/show/inputs/parameters/text"), "root.dag.tasks.show.inputs.parameters.text", "required",
    ),
    "an unknown type": (
        _set("components/comp-echo/inputDefinitions/parameters/message/parameterType", "COLOUR"),
        "components.comp-echo.inputDefinitions.parameters.message.parameterType", "'COLOUR' is no type",
    ),
    "a name that Argo would not take": (
        _set(f"{TASKS}/a b", {"componentRef": {"name": "comp-echo"}}), "root.dag.tasks", "'a b' is no name of a task",
    ),
    "a placeholder that is not known": (
        _set("deploymentSpec/executors/exec-echo/container/args", ["{{$.inputs.parameters['other']}}"]),
        "deploymentSpec.executors.exec-echo.container.args",
        "placeholder {{$.inputs.parameters['other']}} is not known",
    ),
    "an executor without a program": (
        _set("deploymentSpec/executors/exec-echo", {}), "deploymentSpec.executors.exec-echo", "neither a container",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_refused_with_the_field_to_mend(mistake: str) -> None:
    change, path, sentence = MISTAKES[mistake]
    (document,) = documents("parameters")
    change(document)
    with pytest.raises(ir.InvalidPipeline) as refused:
        ir.translate(json.dumps(document).encode(), {}, "run")
    assert refused.value.path == path
    assert sentence in refused.value.message


@pytest.mark.parametrize(
    ("parameters", "path", "sentence"),
    [
        ({"colour": 1}, "parameters.colour", "has no such parameter; it has: flag, message, number, ratio"),
        ({"number": "three"}, "parameters.number", "must be a whole number"),
        ({"number": 1.5}, "parameters.number", "must be a whole number"),
        ({"flag": 1}, "parameters.flag", "must be true or false"),
    ],
)
def test_parameters_of_a_run_are_judged(parameters: dict[str, Any], path: str, sentence: str) -> None:
    with pytest.raises(ir.InvalidPipeline) as refused:
        ir.translate((GOLDEN / "parameters.yaml").read_bytes(), parameters, "run")
    assert refused.value.path == path
    assert sentence in refused.value.message


def test_a_parameter_without_a_default_is_required() -> None:
    (document,) = documents("parameters")
    document["root"]["inputDefinitions"]["parameters"]["message"] = {"parameterType": "STRING"}
    with pytest.raises(ir.InvalidPipeline) as refused:
        ir.translate(json.dumps(document).encode(), {}, "run")
    assert refused.value.path == "parameters.message"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b"", "the file is empty"),
        (b"\xff\xfe", "not text in UTF-8"),
        (b"a: [1", "line "),
        (b"- 1\n", "each document must be a map"),
        (b"a: 1\n---\nb: 1\n---\nc: 1\n", "3 documents"),
        (b"---\n" * 200_000, "more than 18 documents"),
        (b"apiVersion: argoproj.io/v1alpha1\nkind: Workflow\n", "is a Kubernetes object"),
        (b"pipelineSpec: {}\n", "compile the pipeline again"),
    ],
)
def test_a_file_that_is_no_pipeline_is_refused(text: bytes, sentence: str) -> None:
    with pytest.raises(ir.InvalidPipeline, match=sentence.replace("(", r"\(")):
        ir.read(text)


def test_texts_of_a_command_line_are_read_by_the_type_of_the_parameter() -> None:
    workflow = ir.translate(
        (GOLDEN / "parameters.yaml").read_bytes(), {"number": "7", "ratio": "2", "flag": "false", "message": "7"}, "run"
    )
    given = {each["name"]: each["value"] for each in workflow["spec"]["arguments"]["parameters"]}
    assert given == {"number": "7", "ratio": "2", "flag": "false", "message": "7"}
