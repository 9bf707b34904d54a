"""What the tasks of one DAG may name: the inputs of its component, and what other tasks of it give. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from paddlecloud.pipelines.ir.errors import InvalidPipeline
from paddlecloud.pipelines.ir.outputs import Outputs
from paddlecloud.pipelines.ir.pipeline_spec import Component, Dag, Importer, InputArtifact, InputParameter, Task
from paddlecloud.pipelines.ir.placeholders import Placeholder, parts
from paddlecloud.pipelines.ir.sources import (
    ARTIFACT,
    ValueSource,
    artifact_parameter,
    optional_variable,
    quoted,
    variable,
)
from paddlecloud.pipelines.ir.values import json_of, text_of

ALWAYS = "ALL_UPSTREAM_TASKS_COMPLETED"
WORDS = {
    "pipeline_job_name": "workflow.name",
    "pipeline_job_resource_name": "workflow.name",
    "pipeline_job_uuid": "workflow.uid",
    "pipeline_job_create_time_utc": "workflow.creationTimestamp.RFC3339",
    "pipeline_job_schedule_time_utc": "workflow.creationTimestamp.RFC3339",
}
"""Placeholders for the run, and Argo's variables for them."""
_SELECTOR = re.compile(r"""parseJson\(string_value\)((?:\[(?:\d{1,9}|"[^"\\]*"|'[^'\\]*')\])+)""")
_STATES = "{'Succeeded': 'SUCCEEDED', 'Skipped': 'SKIPPED', 'Omitted': 'CANCELLED'}"


class Inputs(msgspec.Struct, frozen=True):
    """What a task is given; inputs that are absent are left out."""

    parameters: dict[str, ValueSource]
    artifacts: dict[str, ValueSource]


class Scope:
    """`absent` and `imported` are inputs of the component: those nobody gave, and artifacts without content here."""

    def __init__(
        self, component: Component, dag: Dag, outputs: Outputs, importers: Mapping[str, Importer], *,
        absent: frozenset[str], imported: frozenset[str], path: str,
    ) -> None:  # fmt: skip
        self._component = component
        self._dag = dag
        self._outputs = outputs
        self._importers = importers
        self._absent = absent
        self._imported = imported
        self.path = path

    def inputs(self, name: str, task: Task) -> Inputs:
        """With the defaults of the task's component. A required input that nobody gave is refused."""
        where = f"{self.path}.tasks.{name}.inputs"
        component = self._outputs.component_of(task)
        found: dict[str, ValueSource] = {}
        constants = []
        for key, given in task.inputs.parameters.items():
            definition = component.input_definitions.parameters.get(key)
            kind = definition.parameter_type if definition is not None else ""
            if given.runtime_value is not None:
                constants.append((key, given, kind))
            elif source := self.parameter(
                name, task, given, kind, f"{where}.parameters.{key}", default=_default(definition)
            ):
                found[key] = source
        for key, given, kind in constants:
            made = _constant(given, kind, found, name, f"{where}.parameters.{key}")
            if made is not None:
                found[key] = made
        looped = {each.item_input for each in (task.parameter_iterator, task.artifact_iterator) if each is not None}
        for key, definition in component.input_definitions.parameters.items():
            if key in found or key in looped:
                continue
            default = _default(definition)
            if default is not None:
                found[key] = default
            elif not definition.is_optional:
                raise InvalidPipeline(f"{where}.parameters.{key}", "required: the component has no default for it")
        artifacts = {}
        for key, chosen in task.inputs.artifacts.items():
            artifact = self.artifact(chosen)
            if artifact is not None:
                artifacts[key] = artifact
        for key, wanted in component.input_definitions.artifacts.items():
            if key not in artifacts and key not in looped and not wanted.is_optional:
                raise InvalidPipeline(f"{where}.artifacts.{key}", "required: no task makes it")
        return Inputs(found, artifacts)

    def parameter(
        self, name: str, task: Task, given: InputParameter, kind: str, path: str, default: ValueSource | None = None
    ) -> ValueSource | None:
        """None where it is absent. An empty `kind` is that of the source."""
        if given.runtime_value is not None:
            return _constant(given, kind, {}, name, path)
        if status := given.task_final_status:
            return _final_status(status.producer_task)
        if made := given.task_output_parameter:
            producer = self._dag.tasks.get(made.producer_task)
            if producer is None:
                raise InvalidPipeline(path, f"there is no task {made.producer_task[:60]!r}")
            kind = kind or self._outputs.kind_of(producer, made.output_parameter_key)
            reference = f"tasks.{made.producer_task}.outputs.parameters.{made.output_parameter_key}"
            if task.trigger_policy.strategy == ALWAYS:
                usual = default.expression() if default is not None else "''"
                source = ValueSource(kind=kind, code=f"{optional_variable(reference)} ?? {usual}")
            else:
                source = ValueSource(kind=kind, reference=reference)
        else:
            wanted = given.component_input_parameter
            definition = self._component.input_definitions.parameters.get(wanted)
            if definition is None:
                raise InvalidPipeline(path, f"there is no input {wanted[:60]!r}")
            if wanted in self._absent:
                return None
            source = ValueSource(kind=kind or definition.parameter_type, reference=f"inputs.parameters.{wanted}")
        if selector := given.parameter_expression_selector:
            return _selected(source, selector, kind, path)
        return source

    def artifact(self, given: InputArtifact) -> ValueSource | None:
        if made := given.task_output_artifact:
            return self.made_artifact(made.producer_task, made.output_artifact_key)
        name = given.component_input_artifact
        if name in self._absent:
            return None
        reference = f"inputs.parameters.{artifact_parameter(name)}"
        return ValueSource(kind=ARTIFACT, reference=reference, imported=name in self._imported)

    def made_artifact(self, task: str, key: str) -> ValueSource:
        producer = self._dag.tasks[task]
        if self._outputs.is_importer(producer):
            return self._import(task, producer)
        imported = self._outputs.may_be_imported(producer, key)
        reference = f"tasks.{task}.outputs.parameters.{artifact_parameter(key)}"
        return ValueSource(kind=ARTIFACT, reference=reference, imported=imported)

    def _import(self, name: str, task: Task) -> ValueSource:
        """The reference of an imported artifact: its uri and metadata are known without a pod."""
        importer = self._importers[self._outputs.component_of(task).executor_label]
        given = self.inputs(name, task).parameters
        path = f"{self.path}.tasks.{name}"
        uri = importer.artifact_uri
        if uri.runtime_parameter:
            if uri.runtime_parameter not in given:
                raise InvalidPipeline(
                    f"{path}.inputs.parameters.{uri.runtime_parameter}", "required: the uri to import"
                )
            where = given[uri.runtime_parameter]
        else:
            where = ValueSource(kind="STRING", literal=text_of(uri.constant, "STRING", f"{path}.artifactUri"))
        kind = {"schemaTitle": importer.type_schema.schema_title, "schemaVersion": importer.type_schema.schema_version}
        metadata = _inside_json(json_of(importer.metadata), given, name, path)
        pieces = [
            quoted(f'{{"name":{json_of(name)},"type":{json_of(kind)},"uri":'),
            f"toJson({where.expression()})",
            quoted(',"metadata":'),
            metadata,
            quoted("}"),
        ]
        return ValueSource(kind=ARTIFACT, code=" + ".join(pieces), imported=True)


def _default(definition: Any) -> ValueSource | None:
    value = definition.default_value if definition is not None else msgspec.UNSET
    if value is msgspec.UNSET or value is None:
        return None
    kind = definition.parameter_type
    return ValueSource(kind=kind, literal=text_of(value, kind, "defaultValue"))


def _constant(
    given: InputParameter, kind: str, inputs: Mapping[str, ValueSource], task: str, path: str
) -> ValueSource | None:
    runtime = given.runtime_value
    value = runtime.constant if runtime is not None else None
    if value is msgspec.UNSET or value is None:
        if runtime is not None and runtime.runtime_parameter:
            raise InvalidPipeline(
                f"{path}.runtimeValue.runtimeParameter", "is of an early kfp 2; compile the pipeline again"
            )
        return None
    kind = kind or _kind_of_constant(value)
    text = text_of(value, kind, f"{path}.runtimeValue.constant")
    if "{{$" not in text:
        return ValueSource(kind=kind, literal=text)
    if kind != "STRING":
        return ValueSource(kind=kind, code=_inside_json(text, inputs, task, path))
    return ValueSource(kind=kind, code=" + ".join(_piece(each, inputs, task, path) for each in parts(text)))


def _inside_json(text: str, inputs: Mapping[str, ValueSource], task: str, path: str) -> str:
    """JSON whose strings hold placeholders: values are put there as the inside of JSON strings."""
    made = []
    for each in parts(text):
        code = _piece(each, inputs, task, path)
        made.append(code if isinstance(each, str) else f"""trimSuffix(trimPrefix(toJson({code}), '"'), '"')""")
    return " + ".join(made)


def _piece(part: str | Placeholder, inputs: Mapping[str, ValueSource], task: str, path: str) -> str:
    if isinstance(part, str):
        return quoted(part)
    if part.side == "inputs" and part.what == "parameters" and not part.field:
        if part.name not in inputs:
            raise InvalidPipeline(path, f"names the input {part.name[:60]!r}, which the task does not have")
        return inputs[part.name].expression()
    if part.word == "pipeline_task_name":
        return quoted(task)
    if part.word in WORDS:
        return variable(WORDS[part.word])
    raise InvalidPipeline(path, f"the placeholder {{{{${part.text[:60]}}}}} is not known here")


def _kind_of_constant(value: Any) -> str:
    if isinstance(value, bool):
        return "BOOLEAN"
    if isinstance(value, (int, float)):
        return "NUMBER_INTEGER" if float(value).is_integer() else "NUMBER_DOUBLE"
    return "STRING" if isinstance(value, str) else "LIST" if isinstance(value, list) else "STRUCT"


def _selected(source: ValueSource, selector: str, kind: str, path: str) -> ValueSource:
    match = _SELECTOR.fullmatch(selector)
    if match is None:
        raise InvalidPipeline(f"{path}.parameterExpressionSelector", f"{selector[:60]!r} is not carried out")
    keys = re.findall(r"""\[(\d+|"[^"]*"|'[^']*')\]""", match[1])
    chosen = "".join(f"[{key}]" if key.isdigit() else f"[{quoted(json.loads(json.dumps(key[1:-1])))}]" for key in keys)
    code = f"fromJSON({source.expression()}){chosen}"
    return ValueSource(kind=kind or "STRING", code=code if kind in ("", "STRING") else f"toJson({code})")


def _final_status(producer: str) -> ValueSource:
    """A PipelineTaskFinalStatus. Argo does not say in a variable why a task failed; the log of its pod does."""
    status = variable(f"tasks.{producer}.status")
    state = f"({_STATES}[{status}] ?? 'FAILED')"
    message = f"({status} in ['Failed', 'Error'] ? {quoted(f'task {producer} ended as ')} + {status} : '')"
    code = (
        f"toJson({{'state': {state}, 'pipelineJobResourceName': workflow.name, "
        f"'pipelineTaskName': {quoted(producer)}, 'error': {{'code': {status} in ['Failed', 'Error'] ? 9 : 0, "
        f"'message': {message}}} }})"
    )
    return ValueSource(kind="STRUCT", code=code)
