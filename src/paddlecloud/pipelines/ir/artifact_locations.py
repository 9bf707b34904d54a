"""Where the content of artifacts lies: in Argo's artifact repository, under keys that are known when a step begins.

Steps pass each other references: JSON in an ordinary parameter, with the key of the content. So lists of any length
and the one of several branches need nothing else, and a step that Argo answers from its cache gives the reference that
it gave when it ran. Pure.
"""

from __future__ import annotations

from typing import Any

from paddlecloud.pipelines.ir.options import PipelineOptions
from paddlecloud.pipelines.ir.pipeline_spec import ArtifactType, InputArtifactDefinition, OutputArtifactDefinition
from paddlecloud.pipelines.ir.sources import artifact_parameter, tag, variable
from paddlecloud.pipelines.ir.values import json_of

FOLDER = "/tmp/kfp"  # noqa: S108 - inside of a container
INPUTS = f"{FOLDER}/inputs"
OUTPUTS = f"{FOLDER}/outputs"
_WITHOUT_CONTENT = ("system.Metrics", "system.ClassificationMetrics", "system.SlicedClassificationMetrics")
"""Artifacts that are metadata alone: their steps write no file."""


def input_path(name: str) -> str:
    return f"{INPUTS}/{name}"


def output_path(name: str) -> str:
    return f"{OUTPUTS}/{name}"


def key_of(step: str, name: str, options: PipelineOptions) -> str:
    """One for each attempt of a step: a retry never writes over what the attempt before may have left. What the
    iterations of a loop write lies in one folder, which is how a list of artifacts is delivered."""
    return f"{options.prefix}/{{{{workflow.namespace}}}}/{{{{workflow.name}}}}/{step}/{name}/{{{{pod.name}}}}"


def uri_of(key: str, options: PipelineOptions) -> str:
    return f"{options.store}://{options.bucket}/{key}"


def input_artifact(name: str, definition: InputArtifactDefinition, options: PipelineOptions) -> dict[str, Any]:
    """For Argo; of a list, the folder of all that the loop before wrote."""
    reference = f"fromJSON({variable(f'inputs.parameters.{artifact_parameter(name)}')})"
    key = f"{reference}.key"
    if definition.is_artifact_list:
        first = f"flatten({reference})[0].key"
        key = f"len(flatten({reference})) == 0 ? 'none' : trimSuffix({first}, '/' + last(split({first}, '/')))"
    made: dict[str, Any] = {"name": name, "path": input_path(name), options.store: {"key": tag(key)}}
    if definition.is_artifact_list or definition.artifact_type.schema_title in _WITHOUT_CONTENT:
        made["optional"] = True
    return made


def output_artifact(step: str, name: str, options: PipelineOptions) -> dict[str, Any]:
    """As a file or folder, not as an archive: the content can be read by other tools. Optional, as in Kubeflow
    Pipelines (component/launcher_v2.go: components may not produce output files)."""
    return {
        "name": name,
        "path": output_path(name),
        "archive": {"none": {}},
        "optional": True,
        options.store: {"key": key_of(step, name, options)},
    }


def reference_of(step: str, name: str, definition: OutputArtifactDefinition, options: PipelineOptions) -> str:
    """What a step gives that writes no reference of its own: every container without a step starter."""
    key = key_of(step, name, options)
    return json_of(
        {
            "name": name,
            "type": type_of(definition.artifact_type),
            "uri": uri_of(key, options),
            "key": key,
            "metadata": definition.metadata,
        }
    )


def type_of(kind: ArtifactType) -> dict[str, str]:
    if kind.schema_title:
        return {"schemaTitle": kind.schema_title, "schemaVersion": kind.schema_version}
    return {"instanceSchema": kind.instance_schema} if kind.instance_schema else {"schemaUri": kind.schema_uri}
