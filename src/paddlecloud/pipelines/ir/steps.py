"""The Argo template of a step: one container, with Argo's own inputs and outputs. Pure.

A container component runs as it stands: Argo puts values in place of its placeholders and takes its outputs from files.
A component that asks for the executor's input (`{{$}}`: every Python component does) is started by `step_starter.py` in
its own image, which has Python by definition.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from paddlecloud.pipelines import names
from paddlecloud.pipelines.ir import artifact_locations
from paddlecloud.pipelines.ir.errors import InvalidPipeline
from paddlecloud.pipelines.ir.options import PipelineOptions
from paddlecloud.pipelines.ir.pipeline_spec import Component, Container, Resources
from paddlecloud.pipelines.ir.placeholders import EXECUTOR_INPUT, Placeholder, arguments, parts
from paddlecloud.pipelines.ir.scope import WORDS
from paddlecloud.pipelines.ir.sources import artifact_parameter, literal_text, quoted, tag, variable
from paddlecloud.pipelines.ir.values import json_of

ORDERS = "PIPELINE_STEP"
"""Variable of a step that the step starter starts: what it runs, with which values."""
EXECUTOR_OUTPUT = f"{artifact_locations.OUTPUTS}/executor_output.json"
_VOLUME = "kfp-outputs"


def starter_text() -> str:
    return (Path(__file__).parent / "step_starter.py").read_text()


class StepTemplate:
    """One way in which an executor is used: `present` are the inputs it is given, `imported` those without content."""

    def __init__(
        self, name: str, label: str, component: Component, container: Container, options: PipelineOptions, *,
        present: frozenset[str], imported: frozenset[str],
    ) -> None:  # fmt: skip
        self._name = name
        self._component = component
        self._container = container
        self._options = options
        self._present = present
        self._imported = imported
        self._path = f"deploymentSpec.executors.{label}.container"
        self._command = arguments(container.command, present, f"{self._path}.command")
        self._args = arguments(container.args, present, f"{self._path}.args")

    @property
    def is_launched(self) -> bool:
        return any(EXECUTOR_INPUT in each or "{{$.json_escape" in each for each in (*self._command, *self._args))

    def template(self) -> dict[str, Any]:
        if not self._container.image:
            raise InvalidPipeline(f"{self._path}.image", "required")
        container: dict[str, Any] = {"image": self._container.image}
        if self.is_launched:
            container |= self._launched()
        else:
            if self._command:
                container["command"] = [self._resolved(each, "command") for each in self._command]
            if self._args:
                container["args"] = [self._resolved(each, "args") for each in self._args]
            if env := self._env():
                container["env"] = env
        if resources := resources_of(self._container.resources):
            container["resources"] = resources
        made: dict[str, Any] = {"name": self._name, "container": container}
        if inputs := self._inputs():
            made["inputs"] = inputs
        outputs = self._outputs()
        if outputs:
            made["outputs"] = outputs
            # Programs may write outputs without making a folder for them: KFP makes it too (component/launcher_v2.go).
            container["volumeMounts"] = [{"name": _VOLUME, "mountPath": artifact_locations.OUTPUTS}]
            made["volumes"] = [{"name": _VOLUME, "emptyDir": {}}]
        return made

    def _env(self) -> list[dict[str, str]]:
        return [
            {"name": each.name, "value": self._resolved(each.value, f"env.{each.name}")} for each in self._container.env
        ]

    def _inputs(self) -> dict[str, Any]:
        definitions = self._component.input_definitions
        parameters = [name for name in definitions.parameters if name in self._present]
        artifacts = [name for name in definitions.artifacts if name in self._present]
        named = [*parameters, *(artifact_parameter(name) for name in artifacts)]
        made: dict[str, Any] = {}
        if named:
            made["parameters"] = [{"name": name} for name in named]
        contents = [
            artifact_locations.input_artifact(name, definitions.artifacts[name], self._options)
            for name in artifacts
            if name not in self._imported
        ]
        if contents:
            made["artifacts"] = contents
        return made

    def _outputs(self) -> dict[str, Any]:
        definitions = self._component.output_definitions
        parameters: list[dict[str, Any]] = [
            {"name": name, "valueFrom": {"path": artifact_locations.output_path(name)}}
            for name in definitions.parameters
        ]
        for name, definition in definitions.artifacts.items():
            value: dict[str, Any] = {"path": artifact_locations.output_path(artifact_parameter(name))}
            if not self.is_launched:
                value["default"] = artifact_locations.reference_of(self._name, name, definition, self._options)
            parameters.append({"name": artifact_parameter(name), "valueFrom": value})
        made: dict[str, Any] = {}
        if parameters:
            made["parameters"] = parameters
        if definitions.artifacts:
            made["artifacts"] = [
                artifact_locations.output_artifact(self._name, name, self._options) for name in definitions.artifacts
            ]
        return made

    def _resolved(self, text: str, field: str) -> str:
        return "".join(self._piece(each, field) for each in parts(text))

    def _piece(self, part: str | Placeholder, field: str) -> str:
        if isinstance(part, str):
            return literal_text(part)
        known = self._input_piece(part) if part.side == "inputs" else self._output_piece(part) if part.side else None
        if known is None and part.word in WORDS:
            known = f"{{{{{WORDS[part.word]}}}}}"
        if known is None and part.word in ("pipeline_task_name", "pipeline_task_uuid"):
            known = "{{pod.name}}" if part.word == "pipeline_task_uuid" else literal_text(self._name)
        if known is None and part.word == "pipeline_root":
            known = artifact_locations.uri_of(
                f"{self._options.prefix}/{{{{workflow.namespace}}}}/{{{{workflow.name}}}}", self._options
            )
        if known is None and part.word == "outputs.output_file":
            known = EXECUTOR_OUTPUT
        if known is None:
            raise InvalidPipeline(
                f"{self._path}.{field}", f"the placeholder {{{{${part.text[:60]}}}}} is not known here"
            )
        return known

    def _input_piece(self, part: Placeholder) -> str | None:
        if part.what == "parameters" and part.name in self._component.input_definitions.parameters:
            return f"{{{{inputs.parameters.{part.name}}}}}" if part.name in self._present else ""
        if part.what != "artifacts" or part.name not in self._component.input_definitions.artifacts:
            return None
        if part.name not in self._present:
            return ""
        reference = f"fromJSON({variable(f'inputs.parameters.{artifact_parameter(part.name)}')})"
        if part.field == "path":
            return artifact_locations.input_path(part.name)
        if part.field == "metadata":
            chosen = f"{reference}.metadata" + (f"[{quoted(part.key)}]" if part.key else "")
            return tag(f"type({chosen}) == 'string' ? {chosen} : toJson({chosen})")
        return tag(f"{reference}.uri") if part.field == "uri" else None

    def _output_piece(self, part: Placeholder) -> str | None:
        definitions = self._component.output_definitions
        if part.what == "parameters" and part.name in definitions.parameters and part.field == "output_file":
            return artifact_locations.output_path(part.name)
        if part.what == "artifacts" and part.name in definitions.artifacts:
            if part.field == "path":
                return artifact_locations.output_path(part.name)
            if part.field == "uri":
                return artifact_locations.uri_of(
                    artifact_locations.key_of(self._name, part.name, self._options), self._options
                )
            if part.field == "metadata":
                value = definitions.artifacts[part.name].metadata
                chosen = value.get(part.key) if part.key else value
                return literal_text(chosen if isinstance(chosen, str) else json_of(chosen))
        return None

    def _launched(self) -> dict[str, Any]:
        wanted, given = self._component.output_definitions, self._component.input_definitions
        parameters = [name for name in given.parameters if name in self._present]
        artifacts = [name for name in given.artifacts if name in self._present]
        run = artifact_locations.uri_of(
            f"{self._options.prefix}/{{{{workflow.namespace}}}}/{{{{workflow.name}}}}", self._options
        )
        program = {
            "command": self._command,
            "args": self._args,
            "task": self._name,
            "inputs": {name: given.parameters[name].parameter_type for name in parameters},
            "lists": [name for name in artifacts if given.artifacts[name].is_artifact_list],
            "paths": {name: artifact_locations.input_path(name) for name in artifacts if name not in self._imported},
            "outputs": {name: each.parameter_type for name, each in wanted.parameters.items()},
            "makes": {
                name: {"type": artifact_locations.type_of(each.artifact_type), "metadata": each.metadata}
                for name, each in wanted.artifacts.items()
            },
        }
        values = {
            "values": {name: _encoded(name) for name in parameters},
            "references": {name: _encoded(artifact_parameter(name)) for name in artifacts},
            "keys": {name: artifact_locations.key_of(self._name, name, self._options) for name in wanted.artifacts},
            "store": f"{self._options.store}://{self._options.bucket}/",
            "run": {word: f"{{{{{name}}}}}" for word, name in WORDS.items()}
            | {"pipeline_task_uuid": "{{pod.name}}", "pipeline_root": run},
        }
        return {
            "command": ["python3", "-c"],
            "args": [f"{{{{workflow.parameters.{names.STARTER_PARAMETER}}}}}"],
            "env": [*self._env(), {"name": ORDERS, "value": _orders(program, values)}],
        }


def _encoded(parameter: str) -> str:
    """In base64: whatever a value holds, neither Argo nor Kubernetes finds a variable in it."""
    return tag(f"toBase64({variable(f'inputs.parameters.{parameter}')})")


def _orders(program: dict[str, Any], values: dict[str, Any]) -> str:
    """One JSON map. In the first part no `{{` is a tag of Argo and no `$(NAME)` a variable of Kubernetes: both stand in
    strings alone, where JSON has another way to write them."""
    fixed = json.dumps(program, ensure_ascii=False).replace("$", "\\u0024").replace("{{", "{\\u007b")
    return f"{fixed[:-1]}, {json.dumps(values)[1:]}"


def resources_of(wanted: Resources) -> dict[str, Any]:
    """The newer fields are texts as the user wrote them; the older ones are cores and gigabytes."""
    limits: dict[str, str] = {}
    requests: dict[str, str] = {}
    for side, cpu, memory, cores, gigabytes in (
        (limits, wanted.resource_cpu_limit, wanted.resource_memory_limit, wanted.cpu_limit, wanted.memory_limit),
        (
            requests,
            wanted.resource_cpu_request,
            wanted.resource_memory_request,
            wanted.cpu_request,
            wanted.memory_request,
        ),
    ):
        if cpu or cores:
            side["cpu"] = cpu or f"{round(cores * 1000)}m"
        if memory or gigabytes:
            side["memory"] = memory or str(round(gigabytes * 1_000_000_000))
    if wanted.accelerator is not None:
        kind = wanted.accelerator.resource_type or wanted.accelerator.type
        count = wanted.accelerator.resource_count or str(wanted.accelerator.count)
        if kind and count not in ("", "0"):
            limits[kind] = count
    return {key: value for key, value in (("limits", limits), ("requests", requests)) if value}
