"""A compiled pipeline and its parameters as an Argo Workflow. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from paddlecloud.kube.resource import Object
from paddlecloud.pipelines import names
from paddlecloud.pipelines.ir.dags import Templates
from paddlecloud.pipelines.ir.errors import InvalidPipeline
from paddlecloud.pipelines.ir.options import PipelineOptions
from paddlecloud.pipelines.ir.pipeline_spec import InputParameterDefinition
from paddlecloud.pipelines.ir.reader import Pipeline, read
from paddlecloud.pipelines.ir.sources import literal_text
from paddlecloud.pipelines.ir.steps import ORDERS, starter_text
from paddlecloud.pipelines.ir.values import given_text, json_of, text_of

MAX_INPUTS = 64 * 1024
"""Characters of the annotation with the types of parameters; Kubernetes takes 256 KiB for all annotations."""


def translate(
    documents: bytes, parameters: Mapping[str, Any], name: str, options: PipelineOptions | None = None
) -> Object:
    """The Workflow of a compiled pipeline, without a namespace. Raises InvalidPipeline with the field to mend."""
    return workflow_of(read(documents), parameters, name, options)


def workflow_of(
    pipeline: Pipeline, parameters: Mapping[str, Any], name: str, options: PipelineOptions | None = None
) -> Object:
    options = options or PipelineOptions()
    values = _values(pipeline, parameters)
    templates = Templates(pipeline, options)
    absent = frozenset(pipeline.spec.root.input_definitions.parameters) - set(values)
    entrypoint = templates.root(absent)
    arguments = [{"name": key, "value": literal_text(text)} for key, text in values.items()]
    if _is_launched(templates.made):
        arguments.append({"name": names.STARTER_PARAMETER, "value": starter_text()})
    spec: dict[str, Any] = {"entrypoint": entrypoint, "templates": templates.made}
    if arguments:
        spec["arguments"] = {"parameters": arguments}
    if templates.pull_secrets:
        spec["imagePullSecrets"] = [{"name": each} for each in templates.pull_secrets]
    spec |= _settings(pipeline)
    return {
        "apiVersion": names.WORKFLOWS.api_version,
        "kind": names.WORKFLOWS.kind,
        "metadata": {"name": name, "annotations": {names.PIPELINE_NAME: pipeline.name, **_inputs(pipeline)}},
        "spec": spec,
    }


def _values(pipeline: Pipeline, parameters: Mapping[str, Any]) -> dict[str, str]:
    """Texts of all parameters that are given or have a default."""
    wanted = pipeline.spec.root.input_definitions.parameters
    for key in parameters:
        if key not in wanted:
            known = ", ".join(sorted(wanted)) or "none"
            raise InvalidPipeline(
                f"parameters.{key}", f"the pipeline {pipeline.name} has no such parameter; it has: {known}"
            )
    made = {}
    for key, definition in wanted.items():
        if parameters.get(key) is not None:
            made[key] = given_text(parameters[key], definition.parameter_type, f"parameters.{key}")
        elif definition.default_value is not msgspec.UNSET and definition.default_value is not None:
            path = f"root.inputDefinitions.parameters.{key}.defaultValue"
            made[key] = text_of(definition.default_value, definition.parameter_type, path)
        elif not definition.is_optional:
            raise InvalidPipeline(
                f"parameters.{key}", f"required: the pipeline has no default for it ({definition.parameter_type})"
            )
        if key in made:
            _check_literals(key, made[key], definition)
    return made


def _check_literals(key: str, text: str, definition: InputParameterDefinition) -> None:
    allowed = [
        text_of(each, definition.parameter_type, f"root.inputDefinitions.parameters.{key}.literals")
        for each in definition.literals
    ]
    if allowed and text not in allowed:
        raise InvalidPipeline(f"parameters.{key}", f"must be one of {', '.join(allowed[:20])}")


def _inputs(pipeline: Pipeline) -> dict[str, str]:
    """The annotation from which `argument_of` knows the parameters of a run whose compiled file is gone."""
    found = {
        key: {"parameterType": each.parameter_type, **({"literals": each.literals} if each.literals else {})}
        for key, each in pipeline.spec.root.input_definitions.parameters.items()
    }
    text = json_of(found)
    return {names.INPUTS: text} if found and len(text) <= MAX_INPUTS else {}


def argument_of(key: str, value: Any, inputs: Mapping[str, Any]) -> str:
    """A new value for an argument of a workflow that was made here. `inputs` is the content of its annotation, which
    anybody who may write the workflow may have written."""
    try:
        definition = msgspec.convert(inputs.get(key) or {}, InputParameterDefinition)
    except msgspec.ValidationError as error:
        raise InvalidPipeline(f"annotation {names.INPUTS}.{key}", str(error)) from error
    text = given_text(value, definition.parameter_type, f"parameters.{key}")
    _check_literals(key, text, definition)
    return literal_text(text)


def _is_launched(templates: list[dict[str, Any]]) -> bool:
    return any(env["name"] == ORDERS for each in templates for env in (each.get("container") or {}).get("env") or ())


def _settings(pipeline: Pipeline) -> dict[str, Any]:
    config = pipeline.platform.pipeline_config
    ttl = {
        key: seconds
        for key, seconds in (
            ("secondsAfterCompletion", config.resource_ttl_on_completion),
            ("secondsAfterSuccess", config.resource_ttl_on_success),
            ("secondsAfterFailure", config.resource_ttl_on_failure),
        )
        if seconds
    }
    made: dict[str, Any] = {"ttlStrategy": ttl} if ttl else {}
    return {**made, "activeDeadlineSeconds": config.active_deadline_seconds} if config.active_deadline_seconds else made
