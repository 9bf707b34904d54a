"""A compiled pipeline and its parameters as an Argo Workflow. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from paddlecloud.kube.resource import Object
from paddlecloud.pipelines import names
from paddlecloud.pipelines.ir.dags import Templates
from paddlecloud.pipelines.ir.errors import InvalidPipeline
from paddlecloud.pipelines.ir.options import Options
from paddlecloud.pipelines.ir.reader import Pipeline, read
from paddlecloud.pipelines.ir.sources import literal_text
from paddlecloud.pipelines.ir.steps import ORDERS, launcher_text
from paddlecloud.pipelines.ir.values import given_text, text_of


def translate(documents: bytes, parameters: Mapping[str, Any], name: str, options: Options | None = None) -> Object:
    """The Workflow of a compiled pipeline, without a namespace. Raises InvalidPipeline with the field to mend."""
    return workflow_of(read(documents), parameters, name, options)


def workflow_of(pipeline: Pipeline, parameters: Mapping[str, Any], name: str, options: Options | None = None) -> Object:
    options = options or Options()
    values = _values(pipeline, parameters)
    templates = Templates(pipeline, options)
    absent = frozenset(pipeline.spec.root.input_definitions.parameters) - set(values)
    entrypoint = templates.root(absent)
    arguments = [{"name": key, "value": literal_text(text)} for key, text in values.items()]
    if _is_launched(templates.made):
        arguments.append({"name": names.LAUNCHER_PARAMETER, "value": launcher_text()})
    spec: dict[str, Any] = {"entrypoint": entrypoint, "templates": templates.made}
    if arguments:
        spec["arguments"] = {"parameters": arguments}
    if templates.pull_secrets:
        spec["imagePullSecrets"] = [{"name": each} for each in templates.pull_secrets]
    spec |= _settings(pipeline)
    return {
        "apiVersion": names.WORKFLOWS.api_version,
        "kind": names.WORKFLOWS.kind,
        "metadata": {"name": name, "annotations": {names.PIPELINE_NAME: pipeline.name}},
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
        if key in made and definition.literals:
            allowed = [
                text_of(each, definition.parameter_type, f"root.inputDefinitions.parameters.{key}.literals")
                for each in definition.literals
            ]
            if made[key] not in allowed:
                raise InvalidPipeline(f"parameters.{key}", f"must be one of {', '.join(allowed[:20])}")
    return made


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
